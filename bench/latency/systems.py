"""A plan in one call, and the step-by-step agent with and without a kept conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.bench.dags import FixedPlanner
from casewright.bench.decoding.tasks import PromptShape
from casewright.bench.decoding.turns import timed
from casewright.bench.latency.questions import Question
from casewright.bench.latency.step_agent import StepAgent, agent_prompt
from casewright.graph import RunContext, build_graph
from casewright.planner import parse_plan, render_prompt
from casewright.planner.decoding import Decoder

if TYPE_CHECKING:
    from casewright.planner import Plan, Prompt
    from casewright.planner.grammar import PlanGrammar
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.tools import Toolbox

ONE_CALL, AGENT, STATELESS = "one call", "step agent", "step agent, stateless"


@dataclass(frozen=True, slots=True)
class Looked:
    """What one system needed until all that was asked for is looked up.

    Attributes:
        plan: What was looked up.
        found: Steps that ended ``done``.
        model_calls: How often the model was asked.
        model_steps: Calls of the network that a token was chosen from.
        prompt_tokens: Tokens that were read behind the prompt's head.
        written_tokens: Tokens that the model wrote.
        model_ms: Milliseconds of the model, its grammars included.
        tools_ms: Milliseconds of the tools.
    """

    plan: str
    found: int
    model_calls: int
    model_steps: int
    prompt_tokens: int
    written_tokens: int
    model_ms: float
    tools_ms: float

    @property
    def total_ms(self) -> float:
        """Milliseconds from the question to what was found."""
        return self.model_ms + self.tools_ms


class Systems:
    """The systems that are compared: one model, one decoder, one grammar.

    Args:
        model: Writes.
        grammar: Of plans and lines.
        toolbox: The tools.
        shape: Lengths that prompts are brought to.
    """

    def __init__(
        self,
        model: LanguageModel,
        grammar: PlanGrammar,
        toolbox: Toolbox,
        shape: PromptShape | None = None,
    ) -> None:
        self._model = model
        self._grammar = grammar
        self._shape = shape
        self._decoder = Decoder(model)
        self._agents = {
            AGENT: StepAgent(model, grammar, self._decoder),
            STATELESS: StepAgent(model, grammar, self._decoder, stateless=True),
        }
        # Each run brings the planner that knows its plan.
        self._graph = build_graph(toolbox, FixedPlanner(parse_plan("s1 = no_evidence()")))

    def named(self) -> Mapping[str, Callable[[Question], Looked]]:
        """Return the systems by their names."""
        return {
            ONE_CALL: self.one_call,
            AGENT: lambda question: self.agent(question, AGENT),
            STATELESS: lambda question: self.agent(question, STATELESS),
        }

    def one_call(self, question: Question) -> Looked:
        """Have the whole plan written, then let the graph run it."""
        prompt = self._encoded(render_prompt(question.request))
        choose = question.whole.choose()

        def planned() -> tuple[Plan, int, int]:
            matcher = self._grammar.plan(question.request)
            written = self._decoder.write(prompt, matcher, choose=choose)
            plan = parse_plan(self._model.decode(written.tokens))
            return plan, written.model_steps, len(written.tokens)

        (plan, steps, tokens), spent = timed(self._model.device, planned)
        asked = RunContext(scope=question.scope, planner=FixedPlanner(plan))
        answer = self._graph.invoke(
            {"question": question.query.query, "context": dict(question.request.context)},
            context=asked,
        )["answer"]
        return Looked(
            plan=str(plan),
            found=sum(step["status"] == "done" for step in answer["steps"]),
            model_calls=1,
            model_steps=steps,
            prompt_tokens=len(prompt.tail),
            written_tokens=tokens,
            model_ms=spent,
            tools_ms=answer["usage"]["execution_ms"],
        )

    def agent(self, question: Question, name: str) -> Looked:
        """Have one step after the other written and run."""
        run = self._agents[name].run(
            question.request,
            self._encoded(agent_prompt(render_prompt(question.request))),
            question.scope,
            [part.choose() for part in question.parts],
        )
        return Looked(
            plan=run.plan,
            found=sum(outcome.status == "done" for outcome in run.outcomes),
            model_calls=run.model_calls,
            model_steps=run.model_steps,
            prompt_tokens=run.prompt_tokens,
            written_tokens=run.written_tokens,
            model_ms=run.model_ms,
            tools_ms=run.tools_ms,
        )

    def _encoded(self, prompt: Prompt) -> PromptTokens:
        tokens = self._model.encode(prompt)
        return tokens if self._shape is None else self._shape.fit(tokens)
