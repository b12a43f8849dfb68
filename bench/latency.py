"""The time to plan with one call of a model, and with an agent that needs a call for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from casewright.bench.harness import finish, mean, open_domain, p50, p95, take_turns, timed
from casewright.bench.models import GenerationTrial, MeasuredModel
from casewright.bench.report import Report
from casewright.bench.scripts import Script, ScriptWriter, shuffled_queries
from casewright.domains.gold_plans import run_plan, scope_combinations
from casewright.errors import GrammarError
from casewright.graph import RunContext, build_graph
from casewright.graph.step_agent import MAX_CHARACTERS, MAX_ROWS, AgentRun, StepAgent, agent_prompt
from casewright.planner import AnnotatedQuery, PlanRequest, parse_plan, render_prompt
from casewright.planner.decoding import Decoder, Written
from casewright.planner.fixed import FixedPlanner
from casewright.planner.grammar import DONE, PlanGrammar
from casewright.planner.language_model import LanguageModel
from casewright.planner.language_model.device import find_device
from casewright.tools import Toolbox

#: The names of the compared systems.
ONE_CALL, AGENT, STATELESS = "one call", "step agent", "step agent, stateless"
THINKING = "step agent with thoughts"
#: The systems' names in figures.
FIGURE_NAMES = {ONE_CALL: "one_call", AGENT: "step_agent"}
FIGURE_NAMES |= {STATELESS: "stateless_agent", THINKING: "thinking_agent"}
#: The numbers of steps in the measured plans.
STEP_COUNTS = (1, 2, 3, 4)
#: Each system's runs: one for each question in order, and all of this ``repeats`` times.
Runs = Mapping[str, Sequence[AgentRun]]
_NOTES = (
    "All systems use the same model, grammar and decoder, and cache the states of the prompt's "
    "head (role and tools); tokens that the grammar forces take no model step. All write gold "
    "plans whose every step has results: a model step computes the network's logits, and a script "
    "then chooses the plan's next token. The systems take turns at each question, in one process.",
    "step agent: each call writes one step after the results of the earlier steps, until the agent "
    "writes that it is done; the key/value states of its calls are cached. Stateless: every call "
    "reads all tokens after the head again. With thoughts: the model itself writes a line of "
    "at most 200 characters before each scripted step.",
    "prompt_tokens: the tokens after the head. model_ms includes the time of the grammar. "
    "over_one_call: the median ratio, by question, of model_ms to that of one call. For one call "
    "the graph runs tools in parallel where possible; the agent's tools run one after the other. "
    "memory_limit_ms: the time to read the weights for each model step at the measured bandwidth.",
)


class Question(NamedTuple):
    """A question, and the scripts by which a model writes the question's gold plan."""

    query: AnnotatedQuery
    request: PlanRequest
    scope: Mapping[str, str]  # the scope of a user for whom every step of the plan has results
    script: Script  # the script of the whole plan, for one call
    step_scripts: Sequence[Script]  # a script for each call of the agent; the last writes DONE


def measure_latency(trial: GenerationTrial) -> Report:
    """Time all systems on ``trial.plans`` questions for each number of steps in a plan.

    Raise ``InputError`` if the model cannot be loaded, or the domain has no suitable query.
    """
    find_device(trial.model.device)
    # With cached vectors, the tools would not encode their arguments.
    with open_domain(trial.domain, cached=False) as tested:
        measured, toolbox = MeasuredModel(trial, tested), tested.toolbox
        queries = shuffled_queries(tested.domain.queries(), trial.seed)
        scopes = scope_combinations(tested.domain)
        questions = list(_questions(trial, measured.model, toolbox, queries, scopes))
        if not questions:
            raise trial.no_queries_error()
        systems = _systems(measured.model, toolbox)
        fully_warmed = list(systems) if measured.needs_warmup else ()
        runs = take_turns(systems, questions, trial.repeats, "Asking", fully_warmed)
    measured.measure_bandwidth_again()
    step_counts = [len(question.query.plan.steps) for question in questions]
    runs_by_steps: dict[int, Runs] = {
        count: {
            name: [run for run, n in zip(all_runs, cycle(step_counts), strict=False) if n == count]
            for name, all_runs in runs.items()
        }
        for count in sorted(set(step_counts))
    }
    settings = {"domain": tested.domain.name, **measured.settings}
    settings["plans_of_each_number_of_steps"] = trial.plans
    settings["results_shown_to_the_agent"] = {"rows": MAX_ROWS, "characters": MAX_CHARACTERS}
    figures = {**dict(_figures(questions, runs, runs_by_steps)), **measured.figures}
    rows = _rows(runs_by_steps, measured.min_step_ms)
    return Report(
        "latency", settings, figures, rows, _NOTES, partial(_draw, runs_by_steps=runs_by_steps)
    )


def _questions(
    trial: GenerationTrial,
    model: LanguageModel,
    toolbox: Toolbox,
    queries: Iterable[AnnotatedQuery],
    scopes: Sequence[Mapping[str, str]],
) -> Iterator[Question]:
    """Yield ``trial.plans`` questions for each number of steps, in the order of the queries.

    The grammar allows each question's plan, and every step has results in the question's scope.
    """
    scripts, grammar = ScriptWriter(model), PlanGrammar(model.grammar_tokenizer)
    remaining = dict.fromkeys(STEP_COUNTS, trial.plans)
    for query in queries:
        steps = query.plan.steps
        if not remaining.get(len(steps)):
            continue
        request = query.record.request(toolbox)
        try:
            script = scripts.script(grammar.plan_matcher(request), str(query.plan))
            lines = [*(f"s{number} = {step}" for number, step in enumerate(steps, 1)), DONE]
            step_scripts = [
                scripts.script(grammar.line_matcher(request, query.plan.tools[:number]), line)
                for number, line in enumerate(lines)
            ]
        except GrammarError:
            continue
        for scope in scopes:
            if all(outcome.status == "done" for outcome in run_plan(toolbox, query, scope)):
                remaining[len(steps)] -= 1
                yield Question(query, request, scope, script, step_scripts)
                break


def _systems(
    model: LanguageModel, toolbox: Toolbox
) -> Mapping[str, Callable[[Question], AgentRun]]:
    """Return the systems by name; they share a model, a decoder and a grammar."""
    grammar, decoder = PlanGrammar(model.grammar_tokenizer), Decoder(model)
    # The planner in a run's context replaces this placeholder.
    graph = build_graph(toolbox, FixedPlanner(parse_plan("s1 = no_evidence()")))

    def one_call(question: Question) -> AgentRun:
        prompt = model.encode(render_prompt(question.request))
        choose = question.script.chooser()

        def generate() -> tuple[Written, Any]:
            written = decoder.write(prompt, grammar.plan_matcher(question.request), choose=choose)
            return written, parse_plan(model.decode(written.tokens))

        (written, plan), model_ms = timed(generate, model.device)
        state: Any = {"question": question.query.query, "context": dict(question.request.context)}
        context = RunContext(scope=question.scope, planner=FixedPlanner(plan))
        answer = graph.invoke(state, context=context)["answer"]
        return AgentRun(
            plan=str(plan),
            outcomes=(),
            model_calls=1,
            model_steps=written.model_steps,
            prompt_tokens=len(prompt.tail),
            written_tokens=len(written.tokens),
            model_ms=model_ms,
            tools_ms=answer["usage"]["execution_ms"],
        )

    def step_agent(**settings: bool) -> Callable[[Question], AgentRun]:
        agent = StepAgent(model, grammar, decoder, **settings)
        return lambda question: agent.run(
            question.request,
            model.encode(agent_prompt(render_prompt(question.request))),
            question.scope,
            [script.chooser() for script in question.step_scripts],
        )

    agents = {STATELESS: step_agent(stateless=True), THINKING: step_agent(thoughts=True)}
    return {ONE_CALL: one_call, AGENT: step_agent(), **agents}


def _rows(runs_by_steps: Mapping[int, Runs], min_step_ms: float) -> list[dict[str, Any]]:
    """Return a row for each step count and system; a model step takes at least ``min_step_ms``."""
    mean_columns = ("model_calls", "model_steps", "prompt_tokens", "written_tokens")
    return [
        {
            "steps": count,
            "system": name,
            "plans": len(runs),
            **{column: mean(_values(runs, column)) for column in mean_columns},
            "model_ms_p50": p50(_values(runs, "model_ms")),
            "model_ms_p95": p95(_values(runs, "model_ms")),
            "memory_limit_ms": p50(_values(runs, "model_steps") * min_step_ms),
            "tools_ms_p50": p50(_values(runs, "tools_ms")),
            "total_ms_p50": p50(_values(runs, "total_ms")),
            "over_one_call": _ratio(runs, runs_by_system[ONE_CALL], "model_ms"),
        }
        for count, runs_by_system in runs_by_steps.items()
        for name, runs in runs_by_system.items()
    ]


def _figures(
    questions: Sequence[Question], runs: Runs, runs_by_steps: Mapping[int, Runs]
) -> Iterator[tuple[str, float]]:
    groups = {**{f"{count}_steps": group for count, group in runs_by_steps.items()}, "all": runs}
    for label, runs_by_system in groups.items():
        one_call = runs_by_system[ONE_CALL]
        yield f"one_call_model_ms_p50_{label}", p50(_values(one_call, "model_ms"))
        for name in (AGENT, STATELESS, THINKING):
            ratio = f"ratio_{FIGURE_NAMES[name]}_over_one_call"
            for column in ("model_ms", "total_ms"):
                yield f"{ratio}_{column}_{label}", _ratio(runs_by_system[name], one_call, column)
            tokens = mean(_values(runs_by_system[name], "prompt_tokens"))
            one_call_tokens = mean(_values(one_call, "prompt_tokens"))
            yield f"{ratio}_prompt_tokens_{label}", tokens / one_call_tokens
    for name, system_runs in runs.items():
        gold_plans = cycle(str(question.query.plan) for question in questions)
        right = [run.plan == plan for run, plan in zip(system_runs, gold_plans, strict=False)]
        yield f"scripted_plans_right_{FIGURE_NAMES[name]}", mean(right)


def _values(runs: Sequence[AgentRun], column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if column == "total_ms":
        return _values(runs, "model_ms") + _values(runs, "tools_ms")
    return np.array([getattr(run, column) for run in runs], dtype=np.float64)


def _ratio(runs: Sequence[AgentRun], base_runs: Sequence[AgentRun], column: str) -> float:
    """Return the median, over pairs of runs, of a column's ratio to the base system."""
    return p50(_values(runs, column) / _values(base_runs, column))


def _draw(axes: Any, runs_by_steps: Mapping[int, Runs]) -> None:
    counts = list(runs_by_steps)
    styles = {THINKING: "v-", STATELESS: "^-", AGENT: "s-", ONE_CALL: "o-"}
    for name, style in styles.items():
        times = [p50(_values(runs_by_steps[count][name], "total_ms")) for count in counts]
        axes.plot(counts, times, style, label=f"{name}, with its tools")
    tools = [p50(_values(runs_by_steps[count][ONE_CALL], "tools_ms")) for count in counts]
    axes.plot(counts, tools, ":", color="grey", label=f"the tools of {ONE_CALL}")
    labels = {"xlabel": "steps of the plan", "ylabel": "milliseconds, median"}
    finish(axes, "From the question to the last look-up", xticks=counts, ylim=(0, None), **labels)
