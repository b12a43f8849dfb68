"""Toolboxes of many fields with annotated messages, to learn planning for unseen tools from."""

from casewright.finetune.corpus.corpus import (
    SPLITS,
    CorpusToolbox,
    Reading,
    Split,
    read_corpus,
    read_second_reading,
    training_toolboxes,
)
from casewright.finetune.corpus.counts import corpus_counts
from casewright.finetune.corpus.export import export_corpus

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
