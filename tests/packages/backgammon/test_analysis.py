"""Analyses agree with the engine's figures and the board, and contradictions are found."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from casewright_backgammon.analysis import (
    analysis_text,
    best_play_of,
    chance_text,
    equity_text,
    error_name,
)
from casewright_backgammon.analysis_check import analysis_flaws
from casewright_backgammon.case_base import shipped_decisions
from casewright_backgammon.decision import AnalysedPlay, Decision
from casewright_backgammon.position import START, Position, side_of

#: Figures by GNU Backgammon at two plies.
OPENING = Decision(
    "test",
    START,
    (3, 1),
    (
        AnalysedPlay("8/5 6/5", 0.218, (0.551, 0.17, 0.008, 0.117, 0.005)),
        AnalysedPlay("24/23 13/10", -0.011, (0.496, 0.139, 0.006, 0.138, 0.006)),
        AnalysedPlay("24/20", -0.025, (0.494, 0.128, 0.005, 0.133, 0.005)),
        AnalysedPlay("13/9", -0.026, (0.49, 0.144, 0.007, 0.141, 0.007)),
    ),
    1,
)
RIGHT = (
    "With 3-1, 8/5 6/5 makes the 5 point. It is worth +0.218 and wins 55.1% of the games, 17.0% "
    "with a gammon. The play that was made, 24/23 13/10, gives up 0.229, a very bad play: it does "
    "not make the 5 point and wins 5.5 percentage points less often. Best play: 8/5 6/5."
)


@pytest.fixture(scope="module")
def sampled_decisions() -> list[Decision]:
    return random.Random(1).sample(shipped_decisions(), 150)


def test_analysis_check_finds_no_flaw_in_a_correct_text() -> None:
    assert analysis_flaws(RIGHT, OPENING) == []


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_analyses_of_shipped_decisions_have_no_flaws(
    sampled_decisions: list[Decision], seed: int
) -> None:
    flaws = [
        flaw
        for decision in sampled_decisions
        for flaw in analysis_flaws(analysis_text(decision, seed), decision)
    ]
    assert flaws == []


def test_analysis_ends_with_the_best_play_and_has_three_to_seven_sentences(
    sampled_decisions: list[Decision],
) -> None:
    for decision in sampled_decisions:
        text = analysis_text(decision)
        assert best_play_of(text) == decision.best.play
        assert text.endswith(f"Best play: {decision.best.play}.")
        # The last sentence is the play alone.
        assert 3 <= len(re.findall(r"[.](?: |$)", text)) <= 7


def test_analysis_names_the_play_that_was_made(sampled_decisions: list[Decision]) -> None:
    for decision in sampled_decisions:
        assert decision.candidates[decision.made_rank].play in analysis_text(decision)


def test_analysis_is_equal_for_the_same_seed_and_mostly_differs_for_another(
    sampled_decisions: list[Decision],
) -> None:
    assert all(
        analysis_text(decision, 3) == analysis_text(decision, 3) for decision in sampled_decisions
    )
    differ = sum(
        analysis_text(decision, 3) != analysis_text(decision, 4) for decision in sampled_decisions
    )
    assert differ > 0.9 * len(sampled_decisions)


def test_analysis_has_no_malformed_sentence(sampled_decisions: list[Decision]) -> None:
    for decision in sampled_decisions:
        text = analysis_text(decision)
        assert not re.search(r"  | ,|\.\.|:\.|,\.|\bNone\b|a [aeiou]|an [bcdg]|\b1 pips", text), (
            text
        )
        for sentence in re.split(r"(?<=[.]) ", text):
            assert re.match(r"[A-Z]|bar/|\d", sentence), text


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("+0.218", "+0.318"),
        ("+0.218", "-0.218"),
        ("0.229", "0.129"),
        ("55.1%", "45.1%"),
        ("17.0%", "12.0%"),
        ("5.5 percentage", "6.5 percentage"),
        ("less often", "more often"),
        ("With 3-1", "With 4-1"),
        ("makes the 5 point.", "makes the 4 point."),
        ("makes the 5 point.", "hits a checker."),
        ("makes the 5 point.", "leaves 11 shots out of 36."),
        ("not make the 5 point", "not split the back checkers"),
        ("a very bad play", "a doubtful play"),
        ("24/23 13/10,", "24/22 13/10,"),
        ("24/23 13/10,", "7/4,"),
        ("Best play: 8/5 6/5", "Best play: 24/20"),
        ("Best play: 8/5 6/5", "Best play: 8/4 6/5"),
        ("Best play: 8/5 6/5", "That is all"),
    ],
)
def test_analysis_check_finds_a_changed_statement(right: str, wrong: str) -> None:
    assert right in RIGHT
    assert analysis_flaws(RIGHT.replace(right, wrong), OPENING)


@pytest.mark.parametrize(
    ("decisions", "minimum"), [(15, 100), pytest.param(75, 500, marks=pytest.mark.slow)]
)
def test_analysis_check_finds_nearly_all_changed_figures(
    sampled_decisions: list[Decision], decisions: int, minimum: int
) -> None:
    figures = flagged = 0
    for decision in sampled_decisions[:decisions]:
        text = analysis_text(decision)
        for figure in re.finditer(r"(?<![\w/])[+-]?\d+\.\d+", text):
            changed = f"{float(figure[0]) + 0.3:+.3f}"
            if not figure[0].startswith(("+", "-")):
                changed = changed.removeprefix("+") if len(figure[0]) == 5 else "100.9"
            figures += 1
            flagged += bool(
                analysis_flaws(text[: figure.start()] + changed + text[figure.end() :], decision)
            )
    assert figures > minimum
    assert flagged > 0.99 * figures


@pytest.mark.parametrize(
    "text",
    [
        "The engine prefers it. **Best play:** 8/5 6/5",
        "Best play: `8/5 6/5`.",
        "First I thought of 24/20. best play: 8/5, 6/5",
        "Best play: 24/20.\nNo: Best play: 8/5 6/5",
    ],
)
def test_best_play_is_read_from_several_formats(text: str) -> None:
    assert best_play_of(text) == "8/5 6/5"


def test_best_play_of_a_text_without_one_is_none() -> None:
    assert best_play_of("8/5 6/5 is best.") is None


@pytest.mark.parametrize(
    "text",
    [
        "8/5 6/5 makes the five point and does not hit.",
        "If you rolled 4-2 next, you could hit.",
        "Making the 5 point with 8/5 6/5 is worth 0.229 more than 24/23 13/10.",
        "8/5 6/5 has an equity of 0.218 and wins 0.551 of the games; 13/9 is at -0.03.",
        "The opponent hits less often.",
        "The step 6/5 alone would not do.",
    ],
)
def test_analysis_check_accepts_statements_that_do_not_contradict_the_figures(text: str) -> None:
    assert analysis_flaws(f"{text} Best play: 8/5 6/5.", OPENING) == []


def test_analysis_says_that_there_is_only_one_play_or_none() -> None:
    forced = replace(OPENING, candidates=OPENING.candidates[:1], made_rank=0)
    assert "8/5 6/5 is the only play." in analysis_text(forced)
    no_play = (AnalysedPlay("cannot move", -0.5, (0.3, 0.1, 0.0, 0.2, 0.0)),)
    blocked = Position(side_of([(25, 1), (6, 5)]), side_of([(n, 2) for n in range(1, 7)]))
    text = analysis_text(replace(forced, position=blocked, candidates=no_play))
    assert "no checker can move" in text
    assert best_play_of(text) == "cannot move"
    assert analysis_flaws(text, replace(forced, position=blocked, candidates=no_play)) == []


def test_names_of_errors_follow_the_engines_thresholds() -> None:
    names = [error_name(lost) for lost in (0.029, 0.03, 0.06, 0.12)]
    assert names == ["", "doubtful", "bad", "very bad"]


def test_equities_and_chances_have_a_fixed_text_format() -> None:
    assert [equity_text(equity) for equity in (0.2181, -0.0004, -1.0)] == [
        "+0.218",
        "+0.000",
        "-1.000",
    ]
    assert chance_text(0.0815) in ("8.1%", "8.2%")
