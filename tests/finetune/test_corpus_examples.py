"""The training examples made from the corpus, with a few of its toolboxes."""

from __future__ import annotations

import pytest

from casewright.finetune.corpus import CorpusToolbox, read_corpus
from casewright.finetune.examples import corpus_examples as module
from casewright.finetune.examples.corpus_examples import (
    CorpusExamples,
    CorpusSettings,
    corpus_examples,
)
from casewright.finetune.examples.tevo import TevoSettings
from casewright.finetune.examples.ttg import TtgSettings
from tests.finetune.test_corpus import training_corpus
from tests.support.encoders import HashingEncoder

SETTINGS = CorpusSettings(copies=1, guests=2, strangers=1, validation=4)


@pytest.fixture(scope="module")
def boxes() -> list[CorpusToolbox]:
    """Return three toolboxes for training."""
    return training_corpus()[:3]


@pytest.fixture
def few_examples(boxes: list[CorpusToolbox], monkeypatch: pytest.MonkeyPatch) -> CorpusExamples:
    """Return the examples of the three toolboxes, with one task per message."""
    monkeypatch.setattr(module, "training_toolboxes", lambda: boxes)
    one_task = TtgSettings(tasks_per_query=1)
    return corpus_examples(SETTINGS, TevoSettings(), one_task, HashingEncoder(64), seed=0)


def test_corpus_examples_contain_every_message_and_guest_queries(
    few_examples: CorpusExamples, boxes: list[CorpusToolbox]
) -> None:
    message_ids = {f"{box.name}:{query.record.id}" for box in boxes for query in box.queries}
    query_ids = {example.id.rpartition("@")[0].partition("#")[0] for example in few_examples.train}
    assert message_ids <= query_ids
    added = [name for name in query_ids if name.endswith(("~guest", "~stranger"))]
    assert any(name.endswith("~guest") for name in added)
    assert len(added) <= 3 * len(boxes)
    assert few_examples.manifest_entry["toolboxes"] == len(boxes)
    assert few_examples.manifest_entry["examples"] == len(few_examples.train)


def test_corpus_validation_examples_come_from_validation_toolboxes(
    few_examples: CorpusExamples, boxes: list[CorpusToolbox]
) -> None:
    names = [box.name for box in read_corpus("validation")]
    sets = [example.id.partition(":")[0] for example in few_examples.validation]
    assert {name: sets.count(name) for name in sets} == dict.fromkeys(names, SETTINGS.validation)


def test_corpus_examples_are_empty_without_copies() -> None:
    settings = CorpusSettings(copies=0)
    examples = corpus_examples(settings, TevoSettings(), TtgSettings(), HashingEncoder(64), seed=0)
    assert examples == CorpusExamples([], [], {})
