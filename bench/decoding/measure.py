"""Writing plans: transformers' ``generate``, ``generate`` under the grammar's mask, the decoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    Made,
    Systems,
    compare_greedy,
)
from casewright.bench.harness import Ground, mean, p50, p95, read_ground, take_turns
from casewright.bench.models import (
    ModelChoice,
    described,
    measure_bandwidth,
    tokenizer_texts,
    weight_bytes,
)
from casewright.bench.report import Report
from casewright.bench.scripts import (
    PromptShape,
    Range,
    check_shape,
    make_tasks,
    no_tasks,
    other_plan_cases,
    shuffled_queries,
)
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


@dataclass(frozen=True, slots=True)
class DecodingTrial:
    """What the bench is run with: the command's options.

    ``pool`` is how many annotated queries plan cases are picked among; all by default.
    """

    domain: str = "shopping"
    model: ModelChoice = field(default_factory=ModelChoice)
    plans: int = 20
    repeats: int = 1
    examples: int = 1
    pool: int | None = None
    greedy: int = 20
    grammars: int = 200
    held_out: int = 100
    shape: PromptShape | None = None
    plan_tokens: Range = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_shape(self.shape, self.model)


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was measured.

    Attributes:
        made: By system, what it wrote; the same plans in the same order. The decoder is there
            again for each number of plan cases in the prompt.
        gold: The plans that were to be written, in that order.
        exampled: The prompts by their number of plan cases.
        right: Share of a trained model's own plans with the right tools, by that number.
        chosen: By system, a trained model's plans of its own choice.
        greedy: The decoder beside masked ``generate``, without a script.
        grammars: What the grammar alone costs.
        steps: Milliseconds of a call of the network, by how many tokens it reads.
        weight_bytes: That a model step reads.
        bandwidth: Of the memory that they are in; bytes a second.
    """

    made: Mapping[str, Sequence[Made]]
    gold: Sequence[str]
    exampled: Sequence[Exampled]
    right: Mapping[int, float]
    chosen: Mapping[str, Sequence[Made]]
    greedy: Mapping[str, int]
    grammars: Sequence[GrammarCost]
    steps: Mapping[int, float]
    weight_bytes: int
    bandwidth: float

    @property
    def limits(self) -> list[float]:
        """Milliseconds below which memory cannot give the weights, for each of the own plans."""
        step = 1000 * self.weight_bytes / self.bandwidth
        return [one.model_steps * step for one in self.made[OWN + KEPT]]


def measure_decoding(trial: DecodingTrial) -> Report:
    """Let every system write the same plans, in one run: those of annotated queries.

    Raises:
        InputError: The model cannot be had, or the domain has no queries with such plans.
    """
    trial.model.check_device()
    ground = read_ground(trial.domain)
    toolbox, queries = ground.toolbox, ground.domain.queries()
    load = os.getloadavg()
    model = trial.model.open(tokenizer_texts(toolbox, queries))
    note(f"Planning with {model.name} on {model.device}.")
    asked = shuffled_queries(queries, trial.seed)
    # What a grammar has learnt of a plan by finding its script is not known to the systems'.
    finding, grammar = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
    tasks, refused = make_tasks(model, finding, toolbox, asked, trial.plans, trial.plan_tokens)
    if not tasks:
        raise no_tasks(trial.domain, trial.plan_tokens)
    measuring = [] if trial.model.random else ground.domain.measuring_queries()
    held_out = measuring[: trial.held_out]
    own = shuffled_queries(measuring, trial.seed)[: trial.plans]
    known = [*(task.query for task in tasks), *held_out, *own]
    bandwidth = measure_bandwidth(model.device)
    with other_plan_cases(queries[: trial.pool], known, ground.uncached) as store:
        prompts = [prompt_of(model, task.request, store, trial.examples) for task in tasks]
        if trial.shape is not None:
            prompts = [trial.shape.fit(prompt) for prompt in prompts]
        exampled = with_examples(model, tasks, store)
        systems = Systems(model, grammar, prompts[0].head)
        ways: dict[str, tuple[Callable[..., Made], Sequence[PromptTokens]]] = {
            name: (write, prompts) for name, write in systems.named().items()
        }
        ways |= {one.name: (systems.own, one.prompts) for one in exampled}

        def written(name: str, place: int) -> Made:
            write, behind = ways[name]
            return write(tasks[place], behind[place])

        named = {name: partial(written, name) for name in ways}
        # A GPU records each width of a step when it first meets it.
        warmed = [n for n in named if n.startswith(OWN)] if model.device.type == "cuda" else ()
        made = take_turns(named, range(len(tasks)), trial.repeats, "Writing plans", warmed)
        chosen = _chosen(model, trial, ground, own, store) if own else {}
        right = right_tools(model, toolbox, held_out, store) if held_out else {}
        cases = store.count()
    results = Results(
        made=made,
        gold=[task.text for task in tasks],
        exampled=exampled,
        right=right,
        chosen=chosen,
        greedy=_greedy(model, trial, ground, asked),
        grammars=grammar_costs(model, toolbox, asked[: trial.grammars], queries),
        steps=step_costs(model, prompts[0].head),
        weight_bytes=weight_bytes(model),
        # What it is at best: other work may have met one of the two.
        bandwidth=max(bandwidth, measure_bandwidth(model.device)),
    )
    return Report(
        bench="decoding",
        settings={
            "domain": ground.domain.name,
            **described(model),
            "load_average_at_start": round(load[0], 2),
            "plans": len(tasks),
            "repeats": trial.repeats,
            "head_tokens": len(prompts[0].head),
            "prompts_brought_to": trial.shape and [trial.shape.head, trial.shape.tail],
            "plan_tokens": trial.plan_tokens,
            "plan_cases_in_prompts": trial.examples,
            "plan_cases_to_pick_from": cases,
            "picked_by": {"lambda_d": SELECTION.lambda_d, "lambda_b": SELECTION.lambda_b},
            "same_group_above": SAME_GROUP,
            "queries_refused_by_the_grammar": refused,
            "queries_kept_from_the_model": len(held_out),
            "seed": trial.seed,
        },
        figures=dict(_figures(results)),
        rows=_rows(results),
        notes=_notes(trial, model),
        draw=lambda axes: _draw(axes, made),
    )


def _chosen(
    model: LanguageModel,
    trial: DecodingTrial,
    ground: Ground,
    own: Sequence[AnnotatedQuery],
    store: CaseStore,
) -> dict[str, list[Made]]:
    """Return what a trained model writes by its own choice."""
    requests = [query.record.request(ground.toolbox) for query in own]
    prompts = [prompt_of(model, request, store, trial.examples) for request in requests]
    systems = Systems(model, PlanGrammar(model.grammar_tokenizer), prompts[0].head)
    ways = systems.of_own_choice(requests, prompts, store)
    warmed = (UNDRAFTED, DRAFTED) if model.device.type == "cuda" else ()
    label = "Writing plans of its own choice"
    return take_turns(ways, range(len(requests)), trial.repeats, label, warmed)


def _greedy(
    model: LanguageModel, trial: DecodingTrial, ground: Ground, asked: Sequence[AnnotatedQuery]
) -> dict[str, int]:
    if "float32" not in str(model.network.dtype):
        note("Comparing greedy plans by a model in float32.")
        exact = ModelChoice(size=EXACT, device=trial.model.device, dtype="float32")
        model = exact.open(tokenizer_texts(ground.toolbox, ground.domain.queries()))
    grammar = PlanGrammar(model.grammar_tokenizer)
    return compare_greedy(model, grammar, ground.toolbox, asked[: trial.greedy])


def _rows(results: Results) -> list[dict[str, Any]]:
    """Return the table: systems, numbers of plan cases, the memory's limit, grammars."""
    right = {one.name: results.right.get(one.count) for one in results.exampled}
    rows = [
        {
            **_row(name, _times(made)),
            "prompt_tokens": p50([one.prompt_tokens for one in made]),
            "plan_tokens": mean([one.plan_tokens for one in made]),
            "model_steps": mean([one.model_steps for one in made]),
            "tools_right": right.get(name),
        }
        for name, made in {**results.made, **results.chosen}.items()
    ]
    rows.append(_row("limit of memory for casewright, head kept", results.limits))
    for cost in results.grammars:
        name = cost.toolbox.replace("_", " ")
        rows.append(_row(f"grammar, {name}: ready", cost.made))
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
    made, limits = results.made, np.array(results.limits)
    own = made[OWN + KEPT]
    times = _times(own)
    yield "casewright_ms_p50", p50(times)
    yield "casewright_ms_p95", p95(times)
    yield "memory_limit_ms_p50", p50(limits)
    # Ratios are medians of those plan by plan.
    yield "ratio_casewright_over_memory_limit_p50", p50(times / limits)
    for name, system in (("generate", PLAIN), ("masked_generate", MASKED)):
        kept, whole = made[system + KEPT], made[system]
        steps = sum(one.model_steps for one in own) / sum(one.model_steps for one in kept)
        yield f"share_of_{name}_model_steps", steps
        # Like for like: the head is given to both, or to neither.
        yield f"ratio_{name}_over_casewright_head_kept", p50(_times(kept) / times)
        yield f"ratio_{name}_over_casewright_head_read", p50(_times(whole) / _times(made[OWN]))
        yield f"ratio_{name}_over_casewright_as_called", p50(_times(whole) / times)
    for name, system in (("casewright", OWN + KEPT), ("masked_generate", MASKED + KEPT)):
        gold = list(results.gold) * (len(own) // len(results.gold))
        right = [one.text == text for one, text in zip(made[system], gold, strict=True)]
        yield f"scripted_plans_right_{name}", mean(right)
    if results.chosen:
        yield from _choice_figures(results.chosen)
    for part, count in results.greedy.items():
        yield f"greedy_{part}", float(count)
    for cost in results.grammars:
        yield f"grammar_ms_p50_{cost.toolbox}", p50(cost.made)
        yield f"grammar_ms_p95_{cost.toolbox}", p95(cost.made)
        yield f"grammar_ms_first_request_{cost.toolbox}", cost.first
    for one in results.exampled:
        yield f"prompting_ms_{one.count}_plan_cases", one.prompting_ms
        if one.count in results.right:
            yield f"tool_accuracy_{one.count}_plan_cases", results.right[one.count]
    for width, milliseconds in results.steps.items():
        yield f"network_ms_p50_reading_{width}_tokens", milliseconds
    yield "memory_gb_per_s", results.bandwidth / 1e9
    yield "weights_gb_per_model_step", results.weight_bytes / 1e9


def _choice_figures(made: Mapping[str, Sequence[Made]]) -> Iterator[tuple[str, float]]:
    short = {GENERATED: "masked_generate", UNDRAFTED: "casewright", DRAFTED: "drafted"}
    drafted = made[DRAFTED]
    for name, called in short.items():
        yield f"own_choice_model_steps_p50_{called}", p50([one.model_steps for one in made[name]])
        yield f"own_choice_ms_p50_{called}", p50(_times(made[name]))
    for name in (GENERATED, UNDRAFTED):
        ratio = p50(_times(made[name]) / _times(drafted))
        yield f"own_choice_ratio_{short[name]}_over_drafted", ratio
        same = [a.text == b.text for a, b in zip(made[name], drafted, strict=True)]
        yield f"own_choice_plans_of_{short[name]}_same_as_drafted", mean(same)


def _times(made: Sequence[Made]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([one.milliseconds for one in made])


def _draw(axes: Any, made: Mapping[str, Sequence[Made]]) -> None:
    """Draw the systems' milliseconds a plan over their model steps."""
    for number, way in enumerate((PLAIN, MASKED, OWN)):
        for name in (way, way + KEPT):
            steps = [one.model_steps for one in made[name]]
            # A colour for each way to write; filled where the head is kept.
            inside = f"C{number}" if name.endswith(KEPT) else "none"
            style = {"color": f"C{number}", "markerfacecolor": inside, "label": name}
            axes.plot(steps, list(_times(made[name])), "s^o"[number], alpha=0.8, **style)
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
