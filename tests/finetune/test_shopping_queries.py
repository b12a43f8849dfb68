"""The rules that the shopping domain's annotated queries must satisfy."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from casewright.domains import find_domain
from casewright.finetune.evaluation import MULTI_STEP, judge, plan_class
from casewright.planner import AnnotatedQuery, Literal, StepRef
from casewright.tools import Toolbox, alias
from tests.support.encoders import HashingEncoder
from tests.support.shipped import shop_queries

RUN_LENGTH = 5
MAX_QUERIES = 5


def words(text: str) -> list[str]:
    return re.findall(r"\w+(?:['’]\w+)*", text.casefold())


def class_of(query: AnnotatedQuery) -> str:
    name = plan_class(query.plan)
    extra_names = {alias(tool["name"]) for tool in query.record.tools_extra}
    return "extra_tool" if name in extra_names else name


@pytest.fixture(scope="module")
def queries() -> list[AnnotatedQuery]:
    return shop_queries()


@pytest.fixture(scope="module")
def toolbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toolbox]:
    folder = tmp_path_factory.mktemp("shopping")
    domain = find_domain("shopping").open(folder, HashingEncoder())
    yield domain.toolbox
    domain.close()


def records(name: str) -> list[dict[str, Any]]:
    data = files("casewright.domains.shopping") / "data" / f"{name}.jsonl"
    return [json.loads(line) for line in data.read_text("utf-8").split("\n") if line]


def test_shopping_queries_have_unique_ids(queries: list[AnnotatedQuery]) -> None:
    assert len(queries) >= 900
    assert len({query.record.id for query in queries}) == len(queries)


def test_shopping_questions_with_their_contexts_are_unique(queries: list[AnnotatedQuery]) -> None:
    questions = [(" ".join(words(q.query)), json.dumps(q.record.context)) for q in queries]
    assert len(set(questions)) == len(questions)


def test_gold_plans_of_shopping_queries_are_valid(
    queries: list[AnnotatedQuery], toolbox: Toolbox
) -> None:
    for query in queries:
        query.record.request(toolbox).validate(query.plan)


def test_gold_plans_of_shopping_queries_satisfy_their_own_annotation(
    queries: list[AnnotatedQuery],
) -> None:
    wrong_ids = [q.record.id for q in queries if not judge(q, q.plan).right_arguments]
    assert wrong_ids == []


def test_shopping_queries_have_the_class_of_their_plan(queries: list[AnnotatedQuery]) -> None:
    # A search for something similar to an owned product is annotated as multi-step. Plans that
    # end in an extra tool of the record have the class of such tools.
    wrong_ids = [q.record.id for q in queries if q.label not in {class_of(q), MULTI_STEP}]
    assert wrong_ids == []
    assert all(len(q.plan.steps) > 1 for q in queries if q.label == MULTI_STEP)


def test_must_words_are_lower_case_and_belong_to_literals(queries: list[AnnotatedQuery]) -> None:
    for query in queries:
        for path, must_words in query.must.items():
            step, name = path.split(".")
            assert isinstance(query.plan.steps[int(step[1:]) - 1].argument(name), Literal)
            assert must_words
            assert all(word == word.lower() for word in must_words)


def test_product_id_of_a_step_comes_from_order_lookup_or_prod_search(
    queries: list[AnnotatedQuery],
) -> None:
    for query in queries:
        for step in query.plan.steps:
            value = step.argument("product_id")
            if isinstance(value, StepRef):
                source = query.plan.steps[value.step - 1].tool
                assert source in {"order_lookup", "prod_search"}


def test_each_shop_tool_is_used_by_at_least_100_queries(
    queries: list[AnnotatedQuery], toolbox: Toolbox
) -> None:
    assert len(toolbox) == 7
    for tool in toolbox.names:
        assert sum(tool in query.plan.tools for query in queries) >= 100


def test_no_five_words_outside_product_names_occur_in_more_than_five_queries(
    queries: list[AnnotatedQuery],
) -> None:
    names = [" ".join(words(product["title"])) for product in records("products")]
    ids_by_run: dict[str, set[object]] = defaultdict(set)
    for query in queries:
        query_words = words(query.query)
        for start in range(len(query_words) - RUN_LENGTH + 1):
            ids_by_run[" ".join(query_words[start : start + RUN_LENGTH])].add(query.record.id)
    assert len(ids_by_run) > 5000
    repeated = {
        run: len(ids)
        for run, ids in ids_by_run.items()
        if len(ids) > MAX_QUERIES and not any(f" {run} " in f" {name} " for name in names)
    }
    assert repeated == {}
