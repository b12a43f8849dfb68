"""Scripts by which a language model writes the plans of annotated queries.

Random weights write nonsense of any length. So a system writes an annotated query's own plan: at
each step the network's logits are computed and the likeliest of the allowed tokens is determined,
as in greedy decoding; the token that is written is the longest allowed one that continues the plan.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import GrammarError
from casewright.finetune.folds import similarity_groups
from casewright.planner import AnnotatedQuery, PlanRequest, plan_store
from casewright.planner.decoding import Choose, greedy
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.grammar import PlanGrammar, PlanMatcher
    from casewright.planner.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class Script:
    """The tokens of a text that a model writes under a grammar.

    Attributes:
        tokens: The text's, without the one that ends it.
        choices: Those of them that are chosen, in order, with the one that ends the text where its
            end is a choice.
    """

    tokens: tuple[int, ...]
    choices: tuple[int, ...]

    def choose(self) -> Choose:
        """Return a choice function of these tokens, for one plan, as slow as greedy decoding."""
        left: Iterator[int] = iter(self.choices)

        def follow(logits: NDArray[np.float32], matcher: Matcher) -> int:
            greedy(logits, matcher)
            return next(left)

        return follow


class ScriptWriter:
    """Finds the scripts of one model."""

    def __init__(self, model: LanguageModel) -> None:
        self._ends = model.ends
        self._decode = model.grammar_tokenizer.decode_bytes
        # Several tokens may stand for the same bytes.
        self._tokens: dict[bytes, list[int]] = {}
        for token in sorted(model.tokenizer.get_vocab().values()):
            if token not in self._ends:
                self._tokens.setdefault(self._decode([token]), []).append(token)
        self._longest = max(map(len, self._tokens))

    def script(self, matcher: PlanMatcher, text: str, *, forced: bool = True) -> Script:
        """Return the script of a text.

        Args:
            matcher: Of the text's grammar; it is used up.
            text: The text.
            forced: Write tokens without an alternative without a choice.

        Raises:
            GrammarError: The grammar cannot write this text.
        """
        left = text.encode()
        tokens: list[int] = []
        choices: list[int] = []
        while True:
            new = matcher.forced() if forced else []
            if not left.startswith(written := self._decode(new)):
                raise GrammarError(f"The grammar writes {written[:40]!r}, not {left[:40]!r}.")
            tokens += new
            left = left[len(written) :]
            if matcher.finished or not left:
                break
            token = self._longest_start(matcher.allowed(), left)
            matcher.consume(token)
            choices.append(token)
            tokens.append(token)
            left = left[len(self._decode([token])) :]
        if left or not matcher.accepting:
            raise GrammarError(f"The grammar does not end a plan where {text[:40]!r} ends.")
        if not (forced and matcher.finished):
            choices.append(self._ends[0])
        return Script(tuple(tokens), tuple(choices))

    def _longest_start(self, allowed: NDArray[np.intp], text: bytes) -> int:
        """Return the longest of the allowed tokens, which ascend, that a text starts with."""
        for length in range(min(self._longest, len(text)), 0, -1):
            for token in self._tokens.get(text[:length], ()):
                at = int(np.searchsorted(allowed, token))
                if at < len(allowed) and allowed[at] == token:
                    return token
        raise GrammarError(f"The grammar cannot write {text[:40]!r}.")


@dataclass(frozen=True, slots=True)
class Task:
    """A query to plan for, with the scripts of its plan with forced tokens and without."""

    query: AnnotatedQuery
    request: PlanRequest
    forced: Script
    masked: Script

    @property
    def text(self) -> str:
        """The plan."""
        return str(self.query.plan)


def make_tasks(
    model: LanguageModel,
    grammar: PlanGrammar,
    toolbox: Toolbox,
    queries: Iterable[AnnotatedQuery],
    count: int,
    fits: Callable[[Sequence[int]], bool] = lambda tokens: True,
) -> tuple[list[Task], int]:
    """Return tasks of the first queries whose plans can be written, and how many cannot.

    Args:
        model: Writes.
        grammar: Of its plans.
        toolbox: The tools.
        queries: The queries.
        count: Most tasks.
        fits: Returns whether a plan of these tokens is wanted.
    """
    scripts, tasks, refused = ScriptWriter(model), list[Task](), 0
    for query in queries:
        if len(tasks) == count:
            break
        request, text = query.record.request(toolbox), str(query.plan)
        try:
            forced = scripts.script(grammar.plan(request), text)
            masked = scripts.script(grammar.plan(request), text, forced=False)
        except GrammarError:
            refused += 1
            continue
        if fits(masked.tokens):
            tasks.append(Task(query, request, forced, masked))
    return tasks, refused


def shuffled_queries(queries: Iterable[AnnotatedQuery], seed: int) -> list[AnnotatedQuery]:
    """Return, in an order drawn by the seed, the queries that take the domain's tools as they are.

    Those of one toolbox have one prompt head.
    """
    plain = [q for q in queries if not (q.record.tools_extra or q.record.tools_removed)]
    random.Random(seed).shuffle(plain)
    return plain


@contextmanager
def other_plan_cases(
    queries: Sequence[AnnotatedQuery], questions: Sequence[AnnotatedQuery], encoder: Encoder
) -> Iterator[CaseStore]:
    """Open a store of the queries' plans, without those of the questions and their neighbours.

    Neighbours are joined by a chain of similarities; see ``similarity_groups``.
    """
    groups = similarity_groups([query.query for query in (*queries, *questions)], encoder)
    taken = set(groups[len(queries) :])
    others = [q for q, group in zip(queries, groups, strict=False) if group not in taken]
    with plan_store(others, encoder) as store:
        yield store
