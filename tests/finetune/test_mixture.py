from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples.query_pool import in_validation, validation_items
from casewright.planner import Prompt

GROUPS = st.lists(st.integers(0, 9), min_size=1, max_size=60)


def examples(count: int, task: str = "plan") -> list[TrainingExample]:
    return [
        TrainingExample(f"{task}-{n}", task, "made", Prompt("", f"{task} {n}"), f"answer {n}")
        for n in range(count)
    ]


def test_without_duplicates_keeps_the_first_of_equal_examples() -> None:
    first, second = examples(2)
    duplicate = TrainingExample("again", "other", "made", first.prompt, first.completion)
    variant = TrainingExample("answered", "plan", "made", first.prompt, "another answer")
    unique = without_duplicates([first, second, duplicate, variant])
    assert unique == [first, second, variant]


@settings(max_examples=60, deadline=None)
@given(GROUPS, st.floats(0.01, 0.9), st.integers(0, 3))
def test_validation_takes_whole_groups_up_to_its_share(
    groups: list[int], share: float, seed: int
) -> None:
    if len(set(groups)) < 2:
        groups = [*groups, 10]
    validation = validation_items(groups, share, seed=seed)
    validation_groups = {groups[item] for item in validation}
    training_groups = {group for item, group in enumerate(groups) if item not in validation}
    assert validation_groups.isdisjoint(training_groups)
    assert validation_groups
    assert training_groups
    assert len(validation) <= round(share * len(groups)) or len(validation_groups) == 1


def test_validation_reaches_its_share_with_small_groups() -> None:
    validation = validation_items([number // 2 for number in range(1000)], 0.1)
    assert len(validation) == 100
    assert validation_items(list(range(10)), 0) == frozenset()


def test_validation_of_a_single_group_is_refused() -> None:
    with pytest.raises(InputError, match="validation = 0"):
        validation_items([1, 1, 1], 0.1)


def test_in_validation_selects_about_the_share_of_keys_by_seed() -> None:
    keys = [f"key {n}" for n in range(4000)]
    validation = {key for key in keys if in_validation(key, 0.1)}
    assert 320 < len(validation) < 480
    assert validation != {key for key in keys if in_validation(key, 0.1, seed=1)}
    assert not any(in_validation(key, 0.0) for key in keys)
