"""Drills: invented toolboxes, whose plans follow from the prompt and from nothing else."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.examples.drills import DrillSettings, drills, question_words
from casewright.finetune.examples.example import TrainingExample
from casewright.planner import parse_plan

WORDS = question_words(
    f"{a}{b}{c} stone lamp" for a in "bdfgklmn" for b in ("ar", "il", "on", "us") for c in "aeiou"
)
SETTINGS = DrillSettings(toolboxes=30, questions=6)


@pytest.fixture(scope="module")
def made() -> list[TrainingExample]:
    return drills(SETTINGS, WORDS, 0)


def test_there_are_so_many_and_those_of_a_toolbox_share_a_head(
    made: list[TrainingExample],
) -> None:
    heads = Counter((one.source, one.prompt.head) for one in made)
    assert len(made) == 30 * 6
    assert sorted(heads.values()) == [6] * 30
    assert len({one.id for one in made}) == len(made)


def test_every_word_of_a_plan_stands_in_its_prompt(made: list[TrainingExample]) -> None:
    for one in made:
        for word in re.findall(r"[a-z_]{3,}", one.completion):
            assert word in str(one.prompt), (one.id, word)


def test_plans_have_all_forms(made: list[TrainingExample]) -> None:
    plans = [parse_plan(one.completion) for one in made]
    assert {len(plan.steps) for plan in plans} >= {1, 2, 3}
    texts = "\n".join(one.completion for one in made)
    for form in ("=question", "=context.", "=s1.", '="', "no_evidence()"):
        assert form in texts


def test_no_question_is_shown_with_its_plan_in_its_own_prompt(made: list[TrainingExample]) -> None:
    for one in made:
        question = one.prompt.tail.rpartition("Question: ")[2].removesuffix("\nPlan:")
        assert f"Question: {question}\nPlan:\n" not in str(one.prompt)


@given(st.integers(0, 2**32 - 1))
def test_the_same_seed_makes_the_same_drills(seed: int) -> None:
    settings = DrillSettings(toolboxes=1, questions=2)
    assert drills(settings, WORDS, seed) == drills(settings, WORDS, seed)


def test_too_few_words_are_refused_with_how_many_are_needed() -> None:
    with pytest.raises(InputError, match="80 are needed"):
        drills(SETTINGS, WORDS[:79], 0)
    assert drills(DrillSettings(), [], 0) == []
