from __future__ import annotations

import random

import pytest

from casewright.graph import Limits, build_graph
from casewright.graph.random_plans import MAX_NEEDS, MAX_STEPS, Dag, random_dag, work_toolbox
from casewright.planner import parse_plan, validate_plan
from casewright.planner.fixed import FixedPlanner

DIAMOND = Dag((0.01, 0.02, 0.03, 0.04), ((), (0,), (0,), (1, 2)))


def test_critical_path_is_the_longest_chain() -> None:
    assert DIAMOND.critical_path() == pytest.approx(0.08)
    assert Dag((0.5, 0.2), ((), ())).critical_path() == 0.5


def test_waves_contain_steps_that_need_only_earlier_waves() -> None:
    assert DIAMOND.waves() == [[0], [1, 2], [3]]
    assert Dag((0.5, 0.2), ((), ())).waves() == [[0, 1]]


def test_random_plans_are_valid_and_within_their_bounds() -> None:
    rng, toolbox, sizes = random.Random(3), work_toolbox(), set()
    for _ in range(200):
        dag = random_dag(rng)
        sizes.add(len(dag.seconds))
        assert all(0.05 <= seconds <= 0.15 for seconds in dag.seconds)
        assert all(len(needs) <= MAX_NEEDS for needs in dag.needs)
        assert sorted(step for wave in dag.waves() for step in wave) == list(range(len(dag.needs)))
        plan = parse_plan(str(dag.plan()))
        validate_plan(plan, toolbox, question="how long", context={}, max_steps=MAX_STEPS)
    assert sizes == set(range(1, MAX_STEPS + 1))


def test_random_plans_are_equal_for_the_same_seed() -> None:
    first, repeated, other = (random.Random(seed) for seed in (5, 5, 6))
    dags = [random_dag(first) for _ in range(20)]
    assert [random_dag(repeated) for _ in range(20)] == dags
    assert [random_dag(other) for _ in range(20)] != dags


def test_graph_runs_the_plan_of_a_dag() -> None:
    planner = FixedPlanner(DIAMOND.plan())
    graph = build_graph(work_toolbox(), planner, limits=Limits(steps=4, concurrency=4))
    answer = graph.invoke({"question": "how long"})["answer"]
    steps = {step["step"]: step for step in answer["steps"]}
    assert all(step["status"] == "done" for step in steps.values())
    assert steps["s4"]["arguments"]["in0"] == "s2"
    assert steps["s4"]["arguments"]["in1"] == "s3"
    assert steps["s4"]["started"] >= steps["s3"]["started"] + 30
