"""A whole plan in one call beside the step-by-step agent, with one model, by the plan's steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.bench.harness import finish, mean, open_ground, p50, p95, take_turns, timed
from casewright.bench.models import Writer, WritingTrial
from casewright.bench.report import Report
from casewright.bench.scripts import Script, ScriptWriter, shuffled_queries
from casewright.domains.gold_plans import run_plan, scopes_of
from casewright.errors import GrammarError
from casewright.graph import RunContext, build_graph
from casewright.graph.step_agent import CHARACTERS, ROWS, AgentRun, StepAgent, agent_prompt
from casewright.planner import parse_plan, render_prompt
from casewright.planner.decoding import Decoder
from casewright.planner.fixed import FixedPlanner
from casewright.planner.grammar import DONE, PlanGrammar

if TYPE_CHECKING:
    from casewright.planner import AnnotatedQuery, PlanRequest
    from casewright.planner.decoding import Written
    from casewright.planner.language_model import LanguageModel
    from casewright.tools import Toolbox

ONE_CALL, AGENT, STATELESS = "one call", "step agent", "step agent, stateless"
#: The systems' names in figures.
NAMES = {ONE_CALL: "one_call", AGENT: "step_agent", STATELESS: "stateless_agent"}
#: Numbers of steps of the plans.
STEPS = (1, 2, 3, 4)
#: Runs by system, in the order of the questions, ``repeats`` times.
Runs = Mapping[str, Sequence[AgentRun]]
_NOTES = (
    "The same model, grammar and decoder for all; the prompt's head is kept, forced tokens take no "
    "model step. The plans are those of annotated queries whose every step finds something: the "
    "network's logits are computed at each step, and a script then chooses what goes on with the "
    "plan. The systems take turns question by question, in one process.",
    "step agent: asked for one step at a time, sees what each found, until it writes that it is "
    "done; it keeps its conversation's key/value states. Stateless: every call reads all behind "
    "the head anew.",
    "prompt_tokens are read behind the head; model_ms hold the grammars too; over_one_call: the "
    "median of their ratios question by question. One call's tools run as the graph runs them, at "
    "the same time where they can; the agent's one after the other. memory_limit_ms: the weights "
    "that the model steps read, over the measured bandwidth.",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the scripts of its plan.

    Attributes:
        scope: A user's scope for whom every step of the plan finds something.
        script: Of the plan in one call.
        steps: The scripts of its steps, a call each, and of the word that ends them.
    """

    query: AnnotatedQuery
    request: PlanRequest
    scope: Mapping[str, str]
    script: Script
    steps: Sequence[Script]


def measure_latency(trial: WritingTrial) -> Report:
    """Ask the same questions by one call and by the agent, with the domain's own tools.

    ``trial.plans`` is for each number of steps.

    Raises:
        InputError: The model cannot be loaded, or the domain has no queries with such plans.
    """
    trial.model.check_device()
    # The tools' arguments are encoded each time, as they would be for a new question.
    with open_ground(trial.domain, uncached=True) as ground:
        writer, toolbox = Writer(trial, ground), ground.toolbox
        queries = shuffled_queries(ground.domain.queries(), trial.seed)
        scopes = scopes_of(ground.domain)
        questions = list(_questions(trial, writer.model, toolbox, queries, scopes))
        if not questions:
            raise trial.no_tasks()
        systems = _Systems(writer.model, toolbox).named()
        warmed = list(systems) if writer.warms else ()
        runs = take_turns(systems, questions, trial.repeats, "Asking", warmed)
    writer.measure_again()
    steps = [len(question.query.plan.steps) for question in questions]
    parts: dict[int, Runs] = {
        count: {
            name: [
                run for number, run in enumerate(own_runs) if steps[number % len(steps)] == count
            ]
            for name, own_runs in runs.items()
        }
        for count in sorted(set(steps))
    }
    return Report(
        bench="latency",
        settings={
            "domain": ground.domain.name,
            **writer.settings,
            "plans_of_each_number_of_steps": trial.plans,
            "results_shown_to_the_agent": {"rows": ROWS, "characters": CHARACTERS},
        },
        figures={**dict(_figures(questions, runs, parts)), **writer.figures},
        rows=_rows(parts, writer.step_limit),
        notes=_NOTES,
        draw=lambda axes: _draw(axes, parts),
    )


def _questions(
    trial: WritingTrial,
    model: LanguageModel,
    toolbox: Toolbox,
    queries: Iterable[AnnotatedQuery],
    scopes: Sequence[Mapping[str, str]],
) -> Iterator[Question]:
    """Yield questions in the order of the queries, as many for each number of steps.

    Queries are left out if their plans cannot be written, or find nothing in any scope.
    """
    scripts, grammar = ScriptWriter(model), PlanGrammar(model.grammar_tokenizer)
    missing = dict.fromkeys(STEPS, trial.plans)
    for query in queries:
        steps = query.plan.steps
        if not missing.get(len(steps)):
            continue
        request = query.record.request(toolbox)
        try:
            script = scripts.script(grammar.plan(request), str(query.plan))
            lines = [*(f"s{number} = {step}" for number, step in enumerate(steps, 1)), DONE]
            step_scripts = [
                scripts.script(grammar.next_step(request, query.plan.tools[:number]), line)
                for number, line in enumerate(lines)
            ]
        except GrammarError:
            continue
        for scope in scopes:
            if all(end.status == "done" for end in run_plan(toolbox, query, scope)):
                missing[len(steps)] -= 1
                yield Question(query, request, scope, script, step_scripts)
                break


class _Systems:
    """The compared systems, which share a model, a decoder and a grammar."""

    def __init__(self, model: LanguageModel, toolbox: Toolbox) -> None:
        self._model = model
        self._grammar = PlanGrammar(model.grammar_tokenizer)
        self._decoder = Decoder(model)
        # Each run has a planner of its own in its context.
        self._graph = build_graph(toolbox, FixedPlanner(parse_plan("s1 = no_evidence()")))

    def named(self) -> Mapping[str, Callable[[Question], AgentRun]]:
        """Return the systems by their names."""
        return {ONE_CALL: self._one_call, AGENT: self._agent(False), STATELESS: self._agent(True)}

    def _one_call(self, question: Question) -> AgentRun:
        """Write the plan in one call, then let the graph run it."""
        prompt = self._model.encode(render_prompt(question.request))
        choose = question.script.choose()

        def planned() -> tuple[Written, Any]:
            matcher = self._grammar.plan(question.request)
            written = self._decoder.write(prompt, matcher, choose=choose)
            return written, parse_plan(self._model.decode(written.tokens))

        (written, plan), spent = timed(planned, self._model.device)
        answer = self._graph.invoke(
            {"question": question.query.query, "context": dict(question.request.context)},
            context=RunContext(scope=question.scope, planner=FixedPlanner(plan)),
        )["answer"]
        return AgentRun(
            plan=str(plan),
            outcomes=(),
            model_calls=1,
            model_steps=written.model_steps,
            prompt_tokens=len(prompt.tail),
            written_tokens=len(written.tokens),
            model_ms=spent,
            tools_ms=answer["usage"]["execution_ms"],
        )

    def _agent(self, stateless: bool) -> Callable[[Question], AgentRun]:
        """Return the agent, which writes and runs one step after the other."""
        agent = StepAgent(self._model, self._grammar, self._decoder, stateless=stateless)
        return lambda question: agent.run(
            question.request,
            self._model.encode(agent_prompt(render_prompt(question.request))),
            question.scope,
            [script.choose() for script in question.steps],
        )


def _rows(parts: Mapping[int, Runs], step_limit: float) -> list[dict[str, Any]]:
    """Return a row by number of steps and system; ``step_limit`` is the memory's ms a step."""
    means = ("model_calls", "model_steps", "prompt_tokens", "written_tokens")
    return [
        {
            "steps": count,
            "system": name,
            "plans": len(runs),
            **{column: mean(_values(runs, column)) for column in means},
            "model_ms_p50": p50(_values(runs, "model_ms")),
            "model_ms_p95": p95(_values(runs, "model_ms")),
            "memory_limit_ms": p50(_values(runs, "model_steps") * step_limit),
            "tools_ms_p50": p50(_values(runs, "tools_ms")),
            "total_ms_p50": p50(_values(runs, "total_ms")),
            "over_one_call": _ratio(runs, part[ONE_CALL], "model_ms"),
        }
        for count, part in parts.items()
        for name, runs in part.items()
    ]


def _figures(
    questions: Sequence[Question], runs: Runs, parts: Mapping[int, Runs]
) -> Iterator[tuple[str, float]]:
    for count, part in {**parts, 0: runs}.items():
        end = f"{count}_steps" if count else "all"
        once = part[ONE_CALL]
        yield f"one_call_model_ms_p50_{end}", p50(_values(once, "model_ms"))
        for name in (AGENT, STATELESS):
            over = f"ratio_{NAMES[name]}_over_one_call"
            for column in ("model_ms", "total_ms"):
                yield f"{over}_{column}_{end}", _ratio(part[name], once, column)
            read = [mean(_values(own_runs, "prompt_tokens")) for own_runs in (part[name], once)]
            yield f"{over}_prompt_tokens_{end}", read[0] / read[1]
    for name, own_runs in runs.items():
        gold = [str(question.query.plan) for question in questions] * (
            len(own_runs) // len(questions)
        )
        right = [run.plan == plan for run, plan in zip(own_runs, gold, strict=True)]
        yield f"scripted_plans_right_{NAMES[name]}", mean(right)


def _values(runs: Sequence[AgentRun], column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if column == "total_ms":
        return _values(runs, "model_ms") + _values(runs, "tools_ms")
    return np.array([getattr(run, column) for run in runs], dtype=np.float64)


def _ratio(above: Sequence[AgentRun], below: Sequence[AgentRun], column: str) -> float:
    """Return the median over the questions of their ratios."""
    return p50(_values(above, column) / _values(below, column))


def _draw(axes: Any, parts: Mapping[int, Runs]) -> None:
    """Draw the time until the last look-up over the number of steps, a line for each system."""
    counts = list(parts)
    for name, style in ((STATELESS, "^-"), (AGENT, "s-"), (ONE_CALL, "o-")):
        times = [p50(_values(parts[count][name], "total_ms")) for count in counts]
        axes.plot(counts, times, style, label=f"{name}, with its tools")
    tools = [p50(_values(parts[count][ONE_CALL], "tools_ms")) for count in counts]
    axes.plot(counts, tools, ":", color="grey", label=f"the tools of {ONE_CALL}")
    axes.set_xticks(counts)
    axes.set(xlabel="steps of the plan", ylabel="milliseconds, median")
    finish(axes, "From the question to the last look-up", ylim=(0, None))
