"""Tests of positions and their ids, legal plays, notation and features of plays."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright_backgammon.moves import Dice, apply_step, legal_plays
from casewright_backgammon.play_features import (
    PlayFeatures,
    hitting_rolls,
    longest_prime,
    phase,
    play_features,
)
from casewright_backgammon.play_text import dice_of, legal_play, parse_play
from casewright_backgammon.position import (
    BAR,
    START,
    Position,
    flaw,
    position_of_id,
    position_text,
    side_of,
)
from tests.support.examples import at_most

DICE = st.tuples(st.integers(1, 6), st.integers(1, 6))
ROLLS = [(large, small) for large in range(1, 7) for small in range(1, large + 1)]


def board(own: list[tuple[int, int]], other: list[tuple[int, int]]) -> Position:
    return Position(side_of(own), side_of(other))


def texts(position: Position, dice: Dice) -> set[str]:
    return {play.text for play in legal_plays(position, dice)}


def random_position(seed: int) -> Position:
    """Play random plays from the start, and stop before the game is over."""
    rng = random.Random(seed)
    position = START
    for _ in range(rng.randrange(90)):
        after = rng.choice(legal_plays(position, rng.choice(ROLLS))).after
        if not any(after.own):
            break
        position = after.flipped
    return position


def features_of(position: Position, dice: Dice, text: str) -> PlayFeatures:
    return play_features(position, legal_play(position, dice, text).after)


POSITIONS = st.integers(0, 10_000).map(random_position)


def test_start_position_has_the_gnu_backgammon_id_and_167_pips() -> None:
    assert START.id == "4HPwATDgc/ABMA"
    assert START.pips == (167, 167)
    assert START.off == (0, 0)
    assert "2 on 24" in position_text(START)


@given(POSITIONS)
@settings(max_examples=at_most(60), deadline=None)
def test_position_id_is_read_back_as_the_same_position(position: Position) -> None:
    assert position_of_id(position.id) == position
    assert position.flipped.flipped == position


@pytest.mark.parametrize("text", ["", "4HPwATDgc/ABM", "!HPwATDgc/ABMA", "//////////////"])
def test_invalid_position_id_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="position"):
        position_of_id(text)


def test_impossible_position_has_a_flaw_with_its_reason() -> None:
    assert not flaw(START)
    assert "at most" in flaw(board([(6, 16)], [(1, 1)]))
    assert "the game is over" in flaw(board([(6, 15)], []))
    assert "point 6" in flaw(board([(6, 2)], [(19, 2)]))
    closed = [(point, 2) for point in range(1, 7)]
    assert "closed board" in flaw(board([*closed, (25, 1)], [*closed, (25, 1)]))


def test_opening_roll_6_5_has_seven_legal_plays() -> None:
    assert texts(START, (6, 5)) == {
        "24/13",
        "24/18 13/8",
        "24/18 8/3",
        "13/2",
        "13/7 8/3",
        "13/8 13/7",
        "8/3 8/2",
    }


@given(POSITIONS, DICE)
@settings(max_examples=at_most(60), deadline=None)
def test_every_legal_play_is_read_back_from_its_notation(position: Position, dice: Dice) -> None:
    for play in legal_plays(position, dice):
        assert parse_play(position, play.text)[0] == play.after
        assert legal_play(position, dice, play.text).after == play.after
        # No checker of the other side is lost.
        assert sum(play.after.other) == sum(position.other)


@given(POSITIONS, DICE)
@settings(max_examples=at_most(60), deadline=None)
def test_legal_plays_equal_those_of_an_exhaustive_search(position: Position, dice: Dice) -> None:
    def sequences(current: Position, order: tuple[int, ...]) -> list[tuple[int, Position]]:
        further: list[tuple[int, Position]] = []
        for start in range(1, BAR + 2) if order else ():
            allowed = current.own[start - 1] and (start == BAR + 1 or not current.own[BAR])
            end = start - order[0]
            at_home = not any(current.own[6:])
            if end <= 0:
                behind = any(current.own[point - 1] for point in range(start + 1, BAR + 2))
                allowed = allowed and at_home and (end == 0 or not behind)
            if allowed and (end <= 0 or current.other[24 - end] < 2):
                after = apply_step(current, start, max(end, 0))[0]
                further += [(count + 1, final) for count, final in sequences(after, order[1:])]
        return further or [(0, current)]

    orders = [dice * 2] if dice[0] == dice[1] else list(permutations(dice))
    reachable = [
        (count, order[0], after) for order in orders for count, after in sequences(position, order)
    ]
    most = max(count for count, _, _ in reachable)
    expected = {(die, after) for count, die, after in reachable if count == most}
    if most == 1 and dice[0] != dice[1]:
        larger = max(die for die, _ in expected)
        expected = {(die, after) for die, after in expected if die == larger}
    assert {play.after for play in legal_plays(position, dice)} == {after for _, after in expected}


def test_a_checker_on_the_bar_enters_first() -> None:
    start = board([(25, 1), (6, 5), (8, 3), (13, 5), (24, 1)], [(6, 5), (8, 3), (13, 5), (24, 2)])
    assert all(text.startswith("bar/") for text in texts(start, (4, 2)))
    with pytest.raises(InputError, match="bar must enter first"):
        legal_play(start, (4, 2), "24/20 6/4")


def test_a_checker_on_the_bar_against_held_points_cannot_move() -> None:
    position = board([(25, 1), (6, 5)], [(6, 2), (5, 2), (4, 2), (1, 3)])
    assert texts(position, (6, 5)) == {"cannot move"}
    assert texts(position, (6, 3)) == {"bar/16"}


def test_larger_die_is_played_when_only_one_die_can_be_played() -> None:
    assert texts(board([(12, 1)], [(22, 2)]), (5, 4)) == {"12/7"}
    # The larger die cannot be played at all.
    assert texts(board([(12, 1)], [(22, 2), (18, 2)]), (4, 5)) == {"12/8"}


def test_both_dice_are_played_when_possible() -> None:
    # After 8/4 the 5 could not be played: 19 is held.
    position = board([(24, 1), (8, 1)], [(6, 2)])
    assert texts(position, (5, 4)) == {"24/15", "24/20 8/3"}
    with pytest.raises(InputError, match="more of the roll can be played"):
        legal_play(START, (3, 1), "8/5")


def test_a_held_point_cannot_be_entered_and_a_blot_is_hit() -> None:
    held = board([(8, 2)], [(20, 2), (1, 1)])
    assert texts(held, (3, 3)) == {"cannot move"}
    blot = board([(8, 2)], [(20, 1), (1, 1)])
    play = legal_play(blot, (3, 1), "8/5* 8/7")
    assert play.text == "8/7 8/5*"
    assert play.after.other[BAR] == 1


def test_higher_die_bears_off_only_from_the_highest_point() -> None:
    assert texts(board([(4, 1), (2, 1)], [(1, 1)]), (6, 5)) == {"4/off 2/off"}
    assert texts(board([(5, 1), (2, 1)], [(1, 1)]), (4, 3)) == {"5/off", "5/1 2/off"}
    with pytest.raises(InputError, match="outside the home board"):
        legal_play(board([(9, 1), (2, 2)], [(1, 1)]), (2, 1), "2/off 9/8")


def test_doubles_are_played_four_times() -> None:
    assert "6/off(4)" in texts(board([(6, 5)], [(1, 1)]), (6, 6))
    assert "8/4(2) 6/2(2)" in texts(START, (4, 4))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("13/11 13/11", "do not make these steps"),
        ("8/x", "cannot be read"),
        ("7/4 8/7", "no checker stands on 7"),
        ("24/19 6/5", "held by the other player"),
        ("5/8", "to a lower point"),
        ("", "something can be moved"),
        ("13/7 8/7", "the roll has 4"),
    ],
)
def test_illegal_play_is_refused_with_the_reason_and_legal_examples(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as error:
        legal_play(START, (3, 1), text)
    assert "Legal plays are for example" in str(error.value)


@pytest.mark.parametrize("text", ["3-1", "31", "3 1", "3:1", " 3,1 "])
def test_roll_is_read_from_several_notations(text: str) -> None:
    assert dice_of(text) == (3, 1)


@pytest.mark.parametrize("text", ["", "7-1", "3", "3-1-2", "a-b"])
def test_invalid_roll_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a roll"):
        dice_of(text)


def test_play_features_contain_points_blots_primes_and_slots() -> None:
    point = features_of(START, (3, 1), "8/5 6/5")
    assert (point.points_made, point.points_broken, point.blots) == ((5,), (), ())
    assert (5 in point.points_made, point.pips, point.unstacked) == (True, 4, (6,))
    bar = features_of(START, (6, 1), "13/7 8/7")
    assert (7 in bar.points_made, bar.prime_before, bar.prime) == (True, 1, 3)
    run = features_of(START, (6, 5), "24/13")
    assert (run.runs, run.left_back, run.anchors_broken, run.blots) == (1, 1, (24,), (24,))
    slot = features_of(START, (2, 1), "13/11 6/5")
    assert (slot.slots, slot.blots, slot.loose_hits) == ((5,), (5, 11), ())
    assert features_of(START, (4, 4), "24/20(2) 13/9(2)").anchors_made == (20,)


def test_play_features_contain_hits_entries_bear_offs_and_broken_contact() -> None:
    position = board([(25, 1), (8, 2), (6, 2)], [(20, 1), (6, 2), (3, 2)])
    hit = features_of(position, (3, 2), "bar/23 8/5*")
    assert (hit.hits, hit.loose_hits, hit.entered, hit.slots) == (1, (5,), 1, ())
    off = features_of(board([(4, 1), (2, 1)], [(1, 1)]), (6, 5), "4/off 2/off")
    assert (off.borne_off, off.pips, off.contact) == (2, 6, False)
    assert features_of(board([(9, 1), (8, 1)], [(17, 2)]), (2, 1), "9/7 8/7").breaks_contact


@pytest.mark.parametrize(
    ("position", "name"),
    [
        (START, "opening"),
        (board([(6, 5), (3, 2)], [(6, 5), (2, 2)]), "bear-off"),
        (board([(8, 5), (3, 2)], [(6, 5), (2, 2)]), "race"),
        (board([(6, 8), (3, 2)], [(24, 2), (5, 9)]), "contact bear-off"),
        (board([(6, 6), (8, 3), (13, 4), (7, 2)], [(20, 2), (5, 9), (13, 4)]), "holding"),
        (board([(24, 2), (22, 2), (6, 9), (7, 2)], [(20, 2), (5, 9), (13, 4)]), "back game"),
        (board([(24, 1), (22, 1), (6, 9), (7, 4)], [(20, 1), (5, 9), (13, 5)]), "middle"),
    ],
)
def test_phase_of_each_kind_of_position_is_recognised(position: Position, name: str) -> None:
    assert phase(position) == name


@given(POSITIONS)
@settings(max_examples=at_most(25), deadline=None)
def test_hitting_rolls_include_every_roll_with_a_legal_hit(position: Position) -> None:
    certain, possible = 0, 0
    for large, small in ROLLS:
        plays = legal_plays(position, (large, small))
        count = 2 - (large == small)
        if any("*" in play.text for play in plays):
            certain += count
        # A hit counts even if it is illegal because another play uses more of the roll.
        elif any(len(play.steps) > 1 for play in plays):
            possible += count
    assert certain <= hitting_rolls(position) <= certain + possible
    assert hitting_rolls(position, beyond=6) <= hitting_rolls(position)
    assert hitting_rolls(position, beyond=24) == 0


def test_a_prime_is_the_longest_row_of_made_points() -> None:
    assert longest_prime(side_of([(4, 2), (5, 2), (6, 3), (7, 2), (8, 1), (9, 2)])) == 4
