"""Measures planners on small talk, a class that few examples describe (REAPER, section 5.5).

The messages of class ``human_small_talk`` are the domain's queries without evidence whose ids are
in ``small_talk.json``. Half of the messages are test messages, and the other half are examples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random

from casewright.bench.harness import TestedDomain, load_domain
from casewright.bench.report import Report
from casewright.bench.toolbox_planners import model_planner
from casewright.finetune.evaluation import items_of
from casewright.planner import CasePlanner, Planner, parse_plan, plan_store
from casewright.planner.language_model import load_language_model
from casewright.planner.named import CLASSIFIERS, make_planner
from casewright.planner.shipped import SHIPPED, adapter_example_count, adapter_folder, is_runnable
from casewright.tools import tool_from_record
from casewright_studies.reaper import BATCH_SIZE, CASE_PLANNER, PAPER, Line, planner_lines

#: The file with the tool and the query ids of the new class, ``human_small_talk``.
FILE = Path(__file__).with_name("small_talk.json")
#: The class of these queries in the domain.
NO_EVIDENCE = "no_evidence"
COLUMNS = ("examples", "planner", "class", "count", "tools", "f1", "published")
NOTES = (
    "The test messages are half of the small talk, half of the other messages without evidence, "
    "and the test queries of the other classes. The planners know the tool from its description, "
    "and from examples, which are among their plan cases. Only the classifiers are trained.",
    "published: REAPER's figure (section 5.5), for a Mistral-7B trained on 286 such messages.",
)


def measure_small_talk(limit: int = 100, seed: int = 0, *, with_model: bool = True) -> Report:
    """Measure the planners without examples of the new class, and with all examples of the class.

    ``limit`` is the maximum number of test messages of each class. If ``with_model``, the packaged
    language model is also measured, if it can run.
    """
    tested = load_domain("shopping")
    rows = list(_lines(tested, limit, seed, with_model=with_model and is_runnable()))
    name = "f1_{class}_{examples}_examples_{planner}"
    figures = {name.format(**row).replace(" ", "_"): row["f1"] for row in rows}
    return Report("small-talk", {"limit": limit, "seed": seed}, figures, rows, NOTES)


def _lines(tested: TestedDomain, limit: int, seed: int, *, with_model: bool) -> Iterator[Line]:
    content = json.loads(FILE.read_text(encoding="utf-8"))
    tool = tool_from_record(content["tool"])
    toolbox, plan = tested.toolbox.with_(tool), parse_plan(f"s1 = {tool.name}()")
    queries, new_ids = tested.domain.queries(), content["ids"]
    small_talk = [replace(q, plan=plan, label=tool.name) for q in queries if q.record.id in new_ids]
    no_evidence = [q for q in queries if q.label == NO_EVIDENCE and q.record.id not in new_ids]
    small_talk = Random(seed).sample(small_talk, len(small_talk))
    no_evidence = Random(seed).sample(no_evidence, len(no_evidence))
    half = len(small_talk) // 2
    other_queries = [q for q in tested.held_out_queries() if q.label != NO_EVIDENCE]
    test = [*small_talk[:half][:limit], *no_evidence[:half][:limit], *other_queries[:limit]]
    test_items = items_of(test, toolbox)
    language_model = load_language_model(adapter_folder()) if with_model else None
    for example_count in (0, len(small_talk) - half):
        known_queries = [q for q in queries if q.label != NO_EVIDENCE]
        known_queries += [*no_evidence[half:], *small_talk[half : half + example_count]]
        with plan_store(known_queries, tested.encoder) as store:
            planners: dict[str, Planner] = {CASE_PLANNER: CasePlanner(store)}
            if language_model is not None:
                options = {"examples": adapter_example_count(adapter_folder()), "batch": BATCH_SIZE}
                planners[SHIPPED] = model_planner(language_model, store, **options)
            if find_spec("sklearn") is not None:
                planners[CLASSIFIERS] = make_planner(
                    CLASSIFIERS, store, queries=partial(list, known_queries), encoder=tested.encoder
                )
            for line in planner_lines(test_items, planners, seed):
                if line["class"] in (tool.name, NO_EVIDENCE):
                    is_published = example_count > 0 and line["class"] == tool.name
                    paper = PAPER["small_talk"] if is_published else None
                    cells = {name: line.get(name) for name in COLUMNS}
                    yield {**cells, "examples": example_count, "published": paper}
