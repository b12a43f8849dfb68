"""The costs of the parts of decoding: plan cases, the grammar, a call of the network."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from casewright.bench.decoding.systems import OWN, Generation
from casewright.bench.harness import mean, p50, slow_progress, timed, verdicts_of
from casewright.bench.scripts import ScriptWriter, Task
from casewright.errors import GrammarError
from casewright.planner import AnnotatedQuery, render_prompt
from casewright.planner.grammar import PlanGrammar
from casewright.planner.model_planner import ModelPlanner
from casewright.planner.plan_cases import similar_plans
from casewright.stores import CaseStore
from casewright.tools import Source, Toolbox, tool_from_record

if TYPE_CHECKING:
    from casewright.planner import PlanRequest
    from casewright.planner.grammar import PlanMatcher
    from casewright.planner.language_model import LanguageModel, PromptTokens

#: How many plan cases prompts have.
COUNTS = (0, 1, 2, 4, 8)
#: Tools of the larger toolboxes; tokens that a call of the network reads, and how often it does.
SIZES, WIDTHS, ROUNDS = (30, 100), (1, 2, 4, 8, 32, 128), 5


@dataclass(frozen=True, slots=True)
class Exampled:
    """The tasks' prompts with so many plan cases, and the milliseconds of each on average."""

    count: int
    prompts: Sequence[PromptTokens]
    prompting_ms: float

    @property
    def name(self) -> str:
        """The decoder's name behind these prompts."""
        return f"{OWN}, {self.count} plan cases"


def prompt_of(
    model: LanguageModel, request: PlanRequest, store: CaseStore, count: int
) -> PromptTokens:
    """Return a request's prompt with so many plan cases of a store."""
    return model.encode(render_prompt(request, similar_plans(store, request, count)))


def with_examples(model: LanguageModel, tasks: Sequence[Task], store: CaseStore) -> list[Exampled]:
    """Return the tasks' prompts with more and more plan cases of a store."""
    exampled = []
    for count in COUNTS:
        started = time.perf_counter()
        prompts = [prompt_of(model, task.request, store, count) for task in tasks]
        spent = (time.perf_counter() - started) * 1000 / len(tasks)
        exampled.append(Exampled(count, prompts, spent))
    return exampled


def right_tools(
    model: LanguageModel, toolbox: Toolbox, queries: Sequence[AnnotatedQuery], store: CaseStore
) -> dict[int, float]:
    """Return the share of a trained model's own plans with the right tools, by plan cases shown."""
    shares = {}
    for count in COUNTS:
        planner = ModelPlanner(model, plan_cases=store, examples=count, seconds=600)
        verdicts = verdicts_of(planner, queries, toolbox, f"Planning, {count} plan cases")
        shares[count] = mean([verdict.tools for verdict in verdicts])
    return shares


def step_costs(model: LanguageModel, head: Sequence[int]) -> dict[int, float]:
    """Return the median milliseconds of a call that reads so many tokens behind a head.

    A step that reads forced tokens together with the next one pays off where a call of a few tokens
    costs about as much as a call of one: as long as it waits for memory.
    """
    import torch

    network: Any = model.network
    cache = Generation(model).head_states(head)
    times: dict[int, list[float]] = {width: [] for width in WIDTHS}
    for _ in range(ROUNDS):
        for width in WIDTHS:
            tokens = torch.full((1, width), head[-1], device=model.device)
            given = {"input_ids": tokens, "past_key_values": cache, "logits_to_keep": 1}
            with torch.no_grad():
                spent = timed(partial(network, **given, use_cache=True), model.device)[1]
            times[width].append(spent)
            cache.crop(-width)
    return {width: p50(own) for width, own in times.items()}


@dataclass(frozen=True, slots=True)
class GrammarCost:
    """The costs of the grammar of one toolbox, in milliseconds.

    Attributes:
        toolbox: Its name.
        first: Of the first request, whose toolbox is new.
        ready: Of each request after it: its grammar, ready to be followed.
        whole: Of each plan: its grammar, and following it to the plan's end.
    """

    toolbox: str
    first: float
    ready: Sequence[float]
    whole: Sequence[float]


def grammar_costs(
    model: LanguageModel,
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
    declared: Sequence[AnnotatedQuery],
) -> list[GrammarCost]:
    """Return the times of a request's grammar, and of following it through a whole plan.

    Args:
        model: Whose tokens.
        toolbox: The domain's tools.
        queries: Of each toolbox, at least one. The plans that it can write are followed.
        declared: Queries that declare tools of their own, which larger toolboxes are filled with.
    """
    boxes: dict[str, Toolbox] = {}
    for size in (len(toolbox), *SIZES):
        box = filled(toolbox, declared, size)
        boxes[f"{len(box)}_tools"] = box
        boxes[f"{len(box)}_tools_spans_only"] = with_spans_only(box)
    scripts = ScriptWriter(model)
    costs = []
    with slow_progress("Timing grammars", len(boxes) * len(queries)) as advance:
        for name, box in boxes.items():
            # The grammar that is timed must not know the plans already.
            grammar, other = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
            requests = [query.record.request(box) for query in queries]
            first = timed(partial(grammar.plan, requests[0]))[1]
            ready, whole = [], []
            for query, request in zip(queries, requests, strict=True):
                advance(1)
                matcher, spent = timed(partial(grammar.plan, request))
                ready.append(spent)
                try:
                    script = scripts.script(other.plan(request), str(query.plan))
                except GrammarError:
                    continue
                followed = timed(partial(_follow, matcher, script.choices, model.ends))[1]
                whole.append(spent + followed)
            costs.append(GrammarCost(name, first, ready, whole))
    return costs


def with_spans_only(toolbox: Toolbox) -> Toolbox:
    """Return the toolbox with spans where it admits any text: a question is part of its grammar."""
    tools = []
    for tool in toolbox:
        parameters = [
            replace(parameter, sources=parameter.sources - {Source.LITERAL} | {Source.SPAN})
            if Source.LITERAL in parameter.sources
            else parameter
            for parameter in tool.parameters
        ]
        tools.append(replace(tool, parameters=tuple(parameters)))
    return Toolbox(tools)


def filled(toolbox: Toolbox, declared: Sequence[AnnotatedQuery], size: int) -> Toolbox:
    """Return the toolbox with so many tools, added from queries that declare their own.

    Where these are too few, they are added again under other names; where there is none, none is.
    """
    records = [record for query in declared for record in query.record.tools_extra]
    own = {tool.name: tool for tool in map(tool_from_record, records)}
    box, number = toolbox, 0
    while own and len(box) < size:
        number += 1
        for tool in own.values():
            name = tool.name if number == 1 else f"{tool.name}_{number}"
            if name not in box and len(box) < size:
                box = box.with_(replace(tool, name=name, example=None))
    return box


def _follow(matcher: PlanMatcher, choices: Sequence[int], ends: Sequence[int]) -> None:
    """Follow a grammar by these choices, as the decoder does, to the plan's end."""
    matcher.forced()
    for token in choices:
        if matcher.finished:
            break
        matcher.allowed()
        if token in ends:
            break
        matcher.consume(token)
        matcher.forced()
