"""A whole plan in one call beside the step-by-step agent, with one model, by the plan's steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.bench.dags import FixedPlanner
from casewright.bench.evidence import run_plan
from casewright.bench.harness import mean, open_ground, p50, p95, take_turns, timed
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
    Script,
    ScriptWriter,
    check_shape,
    no_tasks,
    shuffled_queries,
)
from casewright.errors import GrammarError
from casewright.graph import RunContext, build_graph
from casewright.graph.step_agent import CHARACTERS, ROWS, AgentRun, StepAgent, agent_prompt
from casewright.planner import parse_plan, render_prompt
from casewright.planner.decoding import Decoder
from casewright.planner.grammar import DONE, PlanGrammar
from casewright.stores.progress import note

if TYPE_CHECKING:
    from casewright.planner import AnnotatedQuery, PlanRequest, Prompt
    from casewright.planner.decoding import Written
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.tools import Toolbox

ONE_CALL, AGENT, STATELESS = "one call", "step agent", "step agent, stateless"
#: What systems are called in figures.
NAMES = {ONE_CALL: "one_call", AGENT: "step_agent", STATELESS: "stateless_agent"}
#: Steps of the plans that are asked for.
STEPS = (1, 2, 3, 4)
#: By system, in the order of the questions, as often as they were asked.
Done = Mapping[str, Sequence[AgentRun]]
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
class LatencyTrial:
    """What the bench is run with: the command's options."""

    domain: str = "shopping"
    model: ModelChoice = field(default_factory=ModelChoice)
    plans: int = 5
    repeats: int = 1
    shape: PromptShape | None = None
    plan_tokens: Range = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_shape(self.shape, self.model)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, who asks it, and how its plan is written.

    Attributes:
        query: The annotated query.
        request: Its request.
        scope: Somebody for whom every step of the plan finds something.
        whole: How the plan is written in one call.
        parts: How its steps are written in a call each, and then the word that ends them.
    """

    query: AnnotatedQuery
    request: PlanRequest
    scope: Mapping[str, str]
    whole: Script
    parts: Sequence[Script]


def measure_latency(trial: LatencyTrial) -> Report:
    """Ask the same questions by one call and by the agent, with the domain's own tools.

    Raises:
        InputError: The model cannot be had, or the domain has no queries with such plans.
    """
    trial.model.check_device()
    load = os.getloadavg()
    # What tools are asked is encoded each time, as it would be for a new question.
    with open_ground(trial.domain, uncached=True) as ground:
        toolbox, queries = ground.toolbox, ground.domain.queries()
        model = trial.model.open(tokenizer_texts(toolbox, queries))
        note(f"Planning with {model.name} on {model.device}.")
        asked = shuffled_queries(queries, trial.seed)
        scopes = ground.domain.scopes
        askers = [dict(zip(scopes, values, strict=True)) for values in product(*scopes.values())]
        questions = list(_questions(trial, model, toolbox, asked, askers))
        if not questions:
            raise no_tasks(trial.domain, trial.plan_tokens)
        named = _Systems(model, toolbox, trial.shape).named()
        warmed = list(named) if model.device.type == "cuda" else ()
        bandwidth = measure_bandwidth(model.device)
        looked = take_turns(named, questions, trial.repeats, "Asking", warmed)
    # What it is at best: other work may have met one of the two.
    bandwidth = max(bandwidth, measure_bandwidth(model.device))
    steps = [len(question.query.plan.steps) for question in questions]
    parts: dict[int, Done] = {
        count: {
            name: [run for place, run in enumerate(own) if steps[place % len(steps)] == count]
            for name, own in looked.items()
        }
        for count in sorted(set(steps))
    }
    return Report(
        bench="latency",
        settings={
            "domain": ground.domain.name,
            **described(model),
            "load_average_at_start": round(load[0], 2),
            "plans_of_each_number_of_steps": trial.plans,
            "repeats": trial.repeats,
            "prompts_brought_to": trial.shape and [trial.shape.head, trial.shape.tail],
            "plan_tokens": trial.plan_tokens,
            "results_shown_to_the_agent": {"rows": ROWS, "characters": CHARACTERS},
            "seed": trial.seed,
        },
        figures={
            **dict(_figures(questions, looked, parts)),
            "memory_gb_per_s": bandwidth / 1e9,
            "weights_gb_per_model_step": weight_bytes(model) / 1e9,
        },
        rows=_rows(parts, 1000 * weight_bytes(model) / bandwidth),
        notes=_NOTES,
        draw=lambda axes: _draw(axes, parts),
    )


def _questions(
    trial: LatencyTrial,
    model: LanguageModel,
    toolbox: Toolbox,
    queries: Iterable[AnnotatedQuery],
    askers: Sequence[Mapping[str, str]],
) -> Iterator[Question]:
    """Yield questions in the order of the queries, as many for each number of steps.

    Queries whose plans cannot be written, or find nothing for anybody, are left out.
    """
    scripts, grammar = ScriptWriter(model), PlanGrammar(model.grammar_tokenizer)
    wanted = dict.fromkeys(STEPS, trial.plans)
    for query in queries:
        steps = query.plan.steps
        if not wanted.get(len(steps)):
            continue
        request = query.record.request(toolbox)
        try:
            whole = scripts.script(grammar.plan(request), str(query.plan))
            if trial.plan_tokens is not None:
                least, most = trial.plan_tokens
                if not least <= len(whole.tokens) <= most:
                    continue
            lines = [*(f"s{number} = {step}" for number, step in enumerate(steps, 1)), DONE]
            parts = [
                scripts.script(grammar.next_step(request, query.plan.tools[:place]), line)
                for place, line in enumerate(lines)
            ]
        except GrammarError:
            continue
        for scope in askers:
            if all(end.status == "done" for end in run_plan(toolbox, query, scope)):
                wanted[len(steps)] -= 1
                yield Question(query, request, scope, whole, parts)
                break


class _Systems:
    """The systems that are compared: one model, one decoder, one grammar."""

    def __init__(self, model: LanguageModel, toolbox: Toolbox, shape: PromptShape | None) -> None:
        self._model = model
        self._grammar = PlanGrammar(model.grammar_tokenizer)
        self._shape = shape
        self._decoder = Decoder(model)
        # Each run brings the planner that knows its plan.
        self._graph = build_graph(toolbox, FixedPlanner(parse_plan("s1 = no_evidence()")))

    def named(self) -> Mapping[str, Callable[[Question], AgentRun]]:
        """Return the systems by their names."""
        return {ONE_CALL: self._one_call, AGENT: self._agent(False), STATELESS: self._agent(True)}

    def _one_call(self, question: Question) -> AgentRun:
        """Have the whole plan written, then let the graph run it."""
        prompt = self._encoded(render_prompt(question.request))
        choose = question.whole.choose()

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
        """Have one step after the other written and run."""
        agent = StepAgent(self._model, self._grammar, self._decoder, stateless=stateless)
        return lambda question: agent.run(
            question.request,
            self._encoded(agent_prompt(render_prompt(question.request))),
            question.scope,
            [part.choose() for part in question.parts],
        )

    def _encoded(self, prompt: Prompt) -> PromptTokens:
        tokens = self._model.encode(prompt)
        return tokens if self._shape is None else self._shape.fit(tokens)


def _rows(parts: Mapping[int, Done], step_limit: float) -> list[dict[str, Any]]:
    """Return a row for each number of steps and system; memory takes so many ms a model step."""
    return [
        {
            "steps": count,
            "system": name,
            "plans": len(own),
            "model_calls": mean(_values(own, "model_calls")),
            "model_steps": mean(_values(own, "model_steps")),
            "prompt_tokens": mean(_values(own, "prompt_tokens")),
            "written_tokens": mean(_values(own, "written_tokens")),
            "model_ms_p50": p50(_values(own, "model_ms")),
            "model_ms_p95": p95(_values(own, "model_ms")),
            "memory_limit_ms": p50(_values(own, "model_steps") * step_limit),
            "tools_ms_p50": p50(_values(own, "tools_ms")),
            "total_ms_p50": p50(_values(own, "total_ms")),
            "over_one_call": _ratio(own, part[ONE_CALL], "model_ms"),
        }
        for count, part in parts.items()
        for name, own in part.items()
    ]


def _figures(
    questions: Sequence[Question], looked: Done, parts: Mapping[int, Done]
) -> Iterator[tuple[str, float]]:
    for count, part in {**parts, 0: looked}.items():
        end = f"{count}_steps" if count else "all"
        once = part[ONE_CALL]
        yield f"one_call_model_ms_p50_{end}", p50(_values(once, "model_ms"))
        for name in (AGENT, STATELESS):
            over = f"ratio_{NAMES[name]}_over_one_call"
            for part_of in ("model_ms", "total_ms"):
                yield f"{over}_{part_of}_{end}", _ratio(part[name], once, part_of)
            read = [mean(_values(one, "prompt_tokens")) for one in (part[name], once)]
            yield f"{over}_prompt_tokens_{end}", read[0] / read[1]
    for name, own in looked.items():
        gold = [str(question.query.plan) for question in questions] * (len(own) // len(questions))
        right = [one.plan == plan for one, plan in zip(own, gold, strict=True)]
        yield f"scripted_plans_right_{NAMES[name]}", mean(right)


def _values(runs: Sequence[AgentRun], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if name == "total_ms":
        return _values(runs, "model_ms") + _values(runs, "tools_ms")
    return np.array([getattr(one, name) for one in runs], dtype=np.float64)


def _ratio(above: Sequence[AgentRun], below: Sequence[AgentRun], name: str) -> float:
    """Return the median of the ratios question by question."""
    return p50(_values(above, name) / _values(below, name))


def _draw(axes: Any, parts: Mapping[int, Done]) -> None:
    """Draw the milliseconds until all is looked up over the number of steps, a line a system."""
    counts = list(parts)
    for name, style in ((STATELESS, "^-"), (AGENT, "s-"), (ONE_CALL, "o-")):
        own = [p50(_values(parts[count][name], "total_ms")) for count in counts]
        axes.plot(counts, own, style, label=f"{name}, with its tools")
    tools = [p50(_values(parts[count][ONE_CALL], "tools_ms")) for count in counts]
    axes.plot(counts, tools, ":", color="grey", label=f"the tools of {ONE_CALL}")
    axes.set_xticks(counts)
    axes.set(xlabel="steps of the plan", ylabel="milliseconds, median", ylim=(0, None))
    axes.set_title("From the question to what was looked up")
    axes.grid(alpha=0.3)
    axes.legend()
