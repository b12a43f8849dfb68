"""Analysed decisions as cases: a board, a roll, the best play, and the analysis as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores import Binary, Case, CaseSchema, Facet
from casewright.stores.facet import Components, Embed
from casewright_backgammon.analysis import analysis_text
from casewright_backgammon.analysis_check import analysis_flaws
from casewright_backgammon.decision import Decision, decision_of
from casewright_backgammon.latent import PositionNetwork, mean_latents
from casewright_backgammon.moves import Dice
from casewright_backgammon.play_text import parse_play
from casewright_backgammon.position import Position, position_of_id, position_text
from casewright_mcbr.layers import LATENT_SIZE

#: Names of the facets.
POSITION, DECISION = "position", "decision"
#: Returns the position on a board, from the bytes of its picture.
ReadBoard = Callable[[bytes], Position]


def decision_schema(read: ReadBoard, network: PositionNetwork) -> CaseSchema:
    """Return the schema of decisions; two facets compare latents (MCBR-RAG, section 5.2).

    The facet ``decision`` is the paper's: the mean of the latents before and after the play, or,
    for a query without a play, the latent of the position. The facet ``position`` is the latent of
    the position alone. For queries without a play, ``position`` finds cases with better plays than
    ``decision`` does (``casewright bench backgammon``).

    A board is a picture or a position id, so cases need no pictures. ``read`` is the paper's
    function T, from a picture to a text. ``network`` is its function L, from this text to a latent.
    """

    def positions(problems: Sequence[Components]) -> list[Position]:
        return [position_of(problem, read) for problem in problems]

    def embed_positions(problems: Sequence[Components]) -> NDArray[np.float32]:
        return network.latents(positions(problems))

    def embed_decisions(problems: Sequence[Components]) -> NDArray[np.float32]:
        before = positions(problems)
        plays = [problem.get("play") for problem in problems]
        # Without a play, the position itself is taken for the position after the play.
        pairs = zip(before, plays, strict=True)
        after = [parse_play(position, play)[0] if play else position for position, play in pairs]
        return mean_latents(network.latents(before), network.latents(after))

    def facet(name: str, embed: Embed, *optional: str) -> Facet:
        return Facet(
            name=name,
            components=("board", *optional),
            dimension=LATENT_SIZE,
            embed_case=embed,
            embed_query=embed,
            describe=lambda problem: position_text(position_of(problem, read)),
            model=network.name,
            optional=optional,
            takes_text=False,
        )

    facets = (facet(POSITION, embed_positions), facet(DECISION, embed_decisions, "play"))
    return CaseSchema("backgammon", facets, support=case_text, verify=flaw_of)


def decision_case(decision: Decision, picture: Binary | None = None) -> Case:
    """Return the case of a decision and its best play; ``picture`` is only for display."""
    return Case(
        problem={
            # If the board were a picture, it would be read again, without the request's options.
            "board": decision.position.id,
            "roll": roll_text(decision.dice),
            "play": decision.best.play,
            **({"picture": picture} if picture else {}),
        },
        solution=analysis_text(decision),
        result=decision.best.equity,
        metadata={"roll": roll_text(decision.dice), "decision": decision.to_dict()},
    )


def roll_text(dice: Dice) -> str:
    """Return a roll as text, the larger die first: ``3-1``."""
    return f"{max(dice)}-{min(dice)}"


def decision_in(case: Case) -> Decision:
    """Return the decision of a case."""
    return decision_of(case.metadata["decision"])


def position_of(problem: Components, read: ReadBoard) -> Position:
    """Return the position on a problem's board; raise ``InputError`` if there is no board."""
    board = problem.get("board")
    if isinstance(board, Binary):
        return read(board.read())
    if isinstance(board, str):
        return position_of_id(board)
    raise InputError(
        f"{board!r:.80} is not a board. Give its picture as a Binary, or a position id."
    )


def case_text(case: Case) -> str:
    """Return a case as text: the position, the roll, the analysis."""
    decision = decision_in(case)
    return f"{position_text(decision.position)}\nRoll: {roll_text(decision.dice)}.\n{case.solution}"


def flaw_of(case: Case) -> str | None:
    """Return the reason to refuse a case in the step Revise; ``None`` if there is none."""
    try:
        decision = decision_in(case)
    except (KeyError, InputError) as error:
        return f"It has no analysed decision: {error}"
    expected = {"roll": roll_text(decision.dice), "play": decision.best.play}
    if isinstance(case.problem.get("board"), str):
        expected["board"] = decision.position.id
    if any(case.problem.get(name) != value for name, value in expected.items()):
        return "Its board, roll or play differs from that of its decision."
    flaws = analysis_flaws(str(case.solution), decision)
    return flaws[0] if flaws else None
