"""From position and roll to a checked analysis; only the engine's decisions are retained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.domains.domain import OpenDomain
from casewright.domains.own_answer import OwnRequest
from casewright.errors import InputError
from casewright.stores import Binary, Case, CaseStore
from casewright.tools import Toolbox
from casewright_backgammon import domain
from casewright_backgammon.analysis import analysis_text
from casewright_backgammon.answerer import BoardAnswer, BoardAnswerer, most_similar_plays
from casewright_backgammon.board_image import board_png, render_board
from casewright_backgammon.board_reader import shipped_reader
from casewright_backgammon.case_base import shipped_decisions
from casewright_backgammon.cases import (
    DECISION,
    POSITION,
    case_text,
    decision_case,
    decision_schema,
    flaw_of,
    roll_text,
)
from casewright_backgammon.decision import Decision, decision_of
from casewright_backgammon.judge import NetworkJudge
from casewright_backgammon.latent import shipped_network
from casewright_backgammon.lines import json_of, lines_of
from casewright_backgammon.moves import legal_plays
from casewright_backgammon.page import page_of
from casewright_backgammon.position import START, Position
from tests.support.examples import at_most

NETWORK = shipped_network()
#: A decision with many legal plays.
SAMPLE = max(
    shipped_decisions()[500:520],
    key=lambda decision: len(legal_plays(decision.position, decision.dice)),
)


def read_position(image: bytes) -> Position:
    return shipped_reader().read(image).position


def store_of(decisions: Sequence[Decision]) -> CaseStore:
    store = CaseStore(decision_schema(read_position, NETWORK), ":memory:")
    store.add([decision_case(decision) for decision in decisions])
    return store


@pytest.fixture(scope="module")
def store() -> CaseStore:
    decisions = shipped_decisions()[::4]
    return store_of([decision for decision in decisions if decision.position != SAMPLE.position])


class TrustedJudge(NetworkJudge):
    """A judge with the network's figures that counts as a trusted engine."""

    name = "the test's engine"
    is_trusted = True


def answer_for(store: CaseStore, **options: object) -> BoardAnswer:
    judge = TrustedJudge(NETWORK) if options.get("retain") else NetworkJudge(NETWORK)
    return BoardAnswerer(store, NETWORK, judge).answer(SAMPLE.position, SAMPLE.dice, **options)  # type: ignore[arg-type]


def test_advice_is_a_legal_play_from_cases_of_the_roll_with_named_judge(
    store: CaseStore,
) -> None:
    answer = answer_for(store)
    legal = {play.text for play in legal_plays(SAMPLE.position, SAMPLE.dice)}
    assert len(answer.hits) == 3
    assert {hit.case.metadata["roll"] for hit in answer.hits} == {roll_text(SAMPLE.dice)}
    assert {attempt.play for attempt in answer.attempts} <= legal
    assert answer.advice.equity_loss == min(
        attempt.equity_loss for attempt in answer.attempts if attempt.equity_loss is not None
    )
    assert "without look-ahead" in answer.judged_by
    assert answer.analysis.endswith(f"Best play: {answer.decision.best.play}.")


def test_given_play_is_judged_even_if_it_is_the_worst(store: CaseStore) -> None:
    ranked = NetworkJudge(NETWORK).analyse(SAMPLE.position, SAMPLE.dice, None, ())
    worst = min(
        legal_plays(SAMPLE.position, SAMPLE.dice),
        key=lambda play: float(NETWORK.after_equities([play.after])[0]),
    )
    assert worst.text not in {candidate.play for candidate in ranked.candidates}
    answer = answer_for(store, move=worst.text)
    assert answer.decision.candidates[answer.decision.made_or_best_rank].play == worst.text
    assert answer.decision.equity_loss(answer.decision.made_or_best_rank) > 0
    assert worst.text in answer.analysis


def test_illegal_play_is_refused_and_no_case_is_retained(store: CaseStore) -> None:
    before = store.count()
    with pytest.raises(InputError, match="not legal with"):
        answer_for(store, move="24/1", retain=True)
    assert store.count() == before


def test_no_case_is_retained_without_the_engine_and_the_reason_is_given(store: CaseStore) -> None:
    before = store.count()
    judge = NetworkJudge(NETWORK)
    answer = BoardAnswerer(store, NETWORK, judge).answer(SAMPLE.position, SAMPLE.dice, retain=True)
    assert answer.retained is None
    assert "GNU Backgammon" in answer.not_retained
    assert store.count() == before


def test_decision_judged_by_the_engine_is_retained_once_with_its_picture() -> None:
    store = store_of(shipped_decisions()[:30])
    picture = Binary("image/png", board_png(SAMPLE.position))
    first = answer_for(store, retain=True, picture=picture)
    second = answer_for(store, retain=True, picture=picture)
    assert first.retained is not None
    assert second.retained is not None
    assert (first.retained.outcome, second.retained.outcome) == ("added", "unchanged")
    assert store.count() == 31


def test_board_read_with_given_colours_and_side_is_retained_at_its_position(tmp_path: Path) -> None:
    store = store_of(shipped_decisions()[:30])
    opened = OpenDomain(Toolbox([]), store, {"backgammon": store})
    file = tmp_path / "board.png"
    render_board(SAMPLE.position, own="dark", home="left").save(file)
    options = {
        "image": str(file),
        "roll": roll_text(SAMPLE.dice),
        "checkers": "dark",
        "home": "left",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(domain, "default_judge", TrustedJudge)
        answer = domain.answer_board(opened, OwnRequest({**options, "retain": True}))
    assert answer.record["retained"] == "added"
    hit = store.search({"board": SAMPLE.position.id}, 1, weights={POSITION: 1.0})[0]
    assert hit.score == pytest.approx(1, abs=1e-5)
    assert isinstance(hit.case.problem["picture"], Binary)


def test_won_gammon_has_equity_2_in_the_analysis() -> None:
    position = Position((2, *(0,) * 24), (*(0,) * 6, 15, *(0,) * 18))
    decision = NetworkJudge(NETWORK).analyse(position, (2, 1), None, ())
    assert decision.best.equity == 2
    assert decision.best.chances == (1, 1, 0, 0, 0)
    assert "gammons play no part" not in analysis_text(decision)


def test_case_whose_text_or_fields_contradict_its_decision_has_a_flaw() -> None:
    case = decision_case(SAMPLE)
    assert flaw_of(case) is None
    best = SAMPLE.best.play
    wrong_case = Case(
        case.problem,
        str(case.solution).replace(f"Best play: {best}", f"Best play: {SAMPLE.candidates[1].play}"),
        metadata=case.metadata,
    )
    assert flaw_of(wrong_case)
    assert flaw_of(Case(case.problem, case.solution))
    for change in ({"board": START.id}, {"play": SAMPLE.candidates[1].play}, {"roll": "6-6"}):
        changed_case = Case({**case.problem, **change}, case.solution, metadata=case.metadata)
        assert "differs from that of its decision" in str(flaw_of(changed_case))


def test_query_without_a_play_is_embedded_as_its_position() -> None:
    schema = decision_schema(read_position, NETWORK)
    position, decision = schema.facets
    assert (position.name, decision.name) == (POSITION, DECISION)
    query = {"board": SAMPLE.position.id}
    without_play = decision.vectors([query], query=True)
    assert np.allclose(without_play, position.vectors([query], query=True), atol=1e-6)
    raw = NETWORK.latents([SAMPLE.position, SAMPLE.after(0)])
    mean = (raw[0] + raw[1]) / 2
    with_play = decision.vectors([{**query, "play": SAMPLE.best.play}])
    assert np.allclose(with_play[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_query_without_a_valid_board_is_refused(store: CaseStore) -> None:
    for board in (7, "no position id"):
        with pytest.raises(InputError, match="position id"):
            store.search({"board": board}, 1)


def test_text_of_a_case_contains_position_roll_and_analysis() -> None:
    text = case_text(decision_case(SAMPLE))
    assert text.startswith("Player on roll (")
    assert f"Roll: {roll_text(SAMPLE.dice)}." in text
    assert text.endswith(f"Best play: {SAMPLE.best.play}.")


def test_legal_best_play_of_a_case_is_reused_unchanged() -> None:
    plays = legal_plays(SAMPLE.position, SAMPLE.dice)
    (reused,) = most_similar_plays(plays, [SAMPLE], NETWORK)
    assert reused.after == SAMPLE.after(0)
    assert most_similar_plays(plays, [], NETWORK) == []


def test_chat_model_gets_one_correction_and_its_second_play_is_judged(store: CaseStore) -> None:
    prompts: list[str] = []
    best = NetworkJudge(NETWORK).analyse(SAMPLE.position, SAMPLE.dice, None, ()).best.play
    replies = iter(["I like it. Best play: 24/1", f"This is better. Best play: {best}"])

    def chat(messages: Sequence[tuple[str, str]]) -> str:
        prompts.append(messages[-1][1])
        return next(replies)

    answerer = BoardAnswerer(store, NETWORK, NetworkJudge(NETWORK), chat, "a model")
    answer = answerer.answer(SAMPLE.position, SAMPLE.dice)
    assert [attempt.equity_loss for attempt in answer.attempts] == [None, 0]
    assert answer.answered_by == "a model"
    assert prompts[0].count("Decision ") == 3
    assert "not legal" in prompts[1]
    assert answer.advice.is_right


def test_roll_without_a_legal_play_is_answered_with_cannot_move(store: CaseStore) -> None:
    # A checker on the bar, and all the points where it could enter are held.
    closed = Position(
        (*(0,) * 12, 5, *(0,) * 4, 3, *(0,) * 6, 1), (2, 2, 2, 2, 2, 2, *(0,) * 18, 0)
    )
    answer = BoardAnswerer(store, NETWORK, NetworkJudge(NETWORK)).answer(
        closed, (3, 1), retain=True
    )
    assert [candidate.play for candidate in answer.decision.candidates] == ["cannot move"]
    assert answer.advice.is_right
    assert answer.retained is None


def test_page_shows_the_picture_and_all_boards_and_escapes_model_text(
    store: CaseStore,
) -> None:
    def chat(messages: Sequence[tuple[str, str]]) -> str:
        return f"<script>alert(1)</script> Best play: {SAMPLE.best.play}"

    answerer = BoardAnswerer(store, NETWORK, NetworkJudge(NETWORK), chat, "a model")
    page = page_of(answerer.answer(SAMPLE.position, SAMPLE.dice), b"picture")
    assert page.count("data:image/png;base64,") == 5
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_lines_and_json_contain_reading_cases_advice_and_check(store: CaseStore) -> None:
    answer = answer_for(store)
    lines = lines_of(answer)
    assert lines[0].startswith("Read: Player on roll")
    assert [line.split(",")[0] for line in lines].count("Case") == 3
    assert lines[-2].startswith("Check, by the network that ships")
    assert lines[-1] == f"Analysis: {answer.analysis}"
    document = json_of(answer)
    assert document["position_id"] == SAMPLE.position.id
    assert document["right"] == answer.advice.is_right
    assert document["candidates"][0]["move"] == answer.decision.best.play


@settings(deadline=None, max_examples=at_most(25))
@given(
    st.integers(0, len(shipped_decisions()) - 1), st.tuples(st.integers(1, 6), st.integers(1, 6))
)
def test_reused_plays_are_legal_for_any_position_and_roll(
    number: int, dice: tuple[int, int]
) -> None:
    position = shipped_decisions()[number].position
    plays = legal_plays(position, dice)
    cases = shipped_decisions()[number : number + 3]
    for play in most_similar_plays(plays, cases, NETWORK):
        assert play in plays
    judged = NetworkJudge(NETWORK).analyse(
        position, dice, None, most_similar_plays(plays, cases, NETWORK)
    )
    equities = [candidate.equity for candidate in judged.candidates]
    assert equities == sorted(equities, reverse=True)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"dice": [7, 1]}, "roll"),
        ({"dice": [3]}, "decision"),
        ({"position_id": "short"}, "position id"),
        ({"played": 9}, "decision"),
        ({"candidates": []}, "decision"),
        ({"candidates": [{"move": "2/xx", "equity": 0, "probs": [0] * 5}], "played": 0}, "read"),
        ({"candidates": [{"move": "8/5", "equity": "x", "probs": [0] * 5}]}, "decision"),
    ],
)
def test_invalid_decision_record_is_refused(change: dict[str, object], word: str) -> None:
    with pytest.raises(InputError, match=word):
        decision_of({**SAMPLE.to_dict(), **change})


def test_decision_is_equal_after_a_json_round_trip() -> None:
    assert decision_of(SAMPLE.to_dict()) == SAMPLE
    assert START.id == "4HPwATDgc/ABMA"
