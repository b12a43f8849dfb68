"""Writing plans: transformers' ``generate``, ``generate`` under the grammar's mask, the decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.bench.decoding.costs import (
    COUNTS,
    Exampled,
    GrammarCost,
    grammar_costs,
    prompt_of,
    right_tools,
    step_costs,
    with_examples,
)
from casewright.bench.decoding.systems import (
    DRAFTED,
    GENERATED,
    KEPT,
    MASKED,
    OWN,
    PLAIN,
    UNDRAFTED,
    Systems,
    WrittenPlan,
    compare_greedy,
)
from casewright.bench.harness import Ground, mean, p50, p95, read_ground, take_turns
from casewright.bench.models import ModelChoice, tokenizer_texts
from casewright.bench.report import Report
from casewright.bench.scripts import make_tasks, other_plan_cases, shuffled_queries
from casewright.bench.writing import Writer, WritingTrial
from casewright.finetune.folds import SAME_GROUP
from casewright.planner.grammar import PlanGrammar
from casewright.planner.plan_cases import SELECTION
from casewright.stores.progress import note

if TYPE_CHECKING:
    from casewright.planner import AnnotatedQuery
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.stores import CaseStore

#: The random model that compares greedy plans, where the measured one rounds its numbers.
EXACT = "100m"
#: Plans by system; the same plans in the same order.
Plans = Mapping[str, Sequence[WrittenPlan]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingTrial(WritingTrial):
    """The options of the command.

    Attributes:
        examples: Plan cases in the prompts that systems are compared on.
        pool: Annotated queries that plan cases are picked from; all by default.
        greedy: Plans compared with those of masked greedy decoding.
        grammars: Queries that the grammar alone is timed on.
        held_out: Queries that a trained model's own plans are scored on.
    """

    plans: int = 20
    examples: int = 1
    pool: int | None = None
    greedy: int = 20
    grammars: int = 200
    held_out: int = 100


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements.

    Attributes:
        plans: The scripted plans; the decoder's again for each number of plan cases in the prompt.
        gold: The texts of these plans.
        exampled: The prompts by their number of plan cases.
        right: Share of a trained model's own plans with the right tools, by that number.
        chosen: A trained model's plans of its own choice.
        greedy: The decoder beside masked ``generate``, without a script.
        grammars: The costs of the grammar alone.
        steps: Milliseconds of a call of the network, by how many tokens it reads.
        writer: The model.
    """

    plans: Plans
    gold: Sequence[str]
    exampled: Sequence[Exampled]
    right: Mapping[int, float]
    chosen: Plans
    greedy: Mapping[str, int]
    grammars: Sequence[GrammarCost]
    steps: Mapping[int, float]
    writer: Writer

    @property
    def limits(self) -> list[float]:
        """Milliseconds below which memory cannot give the weights, for each of the own plans."""
        return [plan.model_steps * self.writer.step_limit for plan in self.plans[OWN + KEPT]]


def measure_decoding(trial: DecodingTrial) -> Report:
    """Let every system write the same plans, in one run: those of annotated queries.

    Raises:
        InputError: The model cannot be had, or the domain has no queries with such plans.
    """
    trial.model.check_device()
    ground = read_ground(trial.domain)
    toolbox, queries = ground.toolbox, ground.domain.queries()
    writer = Writer(trial, ground)
    model, shuffled = writer.model, shuffled_queries(queries, trial.seed)
    # The systems' grammar must not know the plans already, as the one of the scripts does.
    scripting, grammar = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
    tasks, refused = make_tasks(model, scripting, toolbox, shuffled, trial.plans, trial.fits)
    if not tasks:
        raise trial.no_tasks()
    measuring = [] if trial.model.random else ground.domain.measuring_queries()
    held_out = measuring[: trial.held_out]
    own = shuffled_queries(measuring, trial.seed)[: trial.plans]
    known = [*(task.query for task in tasks), *held_out, *own]
    with other_plan_cases(queries[: trial.pool], known, ground.uncached) as store:
        prompts = [
            trial.fitted(prompt_of(model, task.request, store, trial.examples)) for task in tasks
        ]
        exampled = with_examples(model, tasks, store)
        systems = Systems(model, grammar, prompts[0].head)
        ways: dict[str, tuple[Callable[..., WrittenPlan], Sequence[PromptTokens]]] = {
            name: (write, prompts) for name, write in systems.named().items()
        }
        ways |= {example.name: (systems.own, example.prompts) for example in exampled}

        def written(name: str, number: int) -> WrittenPlan:
            write, behind = ways[name]
            return write(tasks[number], behind[number])

        named = {name: partial(written, name) for name in ways}
        warmed = [name for name in named if name.startswith(OWN)] if writer.warms else ()
        plans = take_turns(named, range(len(tasks)), trial.repeats, "Writing plans", warmed)
        chosen = _chosen(writer, trial, ground, own, store) if own else {}
        right = right_tools(model, toolbox, held_out, store) if held_out else {}
        cases = store.count()
    results = Results(
        plans=plans,
        gold=[task.text for task in tasks],
        exampled=exampled,
        right=right,
        chosen=chosen,
        greedy=_greedy(model, trial, ground, shuffled),
        grammars=grammar_costs(model, toolbox, shuffled[: trial.grammars], queries),
        steps=step_costs(model, prompts[0].head),
        writer=writer,
    )
    writer.measure_again()
    return Report(
        bench="decoding",
        settings={
            "domain": ground.domain.name,
            **writer.settings,
            "plans": len(tasks),
            "head_tokens": len(prompts[0].head),
            "plan_cases_in_prompts": trial.examples,
            "plan_cases_to_pick_from": cases,
            "picked_by": {"lambda_d": SELECTION.lambda_d, "lambda_b": SELECTION.lambda_b},
            "same_group_above": SAME_GROUP,
            "queries_refused_by_the_grammar": refused,
            "queries_kept_from_the_model": len(held_out),
        },
        figures={**dict(_figures(results)), **writer.figures},
        rows=_rows(results),
        notes=_notes(trial, model),
        draw=lambda axes: _draw(axes, plans),
    )


def _chosen(
    writer: Writer,
    trial: DecodingTrial,
    ground: Ground,
    queries: Sequence[AnnotatedQuery],
    store: CaseStore,
) -> dict[str, list[WrittenPlan]]:
    """Return the plans of a trained model's own choice."""
    model, requests = writer.model, [query.record.request(ground.toolbox) for query in queries]
    prompts = [prompt_of(model, request, store, trial.examples) for request in requests]
    systems = Systems(model, PlanGrammar(model.grammar_tokenizer), prompts[0].head)
    ways = systems.of_own_choice(requests, prompts, store)
    warmed = (UNDRAFTED, DRAFTED) if writer.warms else ()
    label = "Writing plans of its own choice"
    return take_turns(ways, range(len(requests)), trial.repeats, label, warmed)


def _greedy(
    model: LanguageModel, trial: DecodingTrial, ground: Ground, queries: Sequence[AnnotatedQuery]
) -> dict[str, int]:
    if "float32" not in str(model.network.dtype):
        note("Comparing greedy plans by a model in float32.")
        exact = ModelChoice(size=EXACT, device=trial.model.device, dtype="float32")
        model = exact.open(tokenizer_texts(ground.toolbox, ground.domain.queries()))
    grammar = PlanGrammar(model.grammar_tokenizer)
    return compare_greedy(model, grammar, ground.toolbox, queries[: trial.greedy])


def _rows(results: Results) -> list[dict[str, Any]]:
    """Return the table: systems, numbers of plan cases, the memory's limit, grammars."""
    right = {example.name: results.right.get(example.count) for example in results.exampled}
    rows = [
        {
            **_row(name, _times(plans)),
            "prompt_tokens": p50([plan.prompt_tokens for plan in plans]),
            "plan_tokens": mean([plan.plan_tokens for plan in plans]),
            "model_steps": mean([plan.model_steps for plan in plans]),
            "tools_right": right.get(name),
        }
        for name, plans in {**results.plans, **results.chosen}.items()
    ]
    rows.append(_row("limit of memory for casewright, head kept", results.limits))
    for cost in results.grammars:
        name = cost.toolbox.replace("_", " ")
        rows.append(_row(f"grammar, {name}: ready", cost.ready))
        if cost.whole:
            rows.append(_row(f"grammar, {name}: whole plan", cost.whole))
    if not results.right:
        rows = [{k: v for k, v in row.items() if k != "tools_right"} for row in rows]
    return rows


def _row(name: str, milliseconds: Sequence[float] | np.ndarray[Any, Any]) -> dict[str, Any]:
    return {
        "system": name,
        "plans": len(milliseconds),
        "prompt_tokens": None,
        "plan_tokens": None,
        "model_steps": None,
        "ms_p50": p50(milliseconds),
        "ms_p95": p95(milliseconds),
        "tools_right": None,
    }


def _figures(results: Results) -> Iterator[tuple[str, float]]:
    plans, limits = results.plans, np.array(results.limits)
    own = plans[OWN + KEPT]
    times = _times(own)
    yield "casewright_ms_p50", p50(times)
    yield "casewright_ms_p95", p95(times)
    yield "memory_limit_ms_p50", p50(limits)
    # Ratios are medians of those plan by plan.
    yield "ratio_casewright_over_memory_limit_p50", p50(times / limits)
    for name, system in (("generate", PLAIN), ("masked_generate", MASKED)):
        kept, whole = plans[system + KEPT], plans[system]
        steps = sum(plan.model_steps for plan in own) / sum(plan.model_steps for plan in kept)
        yield f"share_of_{name}_model_steps", steps
        # Like for like: the head is given to both, or to neither.
        yield f"ratio_{name}_over_casewright_head_kept", p50(_times(kept) / times)
        yield f"ratio_{name}_over_casewright_head_read", p50(_times(whole) / _times(plans[OWN]))
        yield f"ratio_{name}_over_casewright_as_called", p50(_times(whole) / times)
    for name, system in (("casewright", OWN + KEPT), ("masked_generate", MASKED + KEPT)):
        gold = list(results.gold) * (len(own) // len(results.gold))
        right = [plan.text == text for plan, text in zip(plans[system], gold, strict=True)]
        yield f"scripted_plans_right_{name}", mean(right)
    if results.chosen:
        yield from _choice_figures(results.chosen)
    for part, count in results.greedy.items():
        yield f"greedy_{part}", float(count)
    for cost in results.grammars:
        yield f"grammar_ms_p50_{cost.toolbox}", p50(cost.ready)
        yield f"grammar_ms_p95_{cost.toolbox}", p95(cost.ready)
        yield f"grammar_ms_first_request_{cost.toolbox}", cost.first
    for example in results.exampled:
        yield f"prompting_ms_{example.count}_plan_cases", example.prompting_ms
        if example.count in results.right:
            yield f"tool_accuracy_{example.count}_plan_cases", results.right[example.count]
    for width, milliseconds in results.steps.items():
        yield f"network_ms_p50_reading_{width}_tokens", milliseconds


def _choice_figures(plans: Plans) -> Iterator[tuple[str, float]]:
    short = {GENERATED: "masked_generate", UNDRAFTED: "casewright", DRAFTED: "drafted"}
    drafted = plans[DRAFTED]
    for name, called in short.items():
        steps = [plan.model_steps for plan in plans[name]]
        yield f"own_choice_model_steps_p50_{called}", p50(steps)
        yield f"own_choice_ms_p50_{called}", p50(_times(plans[name]))
    for name in (GENERATED, UNDRAFTED):
        ratio = p50(_times(plans[name]) / _times(drafted))
        yield f"own_choice_ratio_{short[name]}_over_drafted", ratio
        same = [a.text == b.text for a, b in zip(plans[name], drafted, strict=True)]
        yield f"own_choice_plans_of_{short[name]}_same_as_drafted", mean(same)


def _times(plans: Sequence[WrittenPlan]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([plan.milliseconds for plan in plans])


def _draw(axes: Any, plans: Plans) -> None:
    """Draw the systems' milliseconds a plan over their model steps."""
    for number, way in enumerate((PLAIN, MASKED, OWN)):
        for name in (way, way + KEPT):
            steps = [plan.model_steps for plan in plans[name]]
            # A colour for each way to write; filled where the head is kept.
            inside = f"C{number}" if name.endswith(KEPT) else "none"
            style = {"color": f"C{number}", "markerfacecolor": inside, "label": name}
            axes.plot(steps, list(_times(plans[name])), "s^o"[number], alpha=0.8, **style)
    axes.set(xlabel="model steps of a plan", ylabel="milliseconds a plan", ylim=(0, None))
    axes.set_title("Writing the same plans with one model")
    axes.grid(alpha=0.3)
    axes.legend()


def _notes(trial: DecodingTrial, model: LanguageModel) -> list[str]:
    notes = [
        "Every system writes the same plans, those of annotated queries: the network's logits are "
        "computed at each step, and a script then chooses the longest allowed token that goes on "
        "with the plan. Plain generate writes whatever it likes, as many tokens as the plan has.",
        "Milliseconds a plan: its grammar, the prompt's tokens that are not kept, and its own. "
        "prompt_tokens are read first; with “head kept” the key/value states of what never changes "
        "are there already. One system after the other for each plan, in one process. Ratios are "
        "medians of those plan by plan; “as called” is generate without, the decoder with them.",
        "limit of memory: the bytes of the weights that a model step reads, times the steps of "
        "“casewright, head kept”, over the bandwidth that was measured by reading and copying.",
        "network_: a call of the network behind the prompt's head. What reading forced tokens "
        "together saves depends on how little more a call of a few tokens costs than one of one.",
        "greedy_: without a script, plans of two steps. explained: the first other token stands in "
        "a text that the grammar forced, cut another way by the model.",
        f"Plan cases ({', '.join(map(str, COUNTS))} in the prompt) are picked by maximal marginal "
        "relevance with quality bias, none of them a neighbour of the query.",
    ]
    if model.network.dtype.itemsize < 4:
        notes.append(
            f"greedy_ is by a model of {EXACT} in float32: rounded numbers are often equal."
        )
    if trial.model.random:
        return [
            *notes,
            "The weights are random: times are those of a trained model, contents are none. So "
            "no share of right tools is given; it needs --model.",
        ]
    return [
        *notes,
        "tools_right: share of plans with the right tools, over the queries that are for "
        "measuring only. These plans are the model's own choice.",
        "own choice: the model's own plans of queries that are for measuring only, no script. "
        "drafted: it reads the case planner's plan in one step and writes on from where it "
        "would have chosen otherwise. The case planner has learned from the other plan cases "
        "only, and its time counts.",
    ]
