"""Measures the time in which ``generate`` of transformers and Casewright's decoder write a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from casewright.bench.decoding import systems
from casewright.bench.decoding.systems import WrittenPlan
from casewright.bench.harness import finish, load_domain, mean, p50, p95, take_turns, timed
from casewright.bench.models import GenerationTrial, MeasuredModel
from casewright.bench.planner import share_right, verdicts_of
from casewright.bench.report import Report
from casewright.bench.scripts import ScriptWriter, distant_plan_cases, make_tasks, shuffled_queries
from casewright.bench.toolbox_planners import model_planner
from casewright.errors import GrammarError
from casewright.finetune.folds import NEAR_DUPLICATE_SIMILARITY
from casewright.planner import AnnotatedQuery, PlanRequest, render_prompt
from casewright.planner.grammar import PlanGrammar, PlanMatcher
from casewright.planner.language_model import LanguageModel, PromptTokens
from casewright.planner.language_model.device import find_device
from casewright.planner.plan_cases import SELECTION, similar_plans
from casewright.stores import CaseStore
from casewright.stores.progress import show_progress
from casewright.tools import Toolbox, tool_from_record

#: Casewright's decoder is also timed with these numbers of plan cases in the prompts.
PLAN_CASE_COUNTS = (0, 1, 2, 4, 8)
#: The numbers of tools in the larger toolboxes.
TOOLBOX_SIZES = (30, 100)
#: Widths (numbers of tokens) of timed calls of the network, and the number of calls of a width.
WIDTHS, CALL_COUNT = (1, 2, 4, 8, 32, 128), 5
#: Each system's plans, in the order of the tasks, by the system's name.
Plans = Mapping[str, Sequence[WrittenPlan]]
Figures = Iterator[tuple[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingTrial(GenerationTrial):
    """The options of ``casewright bench decoding``."""

    plans: int = 20  # the number of gold plans to write
    plan_cases: int = 1  # the number of plan cases in the prompts of all systems
    pool: int | None = None  # the number of queries that may become plan cases; ``None`` for all
    grammar_queries: int = 200  # the number of queries for which the grammar alone is timed
    held_out: int = 100  # the number of test queries on which a trained model is scored


def measure_decoding(trial: DecodingTrial) -> Report:
    """Time ``generate``, ``generate`` with a grammar, and Casewright's decoder on gold plans.

    Raise ``InputError`` if the model cannot be loaded, or no annotated query of the domain has a
    plan that the grammar can write.
    """
    # This call raises an error if the device is missing, before anything is loaded.
    find_device(trial.model.device)
    tested = load_domain(trial.domain)
    toolbox, queries = tested.toolbox, tested.domain.queries()
    measured = MeasuredModel(trial, tested)
    model, shuffled = measured.model, shuffled_queries(queries, trial.seed)
    # A grammar caches states, so another grammar than the timed one makes the gold plans' scripts.
    script_grammar, grammar = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
    tasks, refused_count = make_tasks(model, script_grammar, toolbox, shuffled, trial.plans)
    if not tasks:
        raise trial.no_queries_error()
    test_queries = [] if trial.model.is_random else tested.domain.measuring_queries()
    scored_queries = test_queries[: trial.held_out]
    # For these queries, the model writes plans of its own choice, without a script.
    own_choice_queries = shuffled_queries(test_queries, trial.seed)[: trial.plans]
    excluded = [*(task.query for task in tasks), *scored_queries, *own_choice_queries]
    prompt_ms: dict[str, float] = {}
    with distant_plan_cases(queries[: trial.pool], excluded, tested.uncached_encoder) as store:

        def prompts_with(count: int) -> list[PromptTokens]:
            return [_prompt(model, task.request, store, count) for task in tasks]

        prompts = prompts_with(trial.plan_cases)
        model_systems = systems.Systems(model, grammar, prompts[0].head)

        def writer(
            write: Callable[..., WrittenPlan], task_prompts: Sequence[PromptTokens]
        ) -> Callable[[int], WrittenPlan]:
            """Return a function that takes a task's index and writes the task's plan."""
            return lambda index: write(tasks[index], task_prompts[index])

        writers = {name: writer(write, prompts) for name, write in model_systems.scripted().items()}
        for count in PLAN_CASE_COUNTS:
            case_prompts, milliseconds = timed(partial(prompts_with, count))
            prompt_ms[f"prompting_ms_{count}_plan_cases"] = milliseconds / len(tasks)
            writers[_decoder_name(count)] = writer(model_systems.decoded_plan, case_prompts)
        # On a GPU, the first call of each width is slow, so the decoder is warmed up on all tasks.
        decoder_names = [name for name in writers if name.startswith(systems.CASEWRIGHT)]
        fully_warmed = decoder_names if measured.needs_warmup else ()
        plans = take_turns(writers, range(len(tasks)), trial.repeats, "Writing plans", fully_warmed)
        requests = [query.record.request(toolbox) for query in own_choice_queries]
        own_choice_plans = _own_choice_plans(measured, trial, requests, store) if requests else {}
        tool_accuracy: Mapping[int, float] = {}
        if scored_queries:
            tool_accuracy = _tool_accuracy(model, toolbox, scored_queries, store)
        case_count = store.count()
    grammars = grammar_costs(model, toolbox, shuffled[: trial.grammar_queries], queries)
    network_ms = _network_ms_by_width(model, prompts[0].head)
    measured.measure_bandwidth_again()
    decoded = plans[systems.WITH_CACHED_HEAD]
    # Each model step of a plan reads all weights from memory.
    min_plan_ms = measured.min_step_ms * np.array([plan.model_steps for plan in decoded])
    settings = {
        "domain": tested.domain.name,
        **measured.settings,
        "plans": len(tasks),
        "head_tokens": len(prompts[0].head),
        "plan_cases_in_prompts": trial.plan_cases,
        "plan_cases_to_pick_from": case_count,
        "picked_by": {"lambda_d": SELECTION.lambda_d, "lambda_b": SELECTION.lambda_b},
        "same_group_above": NEAR_DUPLICATE_SIMILARITY,
        "queries_refused_by_the_grammar": refused_count,
        "queries_kept_from_the_model": len(scored_queries),
    }
    figures = dict(_plan_figures(plans, [str(task.query.plan) for task in tasks], min_plan_ms))
    if own_choice_plans:
        figures |= dict(_own_choice_figures(own_choice_plans))
    figures |= {**dict(_grammar_figures(grammars)), **prompt_ms}
    figures |= {f"tool_accuracy_{n}_plan_cases": share for n, share in tool_accuracy.items()}
    figures |= {f"network_ms_p50_reading_{width}_tokens": ms for width, ms in network_ms.items()}
    figures |= measured.figures
    rows = _rows({**plans, **own_choice_plans}, tool_accuracy, min_plan_ms, grammars)
    return Report("decoding", settings, figures, rows, _notes(trial), partial(_draw, plans=plans))


def _prompt(model: LanguageModel, request: PlanRequest, store: CaseStore, k: int) -> PromptTokens:
    """Return a prompt with ``k`` plan cases."""
    return model.encode(render_prompt(request, similar_plans(store, request, k)))


def _decoder_name(count: int) -> str:
    """Return the name of the decoder with ``count`` plan cases in prompts."""
    return f"{systems.CASEWRIGHT}, {count} plan cases"


def _own_choice_plans(
    measured: MeasuredModel, trial: DecodingTrial, requests: Sequence[PlanRequest], store: CaseStore
) -> dict[str, list[WrittenPlan]]:
    """Return the plans that a trained model writes without a script, by the system's name."""
    model = measured.model
    prompts = [_prompt(model, request, store, trial.plan_cases) for request in requests]
    model_systems = systems.Systems(model, PlanGrammar(model.grammar_tokenizer), prompts[0].head)
    writers = model_systems.own_choice(requests, prompts, store)
    fully_warmed = (systems.OWN_CASEWRIGHT, systems.OWN_DRAFTED) if measured.needs_warmup else ()
    label = "Writing plans of the model's own choice"
    return take_turns(writers, range(len(requests)), trial.repeats, label, fully_warmed)


def _tool_accuracy(
    model: LanguageModel, toolbox: Toolbox, queries: Sequence[AnnotatedQuery], store: CaseStore
) -> dict[int, float]:
    """Return the tool accuracy of a trained model, by the number of plan cases in prompts."""
    shares = {}
    for count in PLAN_CASE_COUNTS:
        planner = model_planner(model, store, examples=count)
        verdicts = verdicts_of(planner, queries, toolbox, f"Planning, {count} plan cases")
        shares[count] = share_right(verdicts)
    return shares


def _network_ms_by_width(model: LanguageModel, head: Sequence[int]) -> dict[int, float]:
    """Return the median milliseconds of a network call, by the number of tokens after the head.

    A call with several tokens may take about as long as a call with one, because both wait for
    memory. If so, one call for a chosen token and the tokens that the grammar forces saves time.
    """
    import torch

    network: Any = model.network
    cache = systems.Generation(model).head_states(head)
    times: dict[int, list[float]] = {width: [] for width in WIDTHS}
    for _ in range(CALL_COUNT):
        for width in WIDTHS:
            tokens = torch.full((1, width), head[-1], device=model.device)
            inputs = {"input_ids": tokens, "past_key_values": cache, "logits_to_keep": 1}
            with torch.no_grad():
                call = partial(network, **inputs, use_cache=True)
                times[width].append(timed(call, model.device)[1])
            cache.crop(-width)
    return {width: p50(values) for width, values in times.items()}


class GrammarCost(NamedTuple):
    """The milliseconds that the grammar of a toolbox takes."""

    toolbox: str
    first_ready: float  # until the grammar is ready for the first request with the toolbox
    ready: Sequence[float]  # until the grammar is ready for a request, for each request
    complete: Sequence[float]  # ``ready`` and all masks' time, for each plan that can be written


def grammar_costs(
    model: LanguageModel,
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
    tool_sources: Sequence[AnnotatedQuery],
) -> list[GrammarCost]:
    """Return the grammar's costs for the toolbox, also with more tools from ``tool_sources``."""
    sizes = (len(toolbox), *TOOLBOX_SIZES)
    all_enlarged = [enlarged_toolbox(toolbox, tool_sources, size) for size in sizes]
    toolboxes = {f"{len(enlarged)}_tools": enlarged for enlarged in all_enlarged}
    scripts = ScriptWriter(model)
    costs = []
    with show_progress("Timing grammars", len(toolboxes) * len(queries)) as advance:
        for name, enlarged in toolboxes.items():
            grammar, script_grammar = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
            requests = [query.record.request(enlarged) for query in queries]
            first_ready = timed(partial(grammar.plan_matcher, requests[0]))[1]
            ready, complete = [], []
            for query, request in zip(queries, requests, strict=True):
                advance(1)
                matcher, ready_ms = timed(partial(grammar.plan_matcher, request))
                ready.append(ready_ms)
                try:
                    script = scripts.script(script_grammar.plan_matcher(request), str(query.plan))
                except GrammarError:  # the grammar cannot write this gold plan
                    continue
                masks_ms = timed(partial(_follow, matcher, script.choices, model.ends))[1]
                complete.append(ready_ms + masks_ms)
            costs.append(GrammarCost(name, first_ready, ready, complete))
    return costs


def enlarged_toolbox(toolbox: Toolbox, queries: Sequence[AnnotatedQuery], size: int) -> Toolbox:
    """Return the toolbox, filled up to ``size`` tools with tools that the queries' records declare.

    If the records declare too few tools, their tools are added again with numbered names.
    """
    records = [record for query in queries for record in query.record.tools_extra]
    tools = {tool.name: tool for tool in map(tool_from_record, records)}
    enlarged, copy_number = toolbox, 0
    while tools and len(enlarged) < size:
        copy_number += 1
        for tool in tools.values():
            name = tool.name if copy_number == 1 else f"{tool.name}_{copy_number}"
            if name not in enlarged and len(enlarged) < size:
                enlarged = enlarged.with_(replace(tool, name=name, example=None))
    return enlarged


def _follow(matcher: PlanMatcher, choices: Sequence[int], ends: Sequence[int]) -> None:
    """Call the matcher as the decoder does while it writes the choices of a script."""
    matcher.consume_forced()
    for token in choices:
        if matcher.finished:
            break
        matcher.allowed()
        if token in ends:
            break
        matcher.consume(token)
        matcher.consume_forced()


def _rows(
    plans: Plans,
    tool_accuracy: Mapping[int, float],
    min_plan_ms: np.ndarray[Any, Any],
    grammars: Sequence[GrammarCost],
) -> list[dict[str, Any]]:
    """Return the rows of the systems, of the time to read the weights, and of the grammars."""
    shares = {_decoder_name(count): share for count, share in tool_accuracy.items()}
    rows = [
        {
            **_row(name, _times(written)),
            "prompt_tokens": p50([plan.uncached_prompt_tokens for plan in written]),
            "plan_tokens": mean([plan.plan_tokens for plan in written]),
            "model_steps": mean([plan.model_steps for plan in written]),
            "tools_right": shares.get(name),
        }
        for name, written in plans.items()
    ]
    rows.append(_row("limit of memory for casewright, head kept", min_plan_ms))
    for cost in grammars:
        name = cost.toolbox.replace("_", " ")
        rows.append(_row(f"grammar, {name}: ready", cost.ready))
        if cost.complete:
            rows.append(_row(f"grammar, {name}: whole plan", cost.complete))
    if not tool_accuracy:
        for row in rows:
            del row["tools_right"]
    return rows


def _row(name: str, milliseconds: Sequence[float] | np.ndarray[Any, Any]) -> dict[str, Any]:
    empty_cells = dict.fromkeys(("prompt_tokens", "plan_tokens", "model_steps"))
    times = {"ms_p50": p50(milliseconds), "ms_p95": p95(milliseconds)}
    return {"system": name, "plans": len(milliseconds), **empty_cells, **times, "tools_right": None}


def _plan_figures(plans: Plans, gold: Sequence[str], min_plan_ms: np.ndarray[Any, Any]) -> Figures:
    decoded = plans[systems.WITH_CACHED_HEAD]
    times = _times(decoded)
    yield "casewright_ms_p50", p50(times)
    yield "casewright_ms_p95", p95(times)
    yield "memory_limit_ms_p50", p50(min_plan_ms)
    # Each ratio is the median over the plans.
    yield "ratio_casewright_over_memory_limit_p50", p50(times / min_plan_ms)
    for name, system in (("generate", systems.PLAIN), ("masked_generate", systems.MASKED)):
        cached, uncached = plans[system + systems.CACHED_HEAD_SUFFIX], plans[system]
        steps = sum(plan.model_steps for plan in cached)
        yield f"share_of_{name}_model_steps", sum(plan.model_steps for plan in decoded) / steps
        # The prompt's head is cached by both systems, by neither, or only by Casewright.
        uncached_times = _times(plans[systems.CASEWRIGHT])
        yield f"ratio_{name}_over_casewright_head_kept", p50(_times(cached) / times)
        yield f"ratio_{name}_over_casewright_head_read", p50(_times(uncached) / uncached_times)
        yield f"ratio_{name}_over_casewright_as_called", p50(_times(uncached) / times)
    expected = list(gold) * (len(decoded) // len(gold))  # the tasks were repeated
    masked = plans[systems.MASKED + systems.CACHED_HEAD_SUFFIX]
    for name, written in (("casewright", decoded), ("masked_generate", masked)):
        pairs = zip(written, expected, strict=True)
        yield f"scripted_plans_right_{name}", mean([plan.text == text for plan, text in pairs])


def _grammar_figures(costs: Sequence[GrammarCost]) -> Figures:
    for cost in costs:
        yield f"grammar_ms_p50_{cost.toolbox}", p50(cost.ready)
        yield f"grammar_ms_p95_{cost.toolbox}", p95(cost.ready)
        yield f"grammar_ms_first_request_{cost.toolbox}", cost.first_ready


def _own_choice_figures(plans: Plans) -> Figures:
    labels = {systems.OWN_MASKED: "masked_generate", systems.OWN_CASEWRIGHT: "casewright"}
    labels[systems.OWN_DRAFTED] = "drafted"
    drafted = plans[systems.OWN_DRAFTED]
    for name, label in labels.items():
        steps = [plan.model_steps for plan in plans[name]]
        yield f"own_choice_model_steps_p50_{label}", p50(steps)
        yield f"own_choice_ms_p50_{label}", p50(_times(plans[name]))
    for name in (systems.OWN_MASKED, systems.OWN_CASEWRIGHT):
        ratio = p50(_times(plans[name]) / _times(drafted))
        yield f"own_choice_ratio_{labels[name]}_over_drafted", ratio
        equal = [a.text == b.text for a, b in zip(plans[name], drafted, strict=True)]
        yield f"own_choice_plans_of_{labels[name]}_same_as_drafted", mean(equal)


def _times(plans: Sequence[WrittenPlan]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([plan.milliseconds for plan in plans])


def _draw(axes: Any, plans: Plans) -> None:
    """Draw each plan's milliseconds over its model steps; a filled marker shows a cached head."""
    for number, system in enumerate((systems.PLAIN, systems.MASKED, systems.CASEWRIGHT)):
        for name in (system, system + systems.CACHED_HEAD_SUFFIX):
            steps = [plan.model_steps for plan in plans[name]]
            fill = f"C{number}" if name.endswith(systems.CACHED_HEAD_SUFFIX) else "none"
            style = {"color": f"C{number}", "markerfacecolor": fill, "label": name}
            axes.plot(steps, list(_times(plans[name])), "s^o"[number], alpha=0.8, **style)
    labels = {"xlabel": "model steps of a plan", "ylabel": "milliseconds per plan"}
    finish(axes, "Writing plans of the same lengths with one model", ylim=(0, None), **labels)


def _notes(trial: DecodingTrial) -> list[str]:
    notes = [
        "“generate, masked” (with a grammar) and Casewright's decoder write the gold plans of the "
        "same queries: each step computes the network's logits, and a script then chooses the "
        "longest allowed token that continues the plan. “generate” has no script: it writes tokens "
        "of the model's choice, as many as the plan has.",
        "Milliseconds per plan include the grammar. prompt_tokens: the tokens of the prompt that "
        "are not cached. “head kept”: the key/value states of the head, with which all prompts "
        "begin, are cached. The systems take turns at each plan, in one process. Ratios: medians "
        "over the plans. “head_kept”: both systems cache the head; “head_read”: neither does; "
        "“as_called”: only Casewright's decoder does (the default of each system).",
        "limit of memory: a lower bound of the time of “casewright, head kept”: the time to read "
        "the weights in all model steps, at the measured memory bandwidth.",
        "network_ms: the time of a call of the network after the prompt's head. Reading forced "
        "tokens together saves time if a call of a few takes little longer than a call of one.",
        f"Plan cases ({', '.join(map(str, PLAN_CASE_COUNTS))} in the prompt) are selected by "
        "maximal marginal relevance with quality bias, without near-duplicates of the query.",
    ]
    random_notes = [
        "The weights are random: the times are those of a trained model, but its plans are "
        "meaningless, so there is no share of right tools. For this share, give --model."
    ]
    trained_notes = [
        "tools_right: share of the test queries for which the model, without a script, plans the "
        "right tools.",
        "own choice: the model's plans for test queries, without a script. drafted: the model "
        "reads the case planner's plan in one step, and generates from the first token where its "
        "own choice differs. The case planner's plan cases do not include the query; the "
        "milliseconds include the case planner's time.",
    ]
    return notes + (random_notes if trial.model.is_random else trained_notes)
