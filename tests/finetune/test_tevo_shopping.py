"""The rules that the training examples of all shopping queries must satisfy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from casewright.domains import find_domain
from casewright.finetune.example import PLAN_TASK, TrainingExample
from casewright.finetune.examples.tevo import VariedQuery
from casewright.finetune.examples.ttg import TASK_NAMES
from casewright.finetune.neighbours import question_key
from casewright.planner import parse_plan, render_prompt, violations
from casewright.tools import Toolbox
from tests.support.training_examples import calls_of, digest, shop_examples, shop_toolbox, tools_of

ExampleSets = list[tuple[VariedQuery, list[TrainingExample]]]


@pytest.fixture(scope="module")
def example_sets() -> ExampleSets:
    return shop_examples(find_domain("shopping").queries(), seed=1)


def test_every_query_gives_planning_first_and_every_task_has_many_examples(
    example_sets: ExampleSets,
) -> None:
    assert len(example_sets) >= 4800
    assert all(examples[0].task == PLAN_TASK for _, examples in example_sets)
    counts = Counter(example.task for _, examples in example_sets for example in examples)
    assert set(counts) == {PLAN_TASK, *TASK_NAMES}
    assert min(counts.values()) > 2000
    assert (
        len({example.id for _, examples in example_sets for example in examples}) == counts.total()
    )


def test_every_gold_plan_is_valid_with_the_toolbox_of_its_prompt(example_sets: ExampleSets) -> None:
    for varied, examples in example_sets:
        varied.request.validate(varied.plan)
        assert parse_plan(examples[0].completion) == varied.plan


def test_plans_of_secondary_tasks_are_valid_with_the_tools_of_their_prompt(
    example_sets: ExampleSets,
) -> None:
    for varied, examples in example_sets:
        request = varied.request
        for example in examples:
            if example.task not in (PLAN_TASK, "query_from_plan", "identify_tools"):
                toolbox = Toolbox(request.toolbox[name] for name in tools_of(example))
                errors = violations(
                    parse_plan(example.completion),
                    toolbox,
                    question=request.question,
                    context=request.context,
                )
                assert list(errors) == []


def test_planning_examples_have_the_prompt_used_in_serving(example_sets: ExampleSets) -> None:
    for varied, examples in example_sets:
        assert examples[0].prompt == render_prompt(varied.request, varied.plan_cases)


def test_prompts_show_only_calls_of_tools_that_they_list(example_sets: ExampleSets) -> None:
    shop_tools = set(shop_toolbox().names)
    for _, examples in example_sets:
        for example in examples:
            listed = set(tools_of(example))
            text = str(example.prompt)
            assert calls_of(text) <= listed
            # No question contains a name such as prod_search.
            assert not any(name in text for name in shop_tools - listed)


def test_tool_parameter_and_result_names_of_a_prompt_are_unique(example_sets: ExampleSets) -> None:
    for varied, _ in example_sets:
        toolbox = varied.request.toolbox
        assert len({name.casefold() for name in toolbox.names}) == len(toolbox)
        assert toolbox.names[-1] == "no_evidence"
        for tool in toolbox:
            assert len({parameter.name for parameter in tool.parameters}) == len(tool.parameters)
            assert len(set(tool.results)) == len(tool.results)


def test_plan_cases_and_examples_never_repeat_the_question(example_sets: ExampleSets) -> None:
    for varied, _ in example_sets:
        examples = [tool.example for tool in varied.request.toolbox if tool.example]
        questions = [question_key(example.query) for example in (*examples, *varied.plan_cases)]
        assert question_key(varied.query.query) not in questions
        assert len(set(questions)) == len(questions)


def test_plan_cases_are_valid_with_the_toolbox_of_their_prompt(example_sets: ExampleSets) -> None:
    for varied, _ in example_sets:
        for plan_case in varied.plan_cases:
            errors = violations(
                parse_plan(plan_case.plan),
                varied.request.toolbox,
                question=plan_case.query,
                context=varied.request.context,
            )
            assert list(errors) == []


def test_toolbox_is_not_larger_than_that_of_a_record_with_removed_tools(
    example_sets: ExampleSets,
) -> None:
    reduced = [varied for varied, _ in example_sets if varied.query.record.tools_removed]
    assert len(reduced) > 50
    for varied in reduced:
        limit = len(varied.query.record.request(shop_toolbox()).toolbox)
        assert len(varied.request.toolbox) <= limit


def test_extra_tools_of_a_record_keep_their_names(example_sets: ExampleSets) -> None:
    """Extra tools have no pool of names."""
    count = 0
    for varied, _ in example_sets:
        request = varied.query.record.request(shop_toolbox())
        extra = set(request.toolbox.names) - set(shop_toolbox().names)
        for step, renamed in zip(varied.query.plan.steps, varied.plan.steps, strict=True):
            if step.tool in extra:
                count += 1
                assert renamed.tool == step.tool
    assert count > 100


def test_prompts_vary_in_number_of_tools_names_and_plan_cases(example_sets: ExampleSets) -> None:
    sizes = Counter(len(varied.request.toolbox) for varied, _ in example_sets)
    names = Counter(name for varied, _ in example_sets for name in varied.request.toolbox.names)
    shots = Counter(len(varied.plan_cases) for varied, _ in example_sets)
    assert set(sizes) >= {2, 3, 4, 5, 6, 7}
    assert len([name for name, count in names.items() if count > 50]) > 70
    assert set(shots) == {0, 1, 2, 3, 4}


def test_same_seed_gives_the_same_examples_in_any_process() -> None:
    root = Path(__file__).parents[2]
    code = "from tests.support.training_examples import digest; print(digest(7, 60))"
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split() == [digest(7, 60)]
    assert digest(8, 60) != digest(7, 60)
