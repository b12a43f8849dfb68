from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.examples.example import TrainingExample
from casewright.finetune.examples.mixture import instructions_beside, mix, without_duplicates
from casewright.finetune.examples.split import in_validation, validation_items
from casewright.planner import Prompt

GROUPS = st.lists(st.integers(0, 9), min_size=1, max_size=60)


def examples(count: int, task: str = "plan") -> list[TrainingExample]:
    return [
        TrainingExample(f"{task}-{n}", task, "made", Prompt("", f"{task} {n}"), f"answer {n}")
        for n in range(count)
    ]


def test_the_share_is_of_the_whole_set() -> None:
    mixed = mix(examples(75), examples(40, "instruction"), 0.25)
    assert Counter(one.task for one in mixed) == {"plan": 75, "instruction": 25}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.floats(0, 0.9))
def test_every_share_is_met_to_half_an_example(plans: int, share: float) -> None:
    wanted = instructions_beside(plans, share)
    mixed = mix(examples(plans), examples(wanted, "instruction"), share)
    assert len(mixed) == plans + wanted
    assert abs(wanted * (1 - share) - share * plans) <= 0.5 + 1e-9


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="from 0 and below 1"):
        mix(examples(3), examples(3, "instruction"), share)


def test_too_few_instructions_are_refused_with_how_many_there_are() -> None:
    with pytest.raises(InputError, match=r"needs 50 instructions .* there are 10: .* 0\.167"):
        mix(examples(50), examples(10, "instruction"), 0.5)


def test_too_few_instructions_may_repeat_each_as_often_as_the_others() -> None:
    mixed = mix(examples(50), examples(20, "instruction"), 0.5, repeat=True)
    taken = [one for one in mixed if one.task == "instruction"]
    assert len(taken) == 50
    assert len({one.id for one in mixed}) == len(mixed)
    counts = Counter(one.completion for one in taken)
    assert (len(counts), set(counts.values())) == (20, {2, 3})


def test_nothing_to_repeat_is_refused_too() -> None:
    with pytest.raises(InputError, match="there are 0"):
        mix(examples(50), [], 0.5, repeat=True)
    assert mix(examples(2), [], 0.0, repeat=True) in (examples(2), examples(2)[::-1])


def test_the_seed_decides_over_choice_and_order() -> None:
    given_ = (examples(40), examples(40, "instruction"), 0.2)
    assert mix(*given_, seed=1) == mix(*given_, seed=1)
    first, second = mix(*given_, seed=1), mix(*given_, seed=2)
    assert [one.id for one in first] != [one.id for one in second]
    assert {one.id for one in first} != {one.id for one in second}


def test_of_examples_with_one_prompt_and_completion_the_first_is_kept() -> None:
    first, second = examples(2)
    again = TrainingExample("again", "other", "made", first.prompt, first.completion)
    answered = TrainingExample("answered", "plan", "made", first.prompt, "another answer")
    kept = without_duplicates([first, second, again, answered])
    assert kept == [first, second, answered]


@settings(max_examples=60, deadline=None)
@given(GROUPS, st.floats(0.01, 0.9), st.integers(0, 3))
def test_validation_takes_whole_groups_up_to_its_share(
    groups: list[int], share: float, seed: int
) -> None:
    if len(set(groups)) < 2:
        groups = [*groups, 10]
    drawn = validation_items(groups, share, seed=seed)
    inside = {groups[item] for item in drawn}
    outside = {group for item, group in enumerate(groups) if item not in drawn}
    assert inside.isdisjoint(outside)
    assert inside
    assert outside
    assert len(drawn) <= round(share * len(groups)) or len(inside) == 1


def test_validation_reaches_its_share_where_the_groups_are_small() -> None:
    drawn = validation_items([number // 2 for number in range(1000)], 0.1)
    assert len(drawn) == 100
    assert validation_items(list(range(10)), 0) == frozenset()


def test_queries_that_are_all_alike_cannot_be_split() -> None:
    with pytest.raises(InputError, match="validation = 0"):
        validation_items([1, 1, 1], 0.1)


def test_a_share_of_all_keys_is_for_validation_by_seed() -> None:
    keys = [f"key {n}" for n in range(4000)]
    drawn = {key for key in keys if in_validation(key, 0.1)}
    assert 320 < len(drawn) < 480
    assert drawn != {key for key in keys if in_validation(key, 0.1, seed=1)}
    assert not any(in_validation(key, 0.0) for key in keys)
