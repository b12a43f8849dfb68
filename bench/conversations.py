"""How good the planners are at follow-ups: with their history, without it, with another's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from casewright.bench.planner import UncachedQuestions
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.evaluation import Verdict, judge
from casewright.planner import AnnotatedQuery, PlanRequest, plan_store
from casewright.planner.conversations import Conversation
from casewright.planner.request import Planner, Turn
from casewright.planner.shipped import SHIPPED, is_shipped
from casewright.serve.planners import CASE_PLANNER, SHAPE_PLANNER, make_planner
from casewright.serve.session import open_reader
from casewright.stores import default_encoder
from casewright.stores.paths import data_folder
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox

FollowUps = Sequence[tuple[str, AnnotatedQuery]]
#: Turns before a follow-up, by its place among the follow-ups.
Histories = Callable[[int], Sequence[Turn]]


def measure_conversations(domain_name: str) -> Report:
    """Plan for the follow-ups of the conversations that are for measuring only.

    Args:
        domain_name: A domain that has such conversations.

    Raises:
        InputError: The domain has none.
    """
    from casewright.domains import find_domain

    domain = find_domain(domain_name)
    kept = [one for one in domain.conversations() if one.measuring]
    if not kept:
        raise InputError(
            f"Domain {domain_name!r} has no conversations for measuring. Try --domain shopping."
        )
    follow_ups = [turn for one in kept for turn in one.follow_ups]
    alone = [query for query in domain.measuring_queries() if not query.record.tools_extra]
    encoder = default_encoder()
    opened = domain.open(data_folder() / domain.name, encoder, False)
    toolbox = opened.toolbox
    opened.close()
    rows: list[dict[str, Any]] = []
    figures = {
        "conversations": float(len(kept)),
        "follow_ups": float(len(follow_ups)),
        "questions_that_stand_alone": float(len(alone)),
    }
    names = (CASE_PLANNER, SHAPE_PLANNER, *((SHIPPED,) if is_shipped() else ()))
    with plan_store(domain.queries(), UncachedQuestions(encoder)) as store:
        reader = open_reader(domain)
        for name in names:
            planner = make_planner(name, store, reader, encoder=UncachedQuestions(encoder))
            for label, histories in _histories(kept).items():
                verdicts = _verdicts(planner, follow_ups, toolbox, histories, f"{name}, {label}")
                rows += _rows(name, label, follow_ups, verdicts)
                suffix = f"{name}_{label.replace(' ', '_').replace(chr(39), '')}"
                figures[f"tool_accuracy_{suffix}"] = rows[-1]["tools"]
                figures[f"argument_accuracy_{suffix}"] = rows[-1]["arguments"]
                spent = [verdict.milliseconds for verdict in verdicts]
                figures[f"plan_ms_p50_{suffix}"] = float(np.median(spent))
            figures[f"share_unchanged_{name}_standing_alone"] = _unchanged(
                planner, alone, toolbox, kept
            )
    return Report(
        bench="conversations",
        settings={"domain": domain.name},
        figures=figures,
        rows=rows,
        notes=[
            "Turns after the first of conversations that took no part in training, tuning or plan "
            "cases. Tools and arguments as in bench frozen. Another's history is that of the next "
            "conversation of the same length. share_unchanged: of the queries of bench frozen, "
            "which stand alone, the share whose plan stays as it is when a conversation on "
            "something else went before.",
        ],
    )


def _histories(kept: Sequence[Conversation]) -> dict[str, Histories]:
    """Return the turns before each follow-up: its own, none, another conversation's."""
    own, others = [], []
    for at, conversation in enumerate(kept):
        length = len(conversation.turns)
        alike = [*kept[at + 1 :], *kept[:at]]
        other = next(one for one in alike if len(one.turns) == length)
        own += [query.record.turns() for _, query in conversation.follow_ups]
        others += [query.record.turns() for _, query in other.follow_ups]
    return {
        "own history": lambda place: own[place],
        "no history": lambda _: (),
        "another's history": lambda place: others[place],
    }


def _verdicts(
    planner: Planner, follow_ups: FollowUps, toolbox: Toolbox, histories: Histories, label: str
) -> list[Verdict]:
    found = []
    with progress_bar(label, len(follow_ups)) as advance:
        for place, (_, query) in enumerate(follow_ups):
            request = replace(query.record.request(toolbox), history=histories(place))
            result = planner.plan(request)
            found.append(judge(query, result.plan, result.milliseconds))
            advance(1)
    return found


def _rows(
    name: str, label: str, follow_ups: FollowUps, verdicts: Sequence[Verdict]
) -> list[dict[str, Any]]:
    """Return a row for each kind of follow-up, then one for all."""
    kinds = sorted({kind for kind, _ in follow_ups})
    rows = []
    for kind in [*kinds, "all"]:
        own = [
            verdict
            for (of, _), verdict in zip(follow_ups, verdicts, strict=True)
            if kind in (of, "all")
        ]
        rows.append(
            {
                "planner": name,
                "history": label,
                "kind": kind,
                "count": len(own),
                "tools": float(np.mean([verdict.tools for verdict in own])),
                "arguments": float(np.mean([verdict.arguments for verdict in own])),
            }
        )
    return rows


def _unchanged(
    planner: Planner,
    alone: Sequence[AnnotatedQuery],
    toolbox: Toolbox,
    kept: Sequence[Conversation],
) -> float:
    """Return the share of plans that a conversation on something else leaves as they are."""
    same = []
    with progress_bar("Questions that stand alone", len(alone)) as advance:
        for place, query in enumerate(alone):
            request: PlanRequest = query.record.request(toolbox)
            before = kept[place % len(kept)].turns[-1].record.turns()
            changed = planner.plan(replace(request, history=before)).plan
            same.append(planner.plan(request).plan == changed)
            advance(1)
    return float(np.mean(same)) if same else float("nan")
