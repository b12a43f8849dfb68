"""The accuracy that planners lose if a large toolbox is narrowed to the likely tools."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from casewright.bench.harness import mean, p50, timed, tracked
from casewright.bench.report import Report
from casewright.bench.toolbox_planners import PlannerFactory, planner_factory
from casewright.bench.unseen import draw_cases
from casewright.errors import InputError
from casewright.finetune.corpus import CorpusToolbox, Split, read_corpus
from casewright.finetune.evaluation import judge
from casewright.planner import AnnotatedQuery, Planner, plan_store
from casewright.planner.named import CASE_PLANNER, ModelSettings
from casewright.planner.narrowing import MAX_TOOLS, NarrowingPlanner
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.tools import NO_EVIDENCE, Toolbox

NOTES = (
    "The toolbox of each message is joined with random training toolboxes. kept: share of "
    f"messages for which the {MAX_TOOLS} tools after narrowing include all tools of the gold plan. "
    "right tools: share of the plans from the narrowed toolbox that have the right tools; alone: "
    "the same share of the plans from the message's toolbox alone. ms: median time of narrowing. "
    "With --messages, right tools and alone count only the first messages of each toolbox.",
    "A joined toolbox holds several applications with similar tools, and no message names its "
    "application. One application with as many tools is easier.",
)


def measure_narrowing(
    union_sizes: Sequence[int],
    *,
    planner: str = CASE_PLANNER,
    split: Split = "validation",
    cases: int = 0,
    messages: int | None = None,
    first_plan_tools: int = 0,
    seed: int = 0,
    encoder: CachedEncoder | None = None,
) -> Report:
    """Plan messages from their own toolbox, and from narrowed unions of ``union_sizes`` toolboxes.

    Args:
        cases: The number of each toolbox's messages that become plan cases, and are not measured.
        messages: The number of each toolbox's messages to plan; ``None`` for all.
        first_plan_tools: The size of a toolbox whose first plan is timed with empty caches, with
            and without narrowing; if it is 0, no first plan is timed.

    Raises:
        InputError: A toolbox has too few messages for ``cases``, or the planner does not exist.
    """
    factory = planner_factory(planner, ModelSettings())
    encoder, boxes = encoder or default_encoder(), read_corpus(split)
    training_boxes = read_corpus("training")
    rows_by_size: dict[int, list[Mapping[str, float]]] = defaultdict(list)
    for number, box in enumerate(tracked("Planning", boxes)):
        shuffled = random.Random(f"{seed}:{number}").sample(training_boxes, len(training_boxes))
        # The messages' own toolbox is in the union twice: first, so that its tools come first, and
        # last, so that they replace tools of the same names.
        unions = {n: _union([box, *reversed(shuffled[: n - 1]), box]) for n in union_sizes}
        plan_cases = draw_cases(box, cases, seed)
        for size, row in _measure_messages(box, unions, plan_cases, encoder, factory, messages):
            rows_by_size[size].append(row)
    settings = {"planner": planner, "split": split, "cases": cases, "messages": messages}
    settings |= {"seed": seed, "most": MAX_TOOLS}
    figures = {"messages": float(len(rows_by_size[union_sizes[0]]))}
    if first_plan_tools:
        figures |= _first_plan_seconds(first_plan_tools, training_boxes, factory)
    rows = [{"toolboxes": size, **_mean_row(rows_by_size[size])} for size in union_sizes]
    return Report("narrowing", settings, figures, rows, NOTES)


def _measure_messages(
    box: CorpusToolbox,
    unions: Mapping[int, Toolbox],
    plan_cases: Sequence[AnnotatedQuery],
    encoder: CachedEncoder,
    factory: PlannerFactory,
    planned_count: int | None,
) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield, for each message and each union of toolboxes, the union's size and the figures."""
    with plan_store(plan_cases, encoder) as store:
        planner = factory(store)
        cases = store if plan_cases else None
        narrowers = {size: NarrowingPlanner(planner, encoder, cases) for size in unions}
        queries = [q for q in box.queries if q not in plan_cases and _needed_tools(q)]
        for number, query in enumerate(queries):
            is_planned = planned_count is None or number < planned_count
            alone = _right_tools(planner, query, box.toolbox) if is_planned else 0.0
            for size, toolbox in unions.items():
                request = query.record.request(toolbox)
                # The tools are embedded here, so that this time is not measured.
                narrowers[size].index(toolbox)
                narrowed, milliseconds = timed(partial(narrowers[size].narrowed, request))
                is_kept = _needed_tools(query) <= set(narrowed.toolbox.names)
                row = {"tools": float(len(toolbox)), "kept": float(is_kept), "ms": milliseconds}
                if is_planned:
                    right = _right_tools(planner, query, narrowed.toolbox)
                    row |= {"right tools": right, "alone": alone}
                yield size, row


def _union(boxes: Sequence[CorpusToolbox]) -> Toolbox:
    return Toolbox({tool.name: tool for box in boxes for tool in box.toolbox}.values())


def _needed_tools(query: AnnotatedQuery) -> set[str]:
    return set(query.plan.tools) - {NO_EVIDENCE.name}


def _right_tools(planner: Planner, query: AnnotatedQuery, toolbox: Toolbox) -> float:
    return float(judge(query, planner.plan(query.record.request(toolbox)).plan).right_tools)


def _mean_row(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    names = ("tools", "kept", "right tools", "alone")
    means = {name: mean([row[name] for row in rows if name in row]) for name in names}
    return {**means, "tools": round(means["tools"]), "ms": p50([row["ms"] for row in rows])}


def _first_plan_seconds(
    count: int, boxes: Sequence[CorpusToolbox], factory: PlannerFactory
) -> dict[str, float]:
    """Return the seconds of a first plan from ``count`` tools, narrowed and not narrowed."""
    tools = [tool for box in boxes for tool in box.toolbox if tool.name != NO_EVIDENCE.name]
    numbered_tools = enumerate(islice(cycle(tools), count))
    toolbox = Toolbox(replace(tool, name=f"{tool.name}_{n}") for n, tool in numbered_tools)
    request = boxes[0].queries[0].record.request(toolbox)
    seconds = {}
    for label, is_narrowed in (("narrowed", True), ("with all", False)):
        with (
            TemporaryDirectory(prefix="casewright-narrowing-") as folder,
            plan_store([], CachedEncoder(MiniLMEncoder(), Path(folder))) as store,
        ):
            planner = factory(store)
            # A new encoder loads its weights during the timed plan.
            encoder = CachedEncoder(MiniLMEncoder(), Path(folder))
            started = time.perf_counter()
            # Without narrowing, the plan parser may refuse so many tools; then no time is reported.
            with suppress(*([] if is_narrowed else [InputError])):
                (NarrowingPlanner(planner, encoder) if is_narrowed else planner).plan(request)
                seconds[f"first plan of {count} tools, {label}, s"] = time.perf_counter() - started
    return seconds
