"""The classifier baseline: its training, its plans, and requests that it cannot plan for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as bounded
from hypothesis import strategies as st

from casewright.domains.shopping import cases
from casewright.domains.shopping.tools import shopping_toolbox
from casewright.errors import DependencyError, InputError
from casewright.finetune.baselines import classifier_cache, question_features
from casewright.finetune.baselines.classifier_cache import cached_classifiers
from casewright.finetune.baselines.classifiers import (
    ClassifierPlanner,
    plan_labels,
    train_classifiers,
)
from casewright.finetune.evaluation import judge
from casewright.finetune.plan_shape import shape
from casewright.planner import AnnotatedQuery, PlanRequest, parse_plan
from casewright.planner.fallback import fallback_plan
from casewright.stores import CaseStore, default_encoder
from casewright.tools import Toolbox
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder
from tests.support.examples import at_most
from tests.support.shipped import shop_queries

#: A fast encoder, for tests that do not depend on the quality of the embeddings.
HASHING = HashingEncoder(64)
#: Queries to train on, and other queries to plan for.
KNOWN, HELD_OUT = shop_queries()[::10], shop_queries()[5::40]


@pytest.fixture(scope="module", autouse=True)
def limit_iterations() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_features, "MAX_ITERATIONS", 30)
        yield


@pytest.fixture(scope="module")
def toolbox() -> Toolbox:
    # The stores may be empty, since no test calls a tool.
    schemas = cases.schemas(HASHING)
    return shopping_toolbox({name: CaseStore(schema) for name, (schema, _) in schemas.items()})


@pytest.fixture(scope="module")
def planner() -> ClassifierPlanner:
    return train_classifiers(KNOWN, default_encoder())


def accuracy(plans: list[Any], field: str) -> float:
    verdicts = [judge(query, plan) for query, plan in zip(HELD_OUT, plans, strict=True)]
    return float(np.mean([getattr(verdict, field) for verdict in verdicts]))


def test_classifier_plans_for_unknown_queries_are_valid_and_beat_fallback_plans(
    planner: ClassifierPlanner, toolbox: Toolbox
) -> None:
    requests = [query.record.request(toolbox) for query in HELD_OUT]
    results = [planner.plan(request) for request in requests]
    for request, result in zip(requests, results, strict=True):
        request.validate(result.plan)
        assert result.planner == "classifiers"
        assert result.milliseconds > 0
    plans, fallbacks = [r.plan for r in results], [fallback_plan(request) for request in requests]
    assert accuracy(plans, "right_tools") > accuracy(fallbacks, "right_tools") + 0.2
    fallback_share = accuracy(fallbacks, "right_arguments")
    assert accuracy(plans, "right_arguments") > fallback_share + 0.15


def test_classifiers_write_only_plan_shapes_of_their_training_queries(
    planner: ClassifierPlanner, toolbox: Toolbox
) -> None:
    known_shapes = {shape(query.plan) for query in KNOWN}
    results = [planner.plan(query.record.request(toolbox)) for query in HELD_OUT]
    planned_shapes = {shape(result.plan) for result in results if not result.fallback}
    assert planned_shapes <= known_shapes
    assert len(planned_shapes) > 8


def test_classifiers_never_use_a_tool_that_the_request_lacks(
    planner: ClassifierPlanner, toolbox: Toolbox
) -> None:
    for name in toolbox.names:
        if name != "no_evidence":
            reduced = toolbox.without(name)
            for query in HELD_OUT[::8]:
                request = PlanRequest(query.query, reduced, query.record.context)
                plan = planner.plan(request).plan
                request.validate(plan)
                assert name not in plan.tools


def test_classifiers_never_use_extra_tools_of_a_request(
    planner: ClassifierPlanner, toolbox: Toolbox
) -> None:
    queries = [query for query in shop_queries() if query.record.tools_extra][::10]
    assert any(query.record.tools_extra for query in KNOWN)
    for query in queries:
        plan = planner.plan(query.record.request(toolbox)).plan
        assert set(plan.tools) <= set(toolbox.names)


def test_classifiers_give_a_toolbox_without_known_tools_the_fallback_plan() -> None:
    queries = [query for query in KNOWN if "no_evidence" not in query.plan.tools][:150]
    result = train_classifiers(queries, HASHING).plan(PlanRequest("Any news?", SHOP))
    assert "No plan that the classifiers know" in result.fallback
    assert str(result.plan) == "s1 = find(query=question)"


def test_classifiers_trained_on_the_same_queries_are_equal() -> None:
    first, second = (train_classifiers(KNOWN[:200], HASHING) for _ in range(2))
    assert np.array_equal(first.ensemble.weights, second.ensemble.weights)
    assert np.array_equal(first.arguments.weights, second.arguments.weights)
    assert first.ensemble.shapes == second.ensemble.shapes


def test_classifiers_use_a_context_field_only_if_it_is_present(
    planner: ClassifierPlanner, toolbox: Toolbox
) -> None:
    question = "Is it waterproof?"
    full = planner.plan(PlanRequest(question, toolbox, {"page": "product", "product_id": "P1"}))
    empty = planner.plan(PlanRequest(question, toolbox, {}))
    assert "context.product_id" in str(full.plan)
    assert "context." not in str(empty.plan)


@bounded(max_examples=at_most(60), deadline=None)
@given(st.text(min_size=1, max_size=60).filter(lambda text: text.strip().isprintable()))
def test_classifiers_give_any_question_a_valid_plan(
    planner: ClassifierPlanner, toolbox: Toolbox, question: str
) -> None:
    if not question.strip() or any(ord(char) < 32 for char in question):
        return
    request = PlanRequest(question, toolbox)
    request.validate(planner.plan(request).plan)


def test_classifiers_fill_literals_with_question_words_each_used_once(
    planner: ClassifierPlanner,
) -> None:
    plan = parse_plan(
        's1 = order_lookup(query="")\ns2 = shipment_status(order_id=s1.order_id)\n'
        's3 = order_lookup(query="")\ns4 = shipment_status(order_id=s3.order_id)'
    )
    question = "Where are my kettle and my tent?"
    filled = planner.arguments.fill(plan, question)
    texts = [str(step.argument("query")).strip('"') for step in filled.steps[::2]]
    assert question.index(texts[0]) < question.index(texts[1])
    assert not set(texts[0].split()) & set(texts[1].split())
    assert planner.arguments.fill(plan, "?") == plan


def test_plan_labels_name_tools_argument_sources_and_number_of_requests() -> None:
    plan = parse_plan(
        's1 = own(query="tent")\ns2 = fact(item_id=s1.item_id, query=question)\n'
        "s3 = fact(item_id=context.page, query=question)"
    )
    assert plan_labels(plan) == {
        "uses own",
        "uses fact",
        "repeats fact",
        "own.query<literal",
        "fact.query<question",
        "fact.item_id<own",
        "fact.item_id<context",
        "asks 2",
    }


def test_trained_classifiers_are_read_from_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CASEWRIGHT_HOME", str(tmp_path))
    counts: list[int] = []

    def train(queries: list[AnnotatedQuery], *arguments: Any) -> ClassifierPlanner:
        if len(arguments) == 1:
            counts.append(len(queries))
        return train_classifiers(queries, *arguments)

    monkeypatch.setattr(classifier_cache, "train_classifiers", train)
    queries = KNOWN[:60]
    first, second = (cached_classifiers(queries, HASHING) for _ in range(2))
    assert counts == [60]
    assert np.array_equal(first.ensemble.weights, second.ensemble.weights)
    assert np.array_equal(first.arguments.weights, second.arguments.weights)
    # Other queries or another encoder must not use the cached file.
    cached_classifiers(queries[1:], HASHING)
    cached_classifiers(queries, HashingEncoder(32))
    assert counts == [60, 59, 60]
    files = list((tmp_path / "cache" / "classifiers").iterdir())
    assert len(files) == 3
    for file in files:
        pickled = np.array([{"format": 1}], dtype=object)
        np.savez(file, ensemble=pickled, words=pickled)
    cached_classifiers(queries, HASHING)
    cached_classifiers(queries, HASHING)
    assert counts == [60, 59, 60, 60]


def test_classifiers_refuse_queries_that_all_call_the_same_tools() -> None:
    for queries in ([], KNOWN[:1], [q for q in shop_queries() if q.record.tools_removed][:9]):
        with pytest.raises(InputError, match="call the same tools"):
            train_classifiers(queries, HASHING)


def test_missing_scikit_learn_raises_an_error_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("sklearn", "sklearn.linear_model", "sklearn.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DependencyError, match=r"pip install 'casewright\[finetune\]'"):
        train_classifiers(KNOWN, HASHING)
