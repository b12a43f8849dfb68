"""Measures planners on follow-up questions with their history, another history, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from casewright.bench.frozen import shipped_planners
from casewright.bench.harness import load_domain, mean, p50, tracked
from casewright.bench.planner import share_right, verdicts_of
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.evaluation import Verdict
from casewright.planner import AnnotatedQuery, Planner, Turn, plan_store
from casewright.planner.annotated import Conversation
from casewright.planner.named import make_planner
from casewright.tools import Toolbox

NOTES = (
    "Follow-ups are the turns after the first in test conversations, which took no part in "
    "training, tuning or plan cases. tools, arguments: shares of plans with right tools, and with "
    "right arguments. another's history: the history of the next conversation of the same length. "
    "share_unchanged: share of plans that an unrelated history does not change, for the queries of "
    "bench frozen, which need no history.",
)


def measure_conversations(domain_name: str) -> Report:
    """Plan the follow-ups in a domain's test conversations; ``InputError`` if there are none."""
    tested = load_domain(domain_name)
    domain, toolbox = tested.domain, tested.toolbox
    conversations = [item for item in domain.conversations() if item.is_test_data]
    if not conversations:
        raise InputError(
            f"Domain {domain_name!r} has no test conversations. Give --domain shopping."
        )
    follow_ups = [turn for conversation in conversations for turn in conversation.follow_ups]
    kinds = [kind for kind, _ in follow_ups]
    queries = [query for _, query in follow_ups]
    standalone = [query for query in domain.measuring_queries() if not query.record.tools_extra]
    rows: list[dict[str, Any]] = []
    figures = {"conversations": float(len(conversations)), "follow_ups": float(len(follow_ups))}
    figures["questions_that_stand_alone"] = float(len(standalone))
    with plan_store(domain.queries(), tested.uncached_encoder) as store:
        reader = domain.open_reader()
        for name in shipped_planners():
            planner = make_planner(name, store, reader)
            for label, histories in _histories(conversations).items():
                verdicts = verdicts_of(planner, queries, toolbox, f"{name}, {label}", histories)
                rows += _kind_rows({"planner": name, "history": label}, kinds, verdicts)
                suffix = f"{name}_{label}".replace(" ", "_").replace("'", "")
                figures[f"tool_accuracy_{suffix}"] = rows[-1]["tools"]  # of all kinds
                figures[f"argument_accuracy_{suffix}"] = rows[-1]["arguments"]
                figures[f"plan_ms_p50_{suffix}"] = p50([v.milliseconds for v in verdicts])
            unchanged_share = _share_unchanged(planner, standalone, toolbox, conversations)
            figures[f"share_unchanged_{name}_standing_alone"] = unchanged_share
    return Report("conversations", {"domain": domain.name}, figures, rows, NOTES)


def _histories(conversations: Sequence[Conversation]) -> dict[str, list[Sequence[Turn]]]:
    """Return, by label, a history of each follow-up: its own, none, and another conversation's."""
    own, unrelated = list[Sequence[Turn]](), list[Sequence[Turn]]()
    for number, conversation in enumerate(conversations):
        length = len(conversation.turns)
        following = [*conversations[number + 1 :], *conversations[:number]]
        other_conversation = next(item for item in following if len(item.turns) == length)
        own += [query.record.turns() for _, query in conversation.follow_ups]
        unrelated += [query.record.turns() for _, query in other_conversation.follow_ups]
    empty: list[Sequence[Turn]] = [()] * len(own)
    return {"own history": own, "no history": empty, "another's history": unrelated}


def _kind_rows(
    labels: dict[str, str], kinds: Sequence[str], verdicts: Sequence[Verdict]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each kind of follow-up, such as ``pronoun``, and then a row for all kinds."""
    for kind in [*sorted(set(kinds)), "all"]:
        pairs = zip(verdicts, kinds, strict=True)
        subset = [v for v, verdict_kind in pairs if kind in (verdict_kind, "all")]
        shares = {
            "tools": share_right(subset),
            "arguments": mean([v.right_arguments for v in subset]),
        }
        yield {**labels, "kind": kind, "count": len(subset), **shares}


def _share_unchanged(
    planner: Planner,
    queries: Sequence[AnnotatedQuery],
    toolbox: Toolbox,
    conversations: Sequence[Conversation],
) -> float:
    """Return the share of queries whose plan is the same after an unrelated conversation."""
    are_equal = []
    for number, query in enumerate(tracked("Questions that need no history", queries)):
        request = query.record.request(toolbox)
        unrelated = conversations[number % len(conversations)].turns[-1].record.turns()
        plans = [planner.plan(r).plan for r in (request, replace(request, history=unrelated))]
        are_equal.append(plans[0] == plans[1])
    return mean(are_equal)
