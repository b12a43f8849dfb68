"""What is planned for: annotated queries with their prompts, and how their plans are written."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING

from casewright.bench.decoding.script import Script, ScriptWriter
from casewright.errors import GrammarError, InputError
from casewright.finetune.folds import similarity_groups
from casewright.planner import AnnotatedQuery, PlanRequest, plan_store
from casewright.planner.language_model import PromptTokens
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from casewright.planner.grammar import PlanGrammar
    from casewright.planner.language_model import LanguageModel

_SHAPE = re.compile(r"(\d+)\+(\d+)")
_RANGE = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class PromptShape:
    """Lengths that prompts are brought to, in tokens: what does not change, and what follows it."""

    head: int
    tail: int

    def fit(self, prompt: PromptTokens) -> PromptTokens:
        """Cut a prompt, or repeat its tokens, until it has these lengths."""
        head = islice(cycle(prompt.head), self.head)
        # What a prompt ends with is its question.
        tail = [*islice(cycle(reversed(prompt.tail)), self.tail)]
        return PromptTokens(tuple(head), tuple(reversed(tail)))


@dataclass(frozen=True, slots=True)
class Task:
    """One question to plan for, and its plan.

    Attributes:
        query: The annotated query.
        request: Its request.
        forced: How its plan is written where forced tokens take no choice.
        masked: How it is written token by token.
    """

    query: AnnotatedQuery
    request: PlanRequest
    forced: Script
    masked: Script

    @property
    def text(self) -> str:
        """The plan."""
        return str(self.query.plan)


class TaskWriter:
    """Makes tasks for one model.

    Args:
        model: The model.
        grammar: The grammar of its plans.
        toolbox: The tools.
    """

    def __init__(self, model: LanguageModel, grammar: PlanGrammar, toolbox: Toolbox) -> None:
        self._scripts = ScriptWriter(model)
        self._grammar = grammar
        self._toolbox = toolbox

    def task(self, query: AnnotatedQuery) -> Task:
        """Make the task of a query.

        Raises:
            GrammarError: The grammar cannot write the query's plan.
        """
        request = query.record.request(self._toolbox)
        text = str(query.plan)
        return Task(
            query,
            request,
            self._scripts.script(self._grammar.plan(request), text),
            self._scripts.script(self._grammar.plan(request), text, forced=False),
        )

    def tasks(
        self, queries: Iterable[AnnotatedQuery], count: int, tokens: tuple[int, int] | None = None
    ) -> tuple[list[Task], int]:
        """Make tasks of the first queries whose plans can be written, and count those that cannot.

        Args:
            queries: In the order in which they are taken.
            count: How many tasks at most.
            tokens: Fewest and most tokens of a plan.
        """
        made: list[Task] = []
        refused = 0
        for query in queries:
            if len(made) == count:
                break
            try:
                task = self.task(query)
            except GrammarError:
                refused += 1
                continue
            if tokens is None or tokens[0] <= len(task.masked.tokens) <= tokens[1]:
                made.append(task)
        return made, refused


def shuffled_queries(queries: Iterable[AnnotatedQuery], seed: int) -> list[AnnotatedQuery]:
    """Return, in an order drawn by the seed, the queries that take the domain's tools as they are.

    Those of one toolbox have one prompt head.
    """
    plain = [q for q in queries if not (q.record.tools_extra or q.record.tools_removed)]
    random.Random(seed).shuffle(plain)
    return plain


@contextmanager
def other_plan_cases(
    queries: Sequence[AnnotatedQuery], asked: Sequence[AnnotatedQuery], encoder: Encoder
) -> Iterator[CaseStore]:
    """Open a store of the queries' plans, but for those of what is asked and of its neighbours.

    Neighbours are joined by a chain of similarities; see ``similarity_groups``.
    """
    groups = similarity_groups([query.query for query in (*queries, *asked)], encoder)
    taken = set(groups[len(queries) :])
    others = [q for q, group in zip(queries, groups, strict=False) if group not in taken]
    with plan_store(others, encoder) as store:
        yield store


def read_shape(text: str | None) -> PromptShape | None:
    """Read lengths given as ``700+100``.

    Raises:
        InputError: They are not of this form, or one is 0.
    """
    if text is None:
        return None
    found = _SHAPE.fullmatch(text)
    shape = PromptShape(*map(int, found.groups())) if found else PromptShape(0, 0)
    if not (shape.head and shape.tail):
        raise InputError(
            f"--prompt-tokens {text!r} cannot be read. Give those of the prompt that do not change "
            "and those that do: 700+100."
        )
    return shape


def read_range(text: str | None) -> tuple[int, int] | None:
    """Read a range given as ``30-60``.

    Raises:
        InputError: It is not of this form, or ends before it starts.
    """
    if text is None:
        return None
    found = _RANGE.fullmatch(text)
    least, most = map(int, found.groups()) if found else (1, 0)
    if least > most:
        raise InputError(
            f"--plan-tokens {text!r} cannot be read. Give the fewest and the most: 30-60."
        )
    return least, most
