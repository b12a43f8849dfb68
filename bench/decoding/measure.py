"""Writing plans: transformers' ``generate``, ``generate`` under the grammar's mask, the decoder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from casewright.bench.decoding.agreement import Agreement, compare_greedy
from casewright.bench.decoding.bandwidth import measure_bandwidth, weight_bytes
from casewright.bench.decoding.examples import (
    COUNTS,
    prompt_of,
    right_tools,
    with_examples,
)
from casewright.bench.decoding.grammar_cost import grammar_costs
from casewright.bench.decoding.models import ModelChoice, described
from casewright.bench.decoding.results import Results, draw_times, figures_of, rows_of
from casewright.bench.decoding.step_cost import step_costs
from casewright.bench.decoding.systems import OWN, Made, Systems, Write
from casewright.bench.decoding.tasks import (
    PromptShape,
    Task,
    TaskWriter,
    other_plan_cases,
    shuffled_queries,
)
from casewright.bench.decoding.tokenizer import tokenizer_texts
from casewright.bench.decoding.turns import take_turns
from casewright.bench.planner import UncachedQuestions
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.folds import SAME_GROUP
from casewright.planner.grammar import PlanGrammar
from casewright.planner.plan_cases import SELECTION
from casewright.stores import default_encoder
from casewright.stores.paths import data_folder
from casewright.stores.progress import note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from casewright.planner import AnnotatedQuery
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.tools import Toolbox

#: The random model that compares greedy plans, where the measured one rounds its numbers.
EXACT = "100m"


@dataclass(frozen=True, slots=True)
class DecodingTrial:
    """What the bench is run with.

    Attributes:
        domain: Whose annotated queries are planned for.
        model: Who writes.
        plans: How many plans each system writes.
        repeats: How often.
        examples: Plan cases in the prompts that systems are compared on.
        pool: Annotated queries that plan cases are picked among; all by default.
        greedy: Plans that the decoder and masked ``generate`` are compared on without a script.
        grammars: Queries that the grammar alone is timed on.
        held_out: Queries that a trained model's own plans are scored on.
        shape: Lengths that prompts are brought to; as they are by default.
        plan_tokens: Fewest and most tokens of a plan.
        seed: Draws the queries.

    Raises:
        InputError: A trained model is to read prompts that are cut.
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
    plan_tokens: tuple[int, int] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_shape(self.shape, self.model)


def measure_decoding(trial: DecodingTrial) -> Report:
    """Let every system write the same plans, in one run.

    Plans are those of annotated queries; see ``script``.

    Raises:
        InputError: The model cannot be had, or the domain has no queries with such plans.
    """
    from casewright.domains import find_domain

    domain, encoder = find_domain(trial.domain), default_encoder()
    trial.model.check_device()
    opened = domain.open(data_folder() / domain.name, encoder, False)
    toolbox, queries = opened.toolbox, domain.queries()
    opened.close()
    load = os.getloadavg()
    model = trial.model.open(tokenizer_texts(toolbox, queries))
    note(f"Planning with {model.name} on {model.device}.")
    asked = shuffled_queries(queries, trial.seed)
    # What a grammar has learnt of a plan by finding its script is not known to the systems'.
    writer = TaskWriter(model, PlanGrammar(model.grammar_tokenizer), toolbox)
    grammar = PlanGrammar(model.grammar_tokenizer)
    tasks, refused = writer.tasks(asked, trial.plans, trial.plan_tokens)
    if not tasks:
        raise no_tasks(trial.domain, trial.plan_tokens)
    held_out = [] if trial.model.random else domain.measuring_queries()[: trial.held_out]
    known = [*(task.query for task in tasks), *held_out]
    bandwidth = measure_bandwidth(model.device)
    with other_plan_cases(queries[: trial.pool], known, UncachedQuestions(encoder)) as store:
        prompts = [prompt_of(model, task.request, store, trial.examples) for task in tasks]
        if trial.shape is not None:
            prompts = [trial.shape.fit(prompt) for prompt in prompts]
        exampled = with_examples(model, tasks, store)
        systems = Systems(model, grammar, prompts[0].head)
        named = {
            **{name: partial(_write, write, tasks, prompts) for name, write in systems.named()},
            **{one.name: partial(_write, systems.own, tasks, one.prompts) for one in exampled},
        }
        recorded = [name for name in named if name.startswith(OWN)]
        warmed = recorded if model.device.type == "cuda" else ()
        made = take_turns(named, range(len(tasks)), trial.repeats, "Writing plans", warmed)
        right = right_tools(model, toolbox, held_out, store) if held_out else {}
        cases = store.count()
    results = Results(
        made=made,
        gold=[task.text for task in tasks],
        exampled=exampled,
        right=right,
        greedy=_greedy(model, trial, toolbox, queries, asked),
        grammars=grammar_costs(model, toolbox, asked[: trial.grammars], queries),
        steps=step_costs(model, prompts[0].head),
        weight_bytes=weight_bytes(model),
        # What it is at best: other work may have met one of the two.
        bandwidth=max(bandwidth, measure_bandwidth(model.device)),
    )
    return Report(
        bench="decoding",
        settings={
            "domain": domain.name,
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
        figures=figures_of(results),
        rows=rows_of(results),
        notes=_notes(trial, model),
        draw=lambda axes: draw_times(axes, made),
    )


def _write(
    write: Write, tasks: Sequence[Task], prompts: Sequence[PromptTokens], place: int
) -> Made:
    return write(tasks[place], prompts[place])


def _greedy(
    model: LanguageModel,
    trial: DecodingTrial,
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
    asked: Sequence[AnnotatedQuery],
) -> Agreement:
    if "float32" not in str(model.network.dtype):
        note("Comparing greedy plans by a model in float32.")
        exact = ModelChoice(size=EXACT, device=trial.model.device, dtype="float32")
        model = exact.open(tokenizer_texts(toolbox, queries))
    grammar = PlanGrammar(model.grammar_tokenizer)
    return compare_greedy(model, grammar, toolbox, asked[: trial.greedy])


def check_shape(shape: PromptShape | None, model: ModelChoice) -> None:
    """Raise ``InputError`` where a trained model is to read prompts that are cut."""
    if shape is not None and not model.random:
        raise InputError(
            "--prompt-tokens cuts prompts in the middle, which a trained model would misread. "
            "Leave it out, or --model."
        )


def no_tasks(domain: str, tokens: tuple[int, int] | None) -> InputError:
    """Return the error that a domain has no annotated queries that could be planned for."""
    of = f" of {tokens[0]} to {tokens[1]} tokens" if tokens else ""
    return InputError(
        f"Domain {domain!r} has no annotated queries whose plans{of} can be written. "
        "Take --domain shopping, and a wider range of --plan-tokens."
    )


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
    if not trial.model.random:
        notes.append(
            "tools_right: share of plans with the right tools, over the queries that are for "
            "measuring only. These plans are the model's own choice."
        )
    else:
        notes.append(
            "The weights are random: times are those of a trained model, contents are none. So "
            "no share of right tools is given; it needs --model."
        )
    return notes
