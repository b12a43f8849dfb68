"""Table 4: analyses written without context, and with three cases (MCBR-RAG, section 5.2).

The paper compares an answer's words with the reference's. Words can be alike and the play wrong, so
the truth stands beside them: whether the advised play is legal, and what equity it loses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casewright.bench.backgammon.bert_score import bert_scores
from casewright.bench.backgammon.represent import Representation
from casewright.bench.backgammon.retrieval import Asked, nearest
from casewright.domains.backgammon.advice import carried_over
from casewright.domains.backgammon.analysis import BEST_PLAY, analysis_text, best_play_of
from casewright.domains.backgammon.cases import case_text, decision_case
from casewright.domains.backgammon.decision import Decision
from casewright.domains.backgammon.judge import NetworkJudge
from casewright.domains.backgammon.latent import PositionNetwork
from casewright.domains.backgammon.moves import legal_plays
from casewright.domains.backgammon.play_text import play_of
from casewright.domains.backgammon.prompts import ROLE, prompt
from casewright.errors import InputError
from casewright.planner.chat_text import Chat
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar

#: Cases in a prompt.
CASES = 3
NONE, THREE, STRANGERS = "none", "three cases", "control: three cases of other decisions"
CONTEXTS = (NONE, THREE, STRANGERS)
REUSE = "reuse, no model"
NETWORK = "the network's own analysis"

#: From a decision and its cases, the nearest first, to an answer.
Answer = Callable[[Decision, Sequence[Decision]], str]


@dataclass(frozen=True, slots=True)
class Answerer:
    """Someone who analyses decisions.

    Attributes:
        name: As the table calls it.
        answer: Writes one.
        contexts: Which it can have.
    """

    name: str
    answer: Answer
    contexts: Sequence[str] = CONTEXTS


def answer_rows(
    asked: Asked,
    way: Representation,
    answerers: Sequence[Answerer],
    encoders: dict[str, Encoder],
    limit: int,
) -> list[dict[str, Any]]:
    """Return a row for each answerer and context.

    Args:
        asked: Queries and cases.
        way: Retrieves the cases: of the same roll, by the position alone.
        answerers: Who answers.
        encoders: By which whole texts are compared, by name.
        limit: Decisions that are answered, spread evenly over the queries.
    """
    places = np.linspace(0, len(asked.split.queries) - 1, limit).astype(int)
    queries = [asked.split.queries[place] for place in sorted(set(places.tolist()))]
    order = nearest(
        asked,
        way.positions(asked.split.queries),
        way.positions(asked.split.cases),
        CASES,
        same_roll=True,
    )[sorted(set(places.tolist()))]
    # Those of the decision half the list further on: as near to another, mostly of another roll.
    contexts = {
        NONE: order[:, :0],
        THREE: order,
        STRANGERS: np.roll(order, len(order) // 2, axis=0),
    }
    references = [analysis_text(query) for query in queries]
    rows = []
    total = sum(len(one.contexts) for one in answerers)
    with progress_bar("Answering", total, show=None) as advance:
        for one in answerers:
            for context in one.contexts:
                cases = [[asked.split.cases[c] for c in row] for row in contexts[context]]
                said = [one.answer(query, some) for query, some in zip(queries, cases, strict=True)]
                rows.append(_row(one.name, context, queries, said, references, encoders))
                advance(1)
    return rows


def reuse(network: PositionNetwork) -> Answerer:
    """Return who carries over the best play of the nearest case, with that case's words.

    Without a case it says nothing of the position, and names the first legal play by the alphabet.
    """

    def answer(query: Decision, cases: Sequence[Decision]) -> str:
        plays = legal_plays(query.position, query.dice)
        if not cases:
            first = min(plays, key=lambda play: play.text)
            return f"This play is legal with the roll. {BEST_PLAY} {first.text}."
        play = carried_over(plays, cases[:1], network)[0]
        words = analysis_text(cases[0]).rpartition(BEST_PLAY)[0]
        return f"{words}{BEST_PLAY} {play.text}."

    return Answerer(REUSE, answer)


def by_network(network: PositionNetwork) -> Answerer:
    """Return who analyses by the network's own figures, without a case."""
    judge = NetworkJudge(network)

    def answer(query: Decision, cases: Sequence[Decision]) -> str:
        return analysis_text(judge.analysed(query.position, query.dice, None, ()))

    return Answerer(NETWORK, answer, (NONE,))


def by_chat(name: str, chat: Chat) -> Answerer:
    """Return a chat model that is asked once, with or without cases."""

    def answer(query: Decision, cases: Sequence[Decision]) -> str:
        told = [case_text(decision_case(case)) for case in cases]
        return chat([("system", ROLE), ("user", prompt(query.position, query.dice, None, told))])

    return Answerer(name, answer)


def _row(
    name: str,
    context: str,
    queries: Sequence[Decision],
    said: Sequence[str],
    references: Sequence[str],
    encoders: dict[str, Encoder],
) -> dict[str, Any]:
    judged = [_lost(query, text) for query, text in zip(queries, said, strict=True)]
    known = [lost for lost, _ in judged if lost is not None]
    return {
        "table": "4",
        "answered by": name,
        "context": context,
        "BERTScore": float(bert_scores(said, references).mean()),
        **{
            f"cosine, {title}": _cosine(encoder, said, references)
            for title, encoder in encoders.items()
        },
        "legal play": len(known) / len(queries),
        "listed": float(np.mean([listed for _, listed in judged])),
        "lost, at least": float(np.mean(known)) if known else None,
        "best play": float(np.mean([listed and lost == 0 for lost, listed in judged])),
    }


def _lost(query: Decision, text: str) -> tuple[float | None, bool]:
    """Return what the advised play loses, ``None`` where none is legal, and whether it is listed.

    One that the engine's list lacks loses as much as the worst that it has, at least.
    """
    named = best_play_of(text)
    if named is None:
        return None, False
    try:
        after = play_of(query.position, query.dice, named).after
    except InputError:
        return None, False
    for place in range(len(query.candidates)):
        if query.after(place) == after:
            return query.lost(place), True
    return query.lost(len(query.candidates) - 1), False


def _cosine(encoder: Encoder, said: Sequence[str], references: Sequence[str]) -> float:
    own, other = (np.asarray(encoder.embed(list(some))) for some in (said, references))
    lengths = np.linalg.norm(own, axis=1) * np.linalg.norm(other, axis=1)
    return float(np.mean((own * other).sum(axis=1) / np.maximum(lengths, 1e-12)))
