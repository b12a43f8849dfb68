"""The loss by narrowing large toolboxes: toolboxes of the corpus are joined, and planned with."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from casewright.bench.harness import p50
from casewright.bench.report import Report
from casewright.bench.unseen_planners import Maker, maker
from casewright.bench.unseen_sets import drawn
from casewright.finetune.corpus import CorpusToolbox, Split, read_corpus
from casewright.finetune.evaluation import judge
from casewright.planner import AnnotatedQuery, Planner, plan_store
from casewright.planner.named import CASE_PLANNER, ModelSettings
from casewright.planner.narrowing import MOST, NarrowingPlanner
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.stores.progress import progress_bar
from casewright.tools import NO_EVIDENCE, Toolbox

NOTES = (
    "A toolbox whose messages are asked, joined with others drawn from the training split. kept: "
    f"among the {MOST} tools that narrowing keeps are all that the gold plan calls. right tools: "
    "of what the planner then plans; alone: with the toolbox by itself. ms: to narrow, at the "
    "median. kept is of all messages, the tools of the plans of the first ones of each toolbox.",
    "The joined toolboxes are of as many applications, whose tools are alike, and a message does "
    "not say which it is for: one application with as many tools is easier.",
)


def measure_narrowing(
    joins: Sequence[int],
    *,
    planner: str = CASE_PLANNER,
    split: Split = "validation",
    cases: int = 0,
    messages: int | None = None,
    first: int = 0,
    seed: int = 0,
    encoder: CachedEncoder | None = None,
) -> Report:
    """Plan for messages with their own toolbox alone, and joined with others.

    Args:
        joins: How many toolboxes are joined, in turn.
        planner: The name of the planner, which has the tools that are kept.
        split: Whose messages are asked.
        cases: Messages of each such toolbox that the planner knows, which are not asked.
        messages: Of each toolbox so many are planned for; all of them without it.
        first: Tools of a toolbox whose first plan is timed, with narrowing and without, with no
            text of it in any cache; none is where it is 0.
        seed: Of every draw.
        encoder: Of tools and messages; the packaged one by default.

    Raises:
        InputError: A toolbox has too few messages for these cases, or there is no such planner.
        DependencyError: A package that the planner needs is not installed.
    """
    make = maker(planner, ModelSettings())
    used, boxes, others = encoder or default_encoder(), read_corpus(split), read_corpus("training")
    measured: dict[int, list[Mapping[str, float]]] = {joined: [] for joined in joins}
    with progress_bar("Planning", len(boxes)) as advance:
        for number, box in enumerate(boxes):
            drawn_boxes = random.Random(f"{seed}:{number}").sample(others, len(others))
            wholes = {joined: _joined(box, drawn_boxes[: joined - 1]) for joined in joins}
            known = drawn(box, cases, seed)
            for joined, rows in _asked(box, wholes, known, used, make, messages).items():
                measured[joined] += rows
            advance(1)
    return Report(
        bench="narrowing",
        settings={
            "planner": planner,
            "split": split,
            "cases": cases,
            "messages": messages,
            "seed": seed,
            "most": MOST,
        },
        figures={
            "messages": float(len(measured[joins[0]])),
            **(_first_plans(first, others, make) if first else {}),
        },
        rows=[{"toolboxes": joined, **_row(rows)} for joined, rows in measured.items()],
        notes=NOTES,
    )


def _joined(box: CorpusToolbox, others: Sequence[CorpusToolbox]) -> Toolbox:
    """Return a toolbox with the tools of others, but for those that have a name of its own."""
    tools = {tool.name: tool for other in reversed(others) for tool in other.toolbox}
    own = {tool.name: tool for tool in box.toolbox}
    return Toolbox({**own, **{name: t for name, t in tools.items() if name not in own}}.values())


def _asked(
    box: CorpusToolbox,
    wholes: Mapping[int, Toolbox],
    known: Sequence[AnnotatedQuery],
    encoder: CachedEncoder,
    make: Maker,
    messages: int | None,
) -> dict[int, list[Mapping[str, float]]]:
    """Return for each joined toolbox a row of each message."""
    measured: dict[int, list[Mapping[str, float]]] = {joined: [] for joined in wholes}
    with plan_store(known, encoder) as store:
        planner = make(store)
        narrowings = {
            joined: NarrowingPlanner(planner, encoder, store if known else None)
            for joined in wholes
        }
        queries = [query for query in box.queries if query not in known and _needed(query)]
        for number, query in enumerate(queries):
            planned = messages is None or number < messages
            alone = _right_tools(planner, query, box.toolbox) if planned else 0.0
            for joined, whole in wholes.items():
                request = query.record.request(whole)
                narrowings[joined].prepare(whole)
                started = time.perf_counter()
                narrowed = narrowings[joined].narrowed(request)
                row = {
                    "tools": float(len(whole)),
                    "kept": float(_needed(query) <= set(narrowed.toolbox.names)),
                    "ms": 1000 * (time.perf_counter() - started),
                }
                if planned:
                    row["right tools"] = _right_tools(planner, query, narrowed.toolbox)
                    row["alone"] = alone
                measured[joined].append(row)
    return measured


def _needed(query: AnnotatedQuery) -> set[str]:
    return set(query.plan.tools) - {NO_EVIDENCE.name}


def _right_tools(planner: Planner, query: AnnotatedQuery, toolbox: Toolbox) -> float:
    return float(judge(query, planner.plan(query.record.request(toolbox)).plan).tools)


def _row(measured: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    def mean(name: str) -> float:
        values = [row[name] for row in measured if name in row]
        return sum(values) / len(values)

    return {
        "tools": round(mean("tools")),
        "kept": mean("kept"),
        "right tools": mean("right tools"),
        "alone": mean("alone"),
        "ms": p50([row["ms"] for row in measured]),
    }


def _first_plans(tools: int, boxes: Sequence[CorpusToolbox], make: Maker) -> dict[str, float]:
    """Return the seconds to the first plan with so many tools, narrowed and with all of them."""
    own = [tool for box in boxes for tool in box.toolbox if tool.name != NO_EVIDENCE.name]
    # Of as many applications that are alike: each tool once more, under another name.
    named = [(own[k % len(own)], k) for k in range(tools)]
    toolbox = Toolbox(replace(tool, name=f"{tool.name}_{k}") for tool, k in named)
    request = boxes[0].queries[0].record.request(toolbox)
    seconds = {}
    for narrowed in (True, False):
        with (
            TemporaryDirectory(prefix="casewright-narrowing-") as folder,
            plan_store([], CachedEncoder(MiniLMEncoder(), Path(folder))) as store,
        ):
            planner = make(store)
            encoder = CachedEncoder(MiniLMEncoder(), Path(folder))
            started = time.perf_counter()
            (NarrowingPlanner(planner, encoder) if narrowed else planner).plan(request)
            took = time.perf_counter() - started
        how = "narrowed" if narrowed else "with all"
        seconds[f"first plan of {tools} tools, {how}, s"] = took
    return seconds
