"""The time that transformers' ``generate``, masked ``generate`` and our decoder take for a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from casewright.bench.decoding.systems import (
    DRAFTED,
    GENERATED,
    KEPT,
    MASKED,
    OWN,
    PLAIN,
    UNDRAFTED,
    Generation,
    Systems,
    WrittenPlan,
)
from casewright.bench.harness import (
    TestedDomain,
    finish,
    mean,
    p50,
    p95,
    read_tested_domain,
    take_turns,
    timed,
    verdicts_of,
)
from casewright.bench.models import GenerationTrial, MeasuredModel
from casewright.bench.planner import share_right
from casewright.bench.report import Report
from casewright.bench.scripts import ScriptWriter, make_tasks, other_plan_cases, shuffled_queries
from casewright.errors import GrammarError
from casewright.finetune.folds import SAME_GROUP
from casewright.planner import AnnotatedQuery, PlanRequest, render_prompt
from casewright.planner.grammar import PlanGrammar, PlanMatcher
from casewright.planner.language_model import LanguageModel, PromptTokens
from casewright.planner.language_model.device import find_device
from casewright.planner.model_planner import ModelPlanner
from casewright.planner.plan_cases import SELECTION, similar_plans
from casewright.stores import CaseStore
from casewright.stores.progress import show_progress
from casewright.tools import Toolbox, tool_from_record

#: Numbers of plan cases in prompts.
COUNTS = (0, 1, 2, 4, 8)
#: Numbers of tools of the larger toolboxes.
SIZES = (30, 100)
#: Numbers of tokens in one call of the network, and the number of timed calls of each.
WIDTHS, ROUNDS = (1, 2, 4, 8, 32, 128), 5
#: Plans by system, in the order of the tasks.
Plans = Mapping[str, Sequence[WrittenPlan]]
Figures = Iterator[tuple[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingTrial(GenerationTrial):
    """The options of ``casewright bench decoding``.

    Attributes:
        pool: The number of annotated queries that may become plan cases; all by default.
    """

    plans: int = 20
    examples: int = 1
    pool: int | None = None
    grammars: int = 200
    held_out: int = 100


def measure_decoding(trial: DecodingTrial) -> Report:
    """Time the systems, which write the gold plans of the same annotated queries.

    Raises:
        InputError: The model cannot be loaded, or the domain has no queries with such plans.
    """
    find_device(trial.model.device)
    tested = read_tested_domain(trial.domain)
    toolbox, queries = tested.toolbox, tested.domain.queries()
    measured = MeasuredModel(trial, tested)
    model, shuffled = measured.model, shuffled_queries(queries, trial.seed)
    # A grammar caches what it has seen, so the timed one must not be that of the scripts.
    scripting, grammar = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
    tasks, refused = make_tasks(model, scripting, toolbox, shuffled, trial.plans)
    if not tasks:
        raise trial.no_queries_error()
    measuring = [] if trial.model.random else tested.domain.measuring_queries()
    held_out = measuring[: trial.held_out]
    unscripted = shuffled_queries(measuring, trial.seed)[: trial.plans]
    measured_queries = [*(task.query for task in tasks), *held_out, *unscripted]
    prompting: dict[str, float] = {}
    with other_plan_cases(queries[: trial.pool], measured_queries, tested.uncached) as store:

        def prompts_with(count: int) -> list[PromptTokens]:
            return [_prompt(model, task.request, store, count) for task in tasks]

        prompts = prompts_with(trial.examples)
        systems = Systems(model, grammar, prompts[0].head)

        def writer(
            write: Callable[..., WrittenPlan], prompts: Sequence[PromptTokens]
        ) -> Callable[[int], WrittenPlan]:
            return lambda number: write(tasks[number], prompts[number])

        writers = {name: writer(write, prompts) for name, write in systems.named().items()}
        for count in COUNTS:
            longer, spent = timed(partial(prompts_with, count))
            prompting[f"prompting_ms_{count}_plan_cases"] = spent / len(tasks)
            writers[_with_cases(count)] = writer(systems.decoded, longer)
        warmed = [name for name in writers if name.startswith(OWN)] if measured.needs_warmup else ()
        plans = take_turns(writers, range(len(tasks)), trial.repeats, "Writing plans", warmed)
        unscripted_plans = (
            _unscripted_plans(measured, trial, tested, unscripted, store) if unscripted else {}
        )
        right = _right_tools(model, toolbox, held_out, store) if held_out else {}
        cases = store.count()
    grammars = grammar_costs(model, toolbox, shuffled[: trial.grammars], queries)
    steps = _step_costs(model, prompts[0].head)
    measured.measure_again()
    # Milliseconds to read the weights from memory in all model steps of a plan.
    limits = np.array([plan.model_steps * measured.min_step_ms for plan in plans[OWN + KEPT]])
    return Report(
        bench="decoding",
        settings={
            "domain": tested.domain.name,
            **measured.settings,
            "plans": len(tasks),
            "head_tokens": len(prompts[0].head),
            "plan_cases_in_prompts": trial.examples,
            "plan_cases_to_pick_from": cases,
            "picked_by": {"lambda_d": SELECTION.lambda_d, "lambda_b": SELECTION.lambda_b},
            "same_group_above": SAME_GROUP,
            "queries_refused_by_the_grammar": refused,
            "queries_kept_from_the_model": len(held_out),
        },
        figures={
            **dict(_plan_figures(plans, [str(task.query.plan) for task in tasks], limits)),
            **(dict(_choice_figures(unscripted_plans)) if unscripted_plans else {}),
            **dict(_grammar_figures(grammars)),
            **prompting,
            **{f"tool_accuracy_{count}_plan_cases": share for count, share in right.items()},
            **{f"network_ms_p50_reading_{width}_tokens": ms for width, ms in steps.items()},
            **measured.figures,
        },
        rows=_rows({**plans, **unscripted_plans}, right, limits, grammars),
        notes=_notes(trial),
        draw=lambda axes: _draw(axes, plans),
    )


def _prompt(
    model: LanguageModel, request: PlanRequest, store: CaseStore, count: int
) -> PromptTokens:
    return model.encode(render_prompt(request, similar_plans(store, request, count)))


def _with_cases(count: int) -> str:
    """Return the decoder's name with ``count`` plan cases in prompts."""
    return f"{OWN}, {count} plan cases"


def _unscripted_plans(
    measured: MeasuredModel,
    trial: DecodingTrial,
    tested: TestedDomain,
    queries: Sequence[AnnotatedQuery],
    store: CaseStore,
) -> dict[str, list[WrittenPlan]]:
    """Return a trained model's own plans by system."""
    model, requests = measured.model, [query.record.request(tested.toolbox) for query in queries]
    prompts = [_prompt(model, request, store, trial.examples) for request in requests]
    systems = Systems(model, PlanGrammar(model.grammar_tokenizer), prompts[0].head)
    writers = systems.of_own_choice(requests, prompts, store)
    warmed = (UNDRAFTED, DRAFTED) if measured.needs_warmup else ()
    label = "Writing plans without scripts"
    return take_turns(writers, range(len(requests)), trial.repeats, label, warmed)


def _right_tools(
    model: LanguageModel, toolbox: Toolbox, queries: Sequence[AnnotatedQuery], store: CaseStore
) -> dict[int, float]:
    """Return the tool accuracy of a trained model by the number of plan cases in prompts."""
    shares = {}
    for count in COUNTS:
        planner = ModelPlanner(model, plan_cases=store, examples=count, seconds=600)
        verdicts = verdicts_of(planner, queries, toolbox, f"Planning, {count} plan cases")
        shares[count] = share_right(verdicts)
    return shares


def _step_costs(model: LanguageModel, head: Sequence[int]) -> dict[int, float]:
    """Return the median milliseconds of a network call by the number of tokens after a head.

    A call of few tokens waits for memory and costs about as much as a call of one token. Reading
    forced tokens together with the next one then saves time.
    """
    import torch

    network: Any = model.network
    cache = Generation(model).head_states(head)
    times: dict[int, list[float]] = {width: [] for width in WIDTHS}
    for _ in range(ROUNDS):
        for width in WIDTHS:
            tokens = torch.full((1, width), head[-1], device=model.device)
            inputs = {"input_ids": tokens, "past_key_values": cache, "logits_to_keep": 1}
            with torch.no_grad():
                call = partial(network, **inputs, use_cache=True)
                times[width].append(timed(call, model.device)[1])
            cache.crop(-width)
    return {width: p50(values) for width, values in times.items()}


@dataclass(frozen=True, slots=True)
class GrammarCost:
    """Milliseconds of the grammar of one toolbox.

    Attributes:
        first: To make the grammar for the first request with the toolbox.
        ready: To make the grammar for each request.
        complete: To make the grammar for each request, and all masks of its plan.
    """

    toolbox: str
    first: float
    ready: Sequence[float]
    complete: Sequence[float]


def grammar_costs(
    model: LanguageModel,
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
    declared: Sequence[AnnotatedQuery],
) -> list[GrammarCost]:
    """Return the grammar's costs for the toolbox, and for larger ones that ``filled`` makes."""
    boxes = [filled(toolbox, declared, size) for size in (len(toolbox), *SIZES)]
    toolboxes = {f"{len(box)}_tools": box for box in boxes}
    scripts = ScriptWriter(model)
    costs = []
    with show_progress("Timing grammars", len(toolboxes) * len(queries)) as advance:
        for name, box in toolboxes.items():
            grammar, scripting = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
            requests = [query.record.request(box) for query in queries]
            first = timed(partial(grammar.plan, requests[0]))[1]
            ready, complete = [], []
            for query, request in zip(queries, requests, strict=True):
                advance(1)
                matcher, spent = timed(partial(grammar.plan, request))
                ready.append(spent)
                try:
                    script = scripts.script(scripting.plan(request), str(query.plan))
                except GrammarError:
                    continue
                followed = timed(partial(_follow, matcher, script.choices, model.ends))[1]
                complete.append(spent + followed)
            costs.append(GrammarCost(name, first, ready, complete))
    return costs


def filled(toolbox: Toolbox, declared: Sequence[AnnotatedQuery], size: int) -> Toolbox:
    """Return the toolbox with up to ``size`` tools; the added ones are of the ``declared`` queries.

    If these queries declare too few tools, the tools are added again under numbered names.
    """
    records = [record for query in declared for record in query.record.tools_extra]
    tools = {tool.name: tool for tool in map(tool_from_record, records)}
    box, number = toolbox, 0
    while tools and len(box) < size:
        number += 1
        for tool in tools.values():
            name = tool.name if number == 1 else f"{tool.name}_{number}"
            if name not in box and len(box) < size:
                box = box.with_(replace(tool, name=name, example=None))
    return box


def _follow(matcher: PlanMatcher, choices: Sequence[int], ends: Sequence[int]) -> None:
    """Consume the choices up to the plan's end, with the decoder's calls of the matcher."""
    matcher.forced()
    for token in choices:
        if matcher.finished:
            break
        matcher.allowed()
        if token in ends:
            break
        matcher.consume(token)
        matcher.forced()


def _rows(
    plans: Plans,
    right: Mapping[int, float],
    limits: np.ndarray[Any, Any],
    grammars: Sequence[GrammarCost],
) -> list[dict[str, Any]]:
    """Return the rows of the systems, of the limit of memory, and of the grammars."""
    shares = {_with_cases(count): share for count, share in right.items()}
    rows = [
        {
            **_row(name, _times(written)),
            "prompt_tokens": p50([plan.prompt_tokens for plan in written]),
            "plan_tokens": mean([plan.plan_tokens for plan in written]),
            "model_steps": mean([plan.model_steps for plan in written]),
            "tools_right": shares.get(name),
        }
        for name, written in plans.items()
    ]
    rows.append(_row("limit of memory for casewright, head kept", limits))
    for cost in grammars:
        name = cost.toolbox.replace("_", " ")
        rows.append(_row(f"grammar, {name}: ready", cost.ready))
        if cost.complete:
            rows.append(_row(f"grammar, {name}: whole plan", cost.complete))
    if not right:
        rows = [{k: v for k, v in row.items() if k != "tools_right"} for row in rows]
    return rows


def _row(name: str, milliseconds: Sequence[float] | np.ndarray[Any, Any]) -> dict[str, Any]:
    return {
        "system": name,
        "plans": len(milliseconds),
        **dict.fromkeys(("prompt_tokens", "plan_tokens", "model_steps")),
        "ms_p50": p50(milliseconds),
        "ms_p95": p95(milliseconds),
        "tools_right": None,
    }


def _plan_figures(plans: Plans, gold: Sequence[str], limits: np.ndarray[Any, Any]) -> Figures:
    decoded = plans[OWN + KEPT]
    times = _times(decoded)
    yield "casewright_ms_p50", p50(times)
    yield "casewright_ms_p95", p95(times)
    yield "memory_limit_ms_p50", p50(limits)
    # Ratios are medians of the ratios by plan.
    yield "ratio_casewright_over_memory_limit_p50", p50(times / limits)
    for name, system in (("generate", PLAIN), ("masked_generate", MASKED)):
        cached, uncached = plans[system + KEPT], plans[system]
        steps = [sum(plan.model_steps for plan in group) for group in (decoded, cached)]
        yield f"share_of_{name}_model_steps", steps[0] / steps[1]
        # In the first two, both systems cache the head or neither does.
        yield f"ratio_{name}_over_casewright_head_kept", p50(_times(cached) / times)
        yield f"ratio_{name}_over_casewright_head_read", p50(_times(uncached) / _times(plans[OWN]))
        yield f"ratio_{name}_over_casewright_as_called", p50(_times(uncached) / times)
    repeated = list(gold) * (len(decoded) // len(gold))
    for name, system in (("casewright", OWN + KEPT), ("masked_generate", MASKED + KEPT)):
        pairs = zip(plans[system], repeated, strict=True)
        yield f"scripted_plans_right_{name}", mean([plan.text == text for plan, text in pairs])


def _grammar_figures(costs: Sequence[GrammarCost]) -> Figures:
    for cost in costs:
        yield f"grammar_ms_p50_{cost.toolbox}", p50(cost.ready)
        yield f"grammar_ms_p95_{cost.toolbox}", p95(cost.ready)
        yield f"grammar_ms_first_request_{cost.toolbox}", cost.first


def _choice_figures(plans: Plans) -> Figures:
    labels = {GENERATED: "masked_generate", UNDRAFTED: "casewright", DRAFTED: "drafted"}
    drafted = plans[DRAFTED]
    for name, label in labels.items():
        steps = [plan.model_steps for plan in plans[name]]
        yield f"own_choice_model_steps_p50_{label}", p50(steps)
        yield f"own_choice_ms_p50_{label}", p50(_times(plans[name]))
    for name in (GENERATED, UNDRAFTED):
        ratio = p50(_times(plans[name]) / _times(drafted))
        yield f"own_choice_ratio_{labels[name]}_over_drafted", ratio
        equal = [a.text == b.text for a, b in zip(plans[name], drafted, strict=True)]
        yield f"own_choice_plans_of_{labels[name]}_same_as_drafted", mean(equal)


def _times(plans: Sequence[WrittenPlan]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([plan.milliseconds for plan in plans])


def _draw(axes: Any, plans: Plans) -> None:
    """Draw each plan's milliseconds over its model steps; markers are filled for a cached head."""
    for number, system in enumerate((PLAIN, MASKED, OWN)):
        for name in (system, system + KEPT):
            steps = [plan.model_steps for plan in plans[name]]
            fill = f"C{number}" if name.endswith(KEPT) else "none"
            style = {"color": f"C{number}", "markerfacecolor": fill, "label": name}
            axes.plot(steps, list(_times(plans[name])), "s^o"[number], alpha=0.8, **style)
    axes.set(xlabel="model steps of a plan", ylabel="milliseconds a plan")
    finish(axes, "Writing the same plans with one model", ylim=(0, None))


def _notes(trial: DecodingTrial) -> list[str]:
    notes = [
        "Every system writes the gold plans of the same queries: each step computes the network's "
        "logits, and a script then chooses the longest allowed token that continues the plan. "
        "Plain generate is not masked; it writes as many tokens as the plan has.",
        "Milliseconds per plan include the grammar. prompt_tokens: the tokens of the prompt that "
        "are not cached. “head kept”: the key/value states of the prompt's constant head are "
        "cached. The systems take turns at each plan, in one process. Ratios are medians of the "
        "ratios by plan; “as called”: the decoder with the cache over generate without it.",
        "limit of memory: the bytes of weights that a model step reads, times the steps of "
        "“casewright, head kept”, over the measured memory bandwidth.",
        "network_: one call of the network after the prompt's head. Reading forced tokens together "
        "saves time if a call of a few tokens costs little more than a call of one.",
        f"Plan cases ({', '.join(map(str, COUNTS))} in the prompt) are selected by maximal "
        "marginal relevance with quality bias, without neighbours of the query.",
    ]
    if trial.model.random:
        return [
            *notes,
            "The weights are random: the times are those of a trained model, but its plans are "
            "meaningless, so there is no share of right tools. Give --model for it.",
        ]
    return [
        *notes,
        "tools_right: share of the test queries for which the model, without a script, plans the "
        "right tools.",
        "own choice: the model's plans for test queries, without a script. drafted: the model "
        "reads the case planner's plan in one step, and generates from the first token that it "
        "would choose otherwise. The case planner has only the other plan cases; its time counts.",
    ]
