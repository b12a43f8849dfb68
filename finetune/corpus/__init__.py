"""Toolboxes from many fields of work, with annotated messages to train and test planners."""

from casewright.finetune.corpus.corpus import (
    SPLITS,
    CorpusToolbox,
    Reading,
    Split,
    export_corpus,
    read_corpus,
    read_second_reading,
    training_toolboxes,
)
from casewright.finetune.corpus.counts import corpus_counts

__all__ = [
    "SPLITS",
    "CorpusToolbox",
    "Reading",
    "Split",
    "corpus_counts",
    "export_corpus",
    "read_corpus",
    "read_second_reading",
    "training_toolboxes",
]
