"""The shipped corpus: its toolboxes are valid, split and exported."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.errors import InputError
from casewright.finetune.corpus import (
    SPLITS,
    CorpusToolbox,
    Reading,
    corpus,
    corpus_counts,
    export_corpus,
    read_corpus,
    read_second_reading,
    training_toolboxes,
)
from casewright.finetune.corpus.corpus import FOLDER
from casewright.finetune.corpus.counts import CLASSES, DECOY, FOLLOW_UP, USED, class_of, page_of
from casewright.finetune.examples.corpus_examples import guest_queries, stranger_queries
from casewright.finetune.neighbours import question_key
from casewright.finetune.plan_shape import plan_class
from casewright.finetune.tool_pools import read_pools
from casewright.planner import ContextRef, StepRef, read_annotated
from casewright.planner.parser.schema import SAME_NAME, likeness
from casewright.planner.parser.search import OTHER_FIELD_COST
from casewright.serve.cli.commands import app
from casewright.tools import NO_EVIDENCE, toolbox_from_file
from tests.support.encoders import HashingEncoder


@cache
def whole_corpus() -> list[CorpusToolbox]:
    """Return all toolboxes. Reading them takes seconds, since it checks every plan."""
    return read_corpus()


@pytest.fixture(scope="module")
def boxes() -> list[CorpusToolbox]:
    return whole_corpus()


@cache
def training_corpus() -> list[CorpusToolbox]:
    """Return the toolboxes for training, without reading the corpus again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "read_corpus", whole_corpus)
        return training_toolboxes()


def by_split(
    boxes: Iterable[CorpusToolbox], items_of: Callable[[CorpusToolbox], Iterable[Any]]
) -> list[tuple[Any, set[str]]]:
    """Return each item with the splits of the toolboxes that contain it."""
    splits: dict[Any, set[str]] = defaultdict(set)
    for box in boxes:
        for item in items_of(box):
            splits[item].add(box.split)
    return list(splits.items())


def test_corpus_toolboxes_have_one_split_and_at_least_25_messages(
    boxes: list[CorpusToolbox],
) -> None:
    names = [box.name for box in boxes]
    assert len(set(names)) == len(names)
    assert {box.split for box in boxes} == set(SPLITS)
    assert all(len(box.queries) >= 25 for box in boxes)
    held_out = [box.name for box in read_corpus("validation", "measuring")]
    assert held_out == [box.name for box in boxes if box.split != "training"]


def test_corpus_has_unique_ids_and_no_tool_in_two_splits(boxes: list[CorpusToolbox]) -> None:
    ids = [query.record.id for box in boxes for query in box.queries]
    assert len(set(ids)) == len(ids)
    assert [tool for tool, splits in by_split(boxes, _tools) if len(splits) > 1] == []


def test_training_toolboxes_share_no_message_with_held_out_toolboxes(
    boxes: list[CorpusToolbox],
) -> None:
    training = training_corpus()
    assert [box.name for box in training] == [b.name for b in boxes if b.split == "training"]
    held_out = [box for box in boxes if box.split != "training"]
    shared = [
        words for words, splits in by_split([*training, *held_out], _questions) if len(splits) > 1
    ]
    assert shared == []


def _questions(box: CorpusToolbox) -> Iterable[str]:
    return {question_key(query.query) for query in box.queries}


def _tools(box: CorpusToolbox) -> Iterable[tuple[str, str]]:
    return {(t.name, t.description) for t in box.toolbox if t.name != NO_EVIDENCE.name}


def test_corpus_labels_are_the_classes_of_the_plans(boxes: list[CorpusToolbox]) -> None:
    wrong = [
        query.record.id
        for box in boxes
        for query in box.queries
        if query.label != plan_class(query.plan)
    ]
    assert wrong == []


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_guest_and_unanswerable_queries_have_valid_plans_with_every_host_toolbox(
    boxes: list[CorpusToolbox], step: int
) -> None:
    encoder, rng = HashingEncoder(64), random.Random(0)
    guests, hosts = 0, [*enumerate(boxes)][::step]
    for index, host in hosts:
        # A sample suffices: the choice of guests does not depend on the number of toolboxes.
        others = rng.sample([*boxes[:index], *boxes[index + 1 :]], 6)
        guest_list = guest_queries(host.toolbox, others, 2, rng)
        unanswered = stranger_queries(host.toolbox, others, 1, encoder, rng)
        guests += len(guest_list)
        for query in (*guest_list, *unanswered):
            query.record.request(host.toolbox).validate(query.plan)
        for query in guest_list:
            added = {tool["name"] for tool in query.record.tools_extra}
            assert added == set(query.plan.tools)
            assert added.isdisjoint(host.toolbox.names)
        assert all(query.plan.tools == (NO_EVIDENCE.name,) for query in unanswered)
    assert guests == 2 * len(hosts)


def test_corpus_counts_count_each_message_once_by_class(boxes: list[CorpusToolbox]) -> None:
    counts = corpus_counts(boxes)
    for split in SPLITS:
        toolboxes = [box for box in boxes if box.split == split]
        assert counts[split]["toolboxes"] == len(toolboxes)
        assert counts[split]["messages"] == sum(len(box.queries) for box in toolboxes)
    for entry in counts.values():
        assert sum(entry[name] for name in CLASSES) == entry["messages"]
        assert entry["mended, share"] is None
    assert counts["all"]["messages"] == sum(counts[split]["messages"] for split in SPLITS)


def test_corpus_counts_of_a_toolbox_match_its_plans(boxes: list[CorpusToolbox]) -> None:
    box = next(box for box in boxes if box.name == "airq_net")
    counts = corpus_counts([box])["training"]
    text = "\n".join(str(query.plan) for query in box.queries)
    assert counts["tools"] == 8
    assert counts["unanswerable"] == text.count("no_evidence()")
    pages = [page_of(query) for query in box.queries if query.record.context]
    assert counts[USED] + counts[DECOY] == len(pages)
    assert counts[USED] == sum("context." in str(query.plan) for query in box.queries)
    assert counts["numbers"] == sum(
        text.count(f"{name}=") for name in ("max_age_min", "min_value", "year")
    )
    without_history = [query for query in box.queries if not query.record.history]
    chains = [query for query in without_history if class_of(query) == "chain of look-ups"]
    assert chains
    assert all("(site_id=s1.site_id" in str(query.plan) for query in chains)
    assert counts[FOLLOW_UP] == len(box.queries) - len(without_history) > 0


def test_share_of_mended_plans_is_relative_to_plans_read_again(boxes: list[CorpusToolbox]) -> None:
    trained = next(box for box in boxes if box.split == "training")
    measured = next(box for box in boxes if box.split == "measuring")
    readings = [
        Reading(id=f"{trained.name}-01", verdict="right"),
        Reading(id=f"{trained.name}-02", verdict="mended", why="no", plan="s1 = no_evidence()"),
        Reading(id=f"{measured.name}-01", verdict="dropped", why="senseless"),
    ]
    validated = next(box for box in boxes if box.split == "validation")
    counts = corpus_counts([trained, measured, validated], readings)
    assert counts["training"]["read again"] == 2
    assert counts["training"]["mended, share"] == 0.5
    assert counts["measuring"]["dropped"] == 1
    assert counts["measuring"]["mended, share"] == 0
    assert counts["validation"]["read again"] == 0


def test_second_reading_names_messages_of_the_corpus_except_dropped_ones(
    boxes: list[CorpusToolbox],
) -> None:
    readings = read_second_reading()
    assert {reading.toolbox for reading in readings} <= {box.name for box in boxes}
    ids = {query.record.id for box in boxes for query in box.queries}
    assert {r.id for r in readings if r.verdict != "dropped"} <= ids
    assert {r.id for r in readings if r.verdict == "dropped"}.isdisjoint(ids)


def test_invalid_line_of_the_second_reading_is_refused_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "readings.jsonl"
    file.write_text('{"id": "a-1", "verdict": "right"}\n{"id": "a-2", "verdict": "maybe"}\n')
    with pytest.raises(InputError, match=r"line 2: .*verdict \(right, mended or dropped\)"):
        read_second_reading(file)


def test_exported_toolbox_is_restored_by_the_file_readers(
    boxes: list[CorpusToolbox], tmp_path: Path
) -> None:
    exported = boxes[:: len(boxes) // 12]
    for box, folder in zip(exported, export_corpus(exported, tmp_path / "out"), strict=True):
        assert folder == tmp_path / "out" / box.split / box.name
        toolbox = toolbox_from_file(folder / "tools.json")
        assert toolbox.fingerprint() == box.toolbox.fingerprint()
        assert tuple(read_annotated(folder / "queries.jsonl")) == box.queries
        assert read_pools(folder / "pools.json", toolbox) == box.pools
    with pytest.raises(InputError, match="is not empty"):
        export_corpus(exported, tmp_path / "out")


def test_finetune_corpus_command_counts_the_corpus_as_json_and_exports_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["finetune", "corpus", "--json", "--export", str(tmp_path / "x")]
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert list(report["counts"]) == [*SPLITS, "all"]
    assert len(report["exported"]) == report["counts"]["all"]["toolboxes"]
    assert 0 < report["counts"]["measuring"]["mended, share"] < 0.2
    assert (Path(report["exported"][0]) / "tools.json").is_file()


def test_corpus_with_an_invalid_plan_is_refused_naming_the_message(tmp_path: Path) -> None:
    content = json.loads((FOLDER / "airq_net.json").read_text(encoding="utf-8"))
    content["queries"][3]["plan"] = "s1 = sites(place=1)"
    (tmp_path / "airq_net.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=rf"{content['queries'][3]['id']}: "):
        read_corpus(folder=tmp_path)


def test_parser_penalty_for_unlike_field_names_matches_the_corpus(
    boxes: list[CorpusToolbox],
) -> None:
    chances = []
    for box in boxes:
        fields = {field for tool in box.toolbox for field in tool.results}
        for query in box.queries if box.split == "training" else ():
            names = fields | set(query.record.context)
            for step in query.plan.steps:
                chances += [
                    likeness(name, value.field) == 0
                    for name, value in step.arguments
                    if isinstance(value, StepRef | ContextRef)
                    and any(likeness(name, other) == SAME_NAME for other in names)
                ]
    # The tolerance is wide, since the penalty was calibrated on a hundred toolboxes fewer.
    assert -math.log(sum(chances) / len(chances)) == pytest.approx(OTHER_FIELD_COST, abs=0.4)
