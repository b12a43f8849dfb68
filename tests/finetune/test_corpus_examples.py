"""What a training set takes of the corpus, on a few of its toolboxes."""

from __future__ import annotations

import pytest

from casewright.finetune.corpus import CorpusToolbox, read_corpus
from casewright.finetune.examples import corpus_examples as made_from
from casewright.finetune.examples.corpus_examples import (
    CorpusExamples,
    CorpusSettings,
    corpus_examples,
)
from casewright.finetune.examples.tevo import TevoSettings
from casewright.finetune.examples.ttg import TtgSettings
from tests.finetune.test_corpus import for_training
from tests.support.encoders import HashingEncoder

SETTINGS = CorpusSettings(copies=1, guests=2, strangers=1, validation=4)


@pytest.fixture(scope="module")
def boxes() -> list[CorpusToolbox]:
    """Three toolboxes for training."""
    return for_training()[:3]


@pytest.fixture
def few_examples(boxes: list[CorpusToolbox], monkeypatch: pytest.MonkeyPatch) -> CorpusExamples:
    """Their examples, each message posed once as one task."""
    monkeypatch.setattr(made_from, "training_toolboxes", lambda: boxes)
    alone = TtgSettings(tasks_per_query=1)
    return corpus_examples(SETTINGS, TevoSettings(), alone, HashingEncoder(64), seed=0)


def test_corpus_examples_contain_every_message_and_guest_queries(
    few_examples: CorpusExamples, boxes: list[CorpusToolbox]
) -> None:
    own = {f"{box.name}:{query.record.id}" for box in boxes for query in box.queries}
    posed = {example.id.rpartition("@")[0].partition("#")[0] for example in few_examples.train}
    assert own <= posed
    kinds = [name for name in posed if name.endswith(("~guest", "~stranger"))]
    assert any(name.endswith("~guest") for name in kinds)
    assert len(kinds) <= 3 * len(boxes)
    assert few_examples.manifest_entry["toolboxes"] == len(boxes)
    assert few_examples.manifest_entry["examples"] == len(few_examples.train)


def test_corpus_validation_examples_come_from_validation_toolboxes(
    few_examples: CorpusExamples, boxes: list[CorpusToolbox]
) -> None:
    held = [box.name for box in read_corpus("validation")]
    of = [example.id.partition(":")[0] for example in few_examples.validation]
    assert {name: of.count(name) for name in of} == dict.fromkeys(held, SETTINGS.validation)


def test_corpus_examples_are_empty_without_copies() -> None:
    none = CorpusSettings(copies=0)
    found = corpus_examples(none, TevoSettings(), TtgSettings(), HashingEncoder(64), seed=0)
    assert found == CorpusExamples([], [], {})
