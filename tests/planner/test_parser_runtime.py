"""The parser without torch gives the plans of the trained network, in any thread."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import pytest
import torch

from casewright.errors import InputError
from casewright.finetune.corpus import CorpusToolbox
from casewright.planner import MAX_STEPS, AnnotatedQuery
from casewright.planner.parser.example_cases import PlanCase
from casewright.planner.parser.reading import ArrayNetwork
from casewright.planner.parser.runtime import ParserRuntime, open_runtime
from casewright.planner.parser.search import ScoredSteps
from casewright.planner.parser.weights import FOLDER as SHIPPED
from casewright.planner.parser.weights import ParserCard, read_weights, save_parser, trained_weights
from casewright.tools import Toolbox
from tests.planner.helpers import ROWS, SHOP
from tests.planner.parsers import eager_runtime, runtime, trained, untrained
from tests.support.shipped import validation_toolboxes

QUERIES = [AnnotatedQuery.read({"query": q, "plan": p, "context": c}) for q, p, c in ROWS]


@cache
def shipped_float32() -> ParserRuntime:
    return ParserRuntime(ArrayNetwork(read_weights(), bits=32))


@cache
def shipped_by_torch() -> ParserRuntime:
    return eager_runtime(trained())


def check_plans(
    arrays: ParserRuntime,
    eager: ParserRuntime,
    toolbox: Toolbox,
    plan_cases: Iterable[AnnotatedQuery],
    queries: Iterable[AnnotatedQuery],
) -> None:
    cases = [PlanCase(case.query, case.plan, case.record.context) for case in plan_cases]
    prepared, other = arrays.prepare(toolbox, cases), eager.prepare(toolbox, cases)
    for query in queries:
        message = (query.query, query.record.context, MAX_STEPS)
        (_, ours), (_, theirs) = arrays.plans(prepared, *message), eager.plans(other, *message)
        assert [plan.steps for plan in ours] == [plan.steps for plan in theirs], query.query
        scores = [plan.score for plan in theirs]
        assert [plan.score for plan in ours] == pytest.approx(scores, abs=1e-3)


@pytest.mark.parametrize(("seed", "count"), [(0, 0), (1, len(QUERIES))])
def test_untrained_parser_gives_the_same_plans_as_torch(seed: int, count: int) -> None:
    check_plans(runtime(seed), eager_runtime(untrained(seed)), SHOP, QUERIES[:count], QUERIES[::4])


def test_shipped_parser_gives_the_same_plans_as_torch() -> None:
    data = validation_toolboxes()[0]
    check_plans(
        shipped_float32(), shipped_by_torch(), data.toolbox, data.queries[:10], data.queries[10:13]
    )


@pytest.mark.parametrize("bits", [8, pytest.param(7, marks=pytest.mark.slow)])
def test_integer_weights_change_at_most_a_fifth_of_the_plans(
    bits: int,
) -> None:
    data = validation_toolboxes()[0]
    integers = first_plans(ParserRuntime(ArrayNetwork(read_weights(), bits)), data)
    floats = first_plans(shipped_float32(), data)
    equal = [ours.steps == theirs.steps for ours, theirs in zip(integers, floats, strict=True)]
    assert sum(equal) >= 0.8 * len(equal)
    assert [plan.score for plan in integers] != [plan.score for plan in floats]


def first_plans(parser: ParserRuntime, data: CorpusToolbox) -> list[ScoredSteps]:
    prepared = parser.prepare(data.toolbox, [])
    return [
        parser.plans(prepared, query.query, query.record.context, MAX_STEPS)[1][0]
        for query in data.queries
    ]


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 10])
@pytest.mark.parametrize("data", validation_toolboxes(), ids=lambda data: data.name)
def test_shipped_parser_gives_the_same_plans_as_torch_for_every_message(
    data: CorpusToolbox, count: int
) -> None:
    queries = data.queries
    check_plans(
        shipped_float32(), shipped_by_torch(), data.toolbox, queries[:count], queries[count:]
    )


def test_concurrent_threads_get_the_plans_of_sequential_calls() -> None:
    parser = open_runtime()
    prepared = parser.prepare(SHOP, [])
    plan = partial(parser.plans, prepared, context={}, max_steps=MAX_STEPS)
    questions = [query.query for query in QUERIES[::4]] * 4
    sequential = [plan(question)[1] for question in questions]
    with ThreadPoolExecutor(4) as pool:
        assert [plans for _, plans in pool.map(plan, questions)] == sequential


def test_parser_weights_that_lack_a_part_are_refused_with_its_name(tmp_path: Path) -> None:
    weights = {name: part for name, part in trained_weights(SHIPPED).items() if name != "start"}
    save_parser(tmp_path, weights, ParserCard())
    with pytest.raises(InputError, match="there is no 'start'"):
        open_runtime(tmp_path)


def test_damaged_parser_weights_are_refused(tmp_path: Path) -> None:
    save_parser(tmp_path, {"start": torch.zeros(1)}, ParserCard())
    (tmp_path / "parser.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be used"):
        open_runtime(tmp_path)
