"""The accuracy of planners on follow-ups with their history, no history, or an unrelated one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from casewright.bench.frozen import shipped_planners
from casewright.bench.harness import mean, p50, read_tested_domain, tracked, verdicts_of
from casewright.bench.planner import share_right
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.evaluation import Verdict
from casewright.planner import AnnotatedQuery, plan_store
from casewright.planner.annotated import Conversation
from casewright.planner.named import make_planner
from casewright.planner.request import Planner, Turn
from casewright.tools import Toolbox


def measure_conversations(domain_name: str) -> Report:
    """Plan for the follow-ups of a domain's conversations for measuring.

    Raises:
        InputError: The domain has no such conversations.
    """
    tested = read_tested_domain(domain_name)
    domain, toolbox = tested.domain, tested.toolbox
    conversations = [c for c in domain.conversations() if c.measuring]
    if not conversations:
        raise InputError(
            f"Domain {domain_name!r} has no conversations for measuring. Give --domain shopping."
        )
    follow_ups = [turn for conversation in conversations for turn in conversation.follow_ups]
    kinds, queries = [kind for kind, _ in follow_ups], [query for _, query in follow_ups]
    alone = [query for query in domain.measuring_queries() if not query.record.tools_extra]
    rows: list[dict[str, Any]] = []
    figures = {
        "conversations": float(len(conversations)),
        "follow_ups": float(len(follow_ups)),
        "questions_that_stand_alone": float(len(alone)),
    }
    with plan_store(domain.queries(), tested.uncached) as store:
        reader = domain.open_reader()
        for name in shipped_planners():
            planner = make_planner(name, store, reader)
            for label, histories in _histories(conversations).items():
                verdicts = verdicts_of(planner, queries, toolbox, f"{name}, {label}", histories)
                rows += _rows({"planner": name, "history": label}, kinds, verdicts)
                suffix = f"{name}_{label.replace(' ', '_').replace(chr(39), '')}"
                figures[f"tool_accuracy_{suffix}"] = rows[-1]["tools"]
                figures[f"argument_accuracy_{suffix}"] = rows[-1]["arguments"]
                figures[f"plan_ms_p50_{suffix}"] = p50([v.milliseconds for v in verdicts])
            unchanged = _unchanged(planner, alone, toolbox, conversations)
            figures[f"share_unchanged_{name}_standing_alone"] = unchanged
    return Report(
        bench="conversations",
        settings={"domain": domain.name},
        figures=figures,
        rows=rows,
        notes=[
            "All turns but the first of conversations without part in training, tuning or plan "
            "cases. Tools and arguments as in bench frozen. Another's history is that of the next "
            "conversation of the same length. share_unchanged: of the queries of bench frozen, "
            "which stand alone, the share whose plan an unrelated history does not change."
        ],
    )


def _histories(conversations: Sequence[Conversation]) -> dict[str, list[Sequence[Turn]]]:
    """Return each follow-up's histories by name: its own, none, another conversation's."""
    histories: list[Sequence[Turn]] = []
    others: list[Sequence[Turn]] = []
    for number, conversation in enumerate(conversations):
        length = len(conversation.turns)
        rest = [*conversations[number + 1 :], *conversations[:number]]
        other = next(c for c in rest if len(c.turns) == length)
        histories += [query.record.turns() for _, query in conversation.follow_ups]
        others += [query.record.turns() for _, query in other.follow_ups]
    return {
        "own history": histories,
        "no history": [()] * len(histories),
        "another's history": others,
    }


def _rows(
    head: dict[str, str], kinds: Sequence[str], verdicts: Sequence[Verdict]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each kind of follow-up, then a row for all."""
    for kind in [*sorted(set(kinds)), "all"]:
        subset = [v for v, of in zip(verdicts, kinds, strict=True) if kind in (of, "all")]
        shares = {"tools": share_right(subset), "arguments": mean([v.arguments for v in subset])}
        yield {**head, "kind": kind, "count": len(subset), **shares}


def _unchanged(
    planner: Planner,
    alone: Sequence[AnnotatedQuery],
    toolbox: Toolbox,
    conversations: Sequence[Conversation],
) -> float:
    """Return the share of plans that an unrelated conversation does not change."""
    same = []
    for number, query in enumerate(tracked("Questions that stand alone", alone)):
        request = query.record.request(toolbox)
        history = conversations[number % len(conversations)].turns[-1].record.turns()
        changed = planner.plan(replace(request, history=history)).plan
        same.append(planner.plan(request).plan == changed)
    return mean(same)
