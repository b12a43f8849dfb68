"""Tests of the planner's bench on a toy domain, since training on the shop takes minutes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.bench import harness
from casewright.bench import planner as bench
from casewright.domains import Domain, OpenDomain
from casewright.errors import InputError
from casewright.finetune import reader_training
from casewright.planner import AnnotatedQuery, Reader, plan_store
from casewright.serve.cli.commands import app
from casewright.stores import CachedEncoder, Encoder
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder
from tests.support.readers import Trained, quick, toy_queries, train

#: Training takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)
Bench = dict[str, Any]
QUERIES = toy_queries()[::2]
#: Two queries equal plan cases but for their letters; two resemble no plan case.
FROZEN = [
    AnnotatedQuery.read({"id": f"frozen {query}", "query": query, "plan": plan, "class": name})
    for query, plan, name in (
        ("DO YOU SELL WOOL SOCKS", 's1 = find(query="wool socks")', "find"),
        ("Good evening everybody", "s1 = no_evidence()", "no_evidence"),
        ("Hello there!", "s1 = no_evidence()", "no_evidence"),
        ("Stock any violins", 's1 = find(query="violins")', "find"),
    )
]
#: The training of the bench, which most tests replace with a quick one.
TRAIN_READER = bench._train_reader
CONTROLS = ("fallback plan", "classifiers", "reader not trained")


@dataclass
class Toy:
    """A domain that the bench measures in seconds.

    Attributes:
        domain: The toy domain.
        trainings: The ids of the training queries and the flag ``fit`` of every training.
    """

    domain: Domain
    trainings: list[tuple[list[str], bool]] = field(default_factory=list)


def open_toy(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    store = plan_store(QUERIES, encoder)
    return OpenDomain(SHOP, store, {"plans": store})


@pytest.fixture(scope="module")
def toy(
    trained_reader: Trained, untrained_reader: Reader, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Toy]:
    """Yield the toy domain, which replaces every other; none of its readers is trained."""
    toy_shop = Toy(
        Domain("toy", "A toy.", (), open_toy, lambda: QUERIES, reader=trained_reader.folder)
    )
    encoder = CachedEncoder(HashingEncoder(256), tmp_path_factory.mktemp("embeddings"))

    def record_training(queries: Sequence[AnnotatedQuery], folder: Path, *, fit: bool) -> Reader:
        toy_shop.trainings.append(([str(query.record.id) for query in queries], fit))
        return trained_reader.reader if fit else untrained_reader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("casewright.domains.find_domain", lambda name: toy_shop.domain)
        patch.setattr(harness, "default_encoder", lambda: encoder)
        patch.setattr(bench, "_train_reader", record_training)
        patch.setattr(Domain, "open_reader", lambda domain: trained_reader.reader)
        patch.setattr(bench, "FIRST_SIZE", 10)
        yield toy_shop


def run_bench(toy: Toy, *arguments: str, bench: str = "planner", **changes: Any) -> Bench:
    """Run the command and return the object that it prints."""
    domain, toy.trainings = toy.domain, []
    toy.domain = replace(domain, **changes)
    folds = ["--folds", "2"] if bench == "planner" else []
    try:
        completed = CliRunner().invoke(
            app, ["bench", bench, "--json", *folds, *arguments], catch_exceptions=False
        )
    finally:
        toy.domain = domain
    assert completed.exit_code == 0, completed.output
    document: Bench = json.loads(completed.stdout)
    return document


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plots") / "planner.png"


@pytest.fixture(scope="module")
def report(toy: Toy, picture: Path) -> Bench:
    return run_bench(toy, "--plot", str(picture))


@pytest.fixture(scope="module")
def trainings(toy: Toy, report: Bench) -> list[tuple[list[str], bool]]:
    """Return the query ids and the flag ``fit`` of every training of the report."""
    return list(toy.trainings)


def rows_by_class(report: Bench) -> dict[str, Bench]:
    return {row["class"]: row for row in report["rows"]}


def test_report_has_a_row_and_a_figure_for_every_control(report: Bench) -> None:
    rows, figures = rows_by_class(report), report["figures"]
    assert [name for name in rows if ":" in name] == [f"control: {name}" for name in CONTROLS]
    for name in CONTROLS:
        row = rows[f"control: {name}"]
        assert row["count"] == len(QUERIES)
        figure = figures[f"tool_accuracy_{name.replace(' ', '_')}"]
        assert figure == pytest.approx(row["tools"], abs=1e-3)
        if name != "classifiers":
            assert row["tools"] < rows["all"]["tools"] / 2
            assert row["arguments"] < rows["all"]["arguments"]
            assert row["f1"] < rows["all"]["f1"]


def test_report_has_a_row_per_class_and_counts_every_query_once(report: Bench) -> None:
    rows = rows_by_class(report)
    classes = {query.label for query in QUERIES}
    assert {name for name in rows if ":" not in name} == {*classes, "all"}
    assert sum(rows[name]["count"] for name in classes) == rows["all"]["count"] == len(QUERIES)


def test_planner_bench_figures_agree_with_its_rows(report: Bench) -> None:
    rows, figures = rows_by_class(report), report["figures"]
    class_rows = [row for name, row in rows.items() if name != "all" and ":" not in name]
    accuracy = sum(row["count"] * row["tools"] for row in class_rows) / len(QUERIES)
    assert figures["tool_accuracy"] == pytest.approx(accuracy, abs=1e-3)
    assert rows["all"]["tools"] == pytest.approx(accuracy, abs=1e-3)
    assert figures["macro_f1"] == pytest.approx(rows["all"]["f1"], abs=1e-3)
    multi_step = rows["multi_step"]
    assert figures["tool_accuracy_multi_step"] == pytest.approx(multi_step["tools"], abs=1e-3)
    total = accuracy * len(QUERIES) - multi_step["count"] * multi_step["tools"]
    count = len(QUERIES) - multi_step["count"]
    assert figures["tool_accuracy_one_task"] == pytest.approx(total / count, abs=1e-3)
    assert all(row["arguments"] <= row["tools"] for row in rows.values())
    assert 0 < figures["plan_ms_p50"] <= figures["plan_ms_p95"]


def test_reader_is_not_trained_on_the_queries_that_it_is_measured_on(
    trainings: list[tuple[list[str], bool]],
) -> None:
    assert [fit for _, fit in trainings] == [True, True, False, False]
    all_ids = {query.record.id for query in QUERIES}
    assert len(all_ids) == len(QUERIES)
    first_ids, second_ids = (set(known) for known, fit in trainings if fit)
    # The reader of each fold is trained on the queries of the other fold.
    assert first_ids | second_ids == all_ids
    assert not first_ids & second_ids


def test_frozen_bench_measures_the_shipped_planners_without_training(toy: Toy) -> None:
    report = run_bench(toy, "--guests", "2", bench="frozen", measuring_queries=lambda: FROZEN)
    figures, added = report["figures"], [r for r in report["rows"] if r["table"] == "added tools"]
    rows = [row for row in report["rows"] if row["table"] == "frozen"]
    row_keys = [(row["planner"], row["class"], row["count"]) for row in rows]
    classes = [("find", 2), ("no_evidence", 2), ("all", 4)]
    planners = ("case", "parser", "mistral", "ensemble", "fallback")
    assert row_keys == [(planner, *row) for planner in planners for row in classes]
    assert toy.trainings == []
    assert (figures["queries"], figures["queries_with_a_neighbour"]) == (4, 2)
    for row in rows[2::3]:
        figure = figures[f"tool_accuracy_{row['planner']}"]
        assert figure == pytest.approx(row["tools"], abs=1e-3)
        assert f"tool_accuracy_{row['planner']}_without_neighbours" in figures
    assert figures["tool_accuracy_case"] > figures["tool_accuracy_fallback"]
    kinds = [("added tools", 2), ("beside added tools", 4)]
    assert [(row["planner"], row["messages"], row["count"]) for row in added] == [
        (planner, *kind) for planner in planners for kind in kinds
    ]
    accuracy = {row["planner"]: row["tools"] for row in added if row["count"] == 4}
    # No plan case calls an added tool, and none of these queries needs one.
    assert accuracy["case"] == pytest.approx(figures["tool_accuracy_case"])


def test_frozen_bench_refuses_a_domain_without_test_queries(toy: Toy) -> None:
    with pytest.raises(InputError, match="no test queries"):
        run_bench(toy, bench="frozen")


@pytest.mark.parametrize("planner", ["case", "classifiers"])
def test_curve_measures_increasing_numbers_of_training_queries(
    toy: Toy, tmp_path: Path, planner: str
) -> None:
    plot = tmp_path / "curve.png"
    report = run_bench(toy, "--curve", "--plot", str(plot), "--planner", planner)
    names = [name for name in report["figures"] if name.endswith("_queries")]
    sizes = sorted({int(name.split("_")[-2]) for name in names})
    largest = sizes[-1]
    assert sizes == [*(size for size in (10, 20, 40) if size < largest), largest]
    assert 20 < largest < len(QUERIES)
    assert sorted(names) == sorted(
        f"tool_accuracy_{part}{planner}_of_{size}_queries"
        for part in ("", "multi_step_")
        for size in sizes
    )
    # The cross-validation has already measured the largest size.
    trained = [len(ids) for ids, fit in toy.trainings if fit][2:]
    assert trained == (sizes[:-1] if planner == "case" else [])
    assert plot.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_curve_of_few_queries_has_one_size(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "FIRST_SIZE", 125)
    report = run_bench(toy, "--curve", "--planner", "classifiers")
    names = [name for name in report["figures"] if name.endswith("_queries")]
    assert len(names) == 2
    assert "125" not in str(names)


def test_planner_bench_trains_nothing_for_a_domain_without_reader(toy: Toy) -> None:
    report = run_bench(toy, "--planner", "case", reader=None)
    controls = [name for name in rows_by_class(report) if ":" in name]
    assert controls == ["control: fallback plan", "control: classifiers"]
    assert toy.trainings == []


def test_planner_bench_trains_one_reader_per_fold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The other tests replace the training of the bench; this one runs it.
    query_counts: list[int] = []

    def quick_settings(**options: Any) -> Any:
        return quick(epochs=options.get("epochs", 1))

    def train_and_count(queries: Sequence[AnnotatedQuery], settings: Any) -> Any:
        query_counts.append(len(queries))
        return train(queries, settings)

    monkeypatch.setattr(bench, "_train_reader", TRAIN_READER)
    monkeypatch.setattr(reader_training, "ReaderSettings", quick_settings)
    monkeypatch.setattr(reader_training, "train_reader", train_and_count)
    domain = Domain("toy", "", (), open_toy, lambda: QUERIES, reader=tmp_path)
    measured = QUERIES[:32]
    encoder = bench.UncachedQuestionEncoder(CachedEncoder(HashingEncoder(256), tmp_path))
    trial = bench.Trial(domain, SHOP, measured, [range(4), range(0)], encoder)
    assert len(trial.cross_validated("untrained")) == 4
    assert query_counts == [28, 32]
