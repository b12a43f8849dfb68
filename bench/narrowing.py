"""What narrowing large toolboxes costs: toolboxes of the corpus joined to one, and planned with."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

from casewright.bench.harness import p50
from casewright.bench.report import Report
from casewright.bench.unseen_planners import Maker, maker
from casewright.bench.unseen_sets import drawn
from casewright.finetune.corpus import CorpusToolbox, Split, read_corpus
from casewright.finetune.evaluation import judge
from casewright.planner import AnnotatedQuery, plan_store
from casewright.planner.narrowing import MOST, NarrowingPlanner
from casewright.serve.planners import CASE_PLANNER, ModelSettings
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.progress import progress_bar
from casewright.tools import NO_EVIDENCE, Toolbox

NOTES = (
    "A toolbox whose messages are asked, joined with others drawn from the training split. kept: "
    f"among the {MOST} tools that narrowing keeps are all that the gold plan calls. right tools: "
    "of what the planner then plans; alone: with the toolbox by itself.",
    "The joined toolboxes are of as many applications, whose tools are alike, and a message does "
    "not say which it is for: one application with as many tools is easier.",
)


def measure_narrowing(
    joins: Sequence[int],
    *,
    planner: str = CASE_PLANNER,
    split: Split = "validation",
    cases: int = 0,
    seed: int = 0,
    encoder: CachedEncoder | None = None,
) -> Report:
    """Plan for messages with their own toolbox alone, and joined with others.

    Args:
        joins: How many toolboxes are joined, in turn.
        planner: The name of what plans with the tools that are kept.
        split: Whose messages are asked.
        cases: Messages of each such toolbox that the planner knows, which are not asked.
        seed: Of every draw.
        encoder: Of tools and messages; the packaged one by default.

    Raises:
        InputError: A toolbox has too few messages for these cases, or there is no such planner.
        DependencyError: A package that the planner needs is not installed.
    """
    make = maker(planner, ModelSettings())
    used, boxes, others = encoder or default_encoder(), read_corpus(split), read_corpus("training")
    rows = []
    with progress_bar("Planning", len(joins) * len(boxes)) as advance:
        for joined in joins:
            found: list[dict[str, float]] = []
            for number, box in enumerate(boxes):
                drawn_boxes = random.Random(f"{seed}:{number}").sample(others, len(others))
                whole = _joined(box, drawn_boxes[: joined - 1])
                found += _asked(box, whole, drawn(box, cases, seed), used, make)
                advance(1)
            rows.append({"toolboxes": joined, **_row(found)})
    return Report(
        bench="narrowing",
        settings={"planner": planner, "split": split, "cases": cases, "seed": seed, "most": MOST},
        figures={"messages": float(len(found))},
        rows=rows,
        notes=NOTES,
    )


def _joined(box: CorpusToolbox, others: Sequence[CorpusToolbox]) -> Toolbox:
    """Return a toolbox with the tools of others, but for those that have a name of its own."""
    tools = {tool.name: tool for other in reversed(others) for tool in other.toolbox}
    own = {tool.name: tool for tool in box.toolbox}
    return Toolbox({**own, **{name: t for name, t in tools.items() if name not in own}}.values())


def _asked(
    box: CorpusToolbox,
    whole: Toolbox,
    known: Sequence[AnnotatedQuery],
    encoder: CachedEncoder,
    make: Maker,
) -> list[dict[str, float]]:
    found = []
    with plan_store(known, encoder) as store:
        planner = make(store)
        narrowing = NarrowingPlanner(planner, encoder, store if known else None)
        for query in box.queries:
            needed = set(query.plan.tools) - {NO_EVIDENCE.name}
            if query in known or not needed:
                continue
            request = query.record.request(whole)
            started = time.perf_counter()
            narrowed = narrowing.narrowed(request)
            took = time.perf_counter() - started
            alone = planner.plan(query.record.request(box.toolbox))
            found.append(
                {
                    "tools": len(whole),
                    "kept": needed <= set(narrowed.toolbox.names),
                    "right tools": judge(query, planner.plan(narrowed).plan).tools,
                    "alone": judge(query, alone.plan).tools,
                    "ms": 1000 * took,
                }
            )
    return found


def _row(found: Sequence[dict[str, float]]) -> dict[str, Any]:
    shares = ("tools", "kept", "right tools", "alone")
    means = {name: sum(one[name] for one in found) / len(found) for name in shares}
    return {**means, "tools": round(means["tools"]), "ms": p50([one["ms"] for one in found])}
