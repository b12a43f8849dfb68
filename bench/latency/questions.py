"""What is asked: questions whose plans run to their end, by how many steps these have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from casewright.bench.decoding.script import Script, ScriptWriter
from casewright.bench.evidence import run_plan
from casewright.errors import GrammarError
from casewright.planner.grammar import DONE

if TYPE_CHECKING:
    from casewright.planner import AnnotatedQuery, PlanRequest
    from casewright.planner.grammar import PlanGrammar
    from casewright.planner.language_model import LanguageModel
    from casewright.tools import Toolbox

#: Steps of the longest plans that are asked for.
STEPS = (1, 2, 3, 4)


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

    @property
    def steps(self) -> int:
        """Steps of the plan."""
        return len(self.query.plan.steps)


class QuestionWriter:
    """Makes questions for one model.

    Args:
        model: The model.
        grammar: The grammar of its plans and lines.
        toolbox: The tools, which are called.
        scopes: Scope field to the values that a request may have.
    """

    def __init__(
        self,
        model: LanguageModel,
        grammar: PlanGrammar,
        toolbox: Toolbox,
        scopes: Mapping[str, Sequence[str]],
    ) -> None:
        self._scripts = ScriptWriter(model)
        self._grammar = grammar
        self._toolbox = toolbox
        self._askers = [
            dict(zip(scopes, values, strict=True)) for values in product(*scopes.values())
        ]

    def questions(
        self,
        queries: Iterable[AnnotatedQuery],
        each: int,
        tokens: tuple[int, int] | None = None,
    ) -> Iterator[Question]:
        """Yield questions in the order of the queries, so many for each number of steps.

        Args:
            queries: Those whose plans cannot be written, or find nothing for anybody, are left out.
            each: How many questions a number of steps at most.
            tokens: Fewest and most tokens of a plan.
        """
        wanted = dict.fromkeys(STEPS, each)
        for query in queries:
            if not wanted.get(len(query.plan.steps)) or not any(wanted.values()):
                continue
            try:
                question = self._question(query, tokens)
            except GrammarError:
                continue
            if question is not None:
                wanted[question.steps] -= 1
                yield question

    def _question(self, query: AnnotatedQuery, tokens: tuple[int, int] | None) -> Question | None:
        request = query.record.request(self._toolbox)
        whole = self._scripts.script(self._grammar.plan(request), str(query.plan))
        if tokens is not None and not tokens[0] <= len(whole.tokens) <= tokens[1]:
            return None
        parts = []
        lines = [f"s{number} = {step}" for number, step in enumerate(query.plan.steps, 1)]
        for place, line in enumerate([*lines, DONE]):
            matcher = self._grammar.next_step(request, query.plan.tools[:place])
            parts.append(self._scripts.script(matcher, line))
        for scope in self._askers:
            if all(end.status == "done" for end in run_plan(self._toolbox, query, scope)):
                return Question(query, request, scope, whole, parts)
        return None
