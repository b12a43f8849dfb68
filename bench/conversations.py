"""The accuracy of planners on follow-ups: with their history, without it, with another's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from casewright.bench.frozen import shipped_planners
from casewright.bench.harness import mean, p50, read_ground, verdicts_of
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.evaluation import Verdict
from casewright.planner import AnnotatedQuery, plan_store
from casewright.planner.conversations import Conversation
from casewright.planner.named import make_planner
from casewright.planner.request import Planner, Turn
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox


def measure_conversations(domain_name: str) -> Report:
    """Plan for the follow-ups of the conversations that are for measuring only.

    Raises:
        InputError: The domain has none.
    """
    ground = read_ground(domain_name)
    domain, toolbox = ground.domain, ground.toolbox
    kept = [talk for talk in domain.conversations() if talk.measuring]
    if not kept:
        raise InputError(
            f"Domain {domain_name!r} has no conversations for measuring. Try --domain shopping."
        )
    follow_ups = [turn for talk in kept for turn in talk.follow_ups]
    alone = [query for query in domain.measuring_queries() if not query.record.tools_extra]
    rows: list[dict[str, Any]] = []
    figures = {
        "conversations": float(len(kept)),
        "follow_ups": float(len(follow_ups)),
        "questions_that_stand_alone": float(len(alone)),
    }
    with plan_store(domain.queries(), ground.uncached) as store:
        reader = domain.open_reader()
        for name in shipped_planners():
            planner = make_planner(name, store, reader)
            for label, histories in _histories(kept).items():
                queries = [query for _, query in follow_ups]
                verdicts = verdicts_of(planner, queries, toolbox, f"{name}, {label}", histories)
                own = _rows([kind for kind, _ in follow_ups], verdicts)
                rows += [{"planner": name, "history": label, **row} for row in own]
                suffix = f"{name}_{label.replace(' ', '_').replace(chr(39), '')}"
                figures[f"tool_accuracy_{suffix}"] = rows[-1]["tools"]
                figures[f"argument_accuracy_{suffix}"] = rows[-1]["arguments"]
                figures[f"plan_ms_p50_{suffix}"] = p50([v.milliseconds for v in verdicts])
            unchanged = _unchanged(planner, alone, toolbox, kept)
            figures[f"share_unchanged_{name}_standing_alone"] = unchanged
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


def _histories(kept: Sequence[Conversation]) -> dict[str, list[Sequence[Turn]]]:
    """Return the turns before each follow-up: its own, none, another conversation's."""
    own: list[Sequence[Turn]] = []
    others: list[Sequence[Turn]] = []
    for at, conversation in enumerate(kept):
        length = len(conversation.turns)
        alike = [*kept[at + 1 :], *kept[:at]]
        other = next(talk for talk in alike if len(talk.turns) == length)
        own += [query.record.turns() for _, query in conversation.follow_ups]
        others += [query.record.turns() for _, query in other.follow_ups]
    return {"own history": own, "no history": [()] * len(own), "another's history": others}


def _rows(kinds: Sequence[str], verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return a row for each kind of follow-up, then one for all."""
    rows = []
    for kind in [*sorted(set(kinds)), "all"]:
        own = [v for v, of in zip(verdicts, kinds, strict=True) if kind in (of, "all")]
        shares = {"tools": [v.tools for v in own], "arguments": [v.arguments for v in own]}
        row = {name: mean(right) for name, right in shares.items()}
        rows.append({"kind": kind, "count": len(own), **row})
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
        for number, query in enumerate(alone):
            request = query.record.request(toolbox)
            before = kept[number % len(kept)].turns[-1].record.turns()
            changed = planner.plan(replace(request, history=before)).plan
            same.append(planner.plan(request).plan == changed)
            advance(1)
    return mean(same)
