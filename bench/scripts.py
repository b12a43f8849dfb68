"""Scripts that make a language model write the gold plans of annotated queries.

A model with random weights would write meaningless texts of any length. With a script, each step
computes the network's logits and the most probable allowed token, as greedy decoding does. But the
step then writes the longest allowed token that continues the gold plan.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casewright.errors import GrammarError
from casewright.finetune.folds import similarity_groups
from casewright.planner import AnnotatedQuery, PlanRequest, plan_store
from casewright.planner.decoding import Choose, greedy
from casewright.planner.decoding.matcher import Matcher
from casewright.planner.grammar import PlanGrammar, PlanMatcher
from casewright.planner.language_model import LanguageModel
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox


class Script(NamedTuple):
    """The tokens with which a model writes a text that a grammar allows."""

    tokens: tuple[int, ...]
    choices: tuple[int, ...]  # the tokens that need a model step; the grammar forces the others

    def chooser(self) -> Choose:
        """Return a function that gives the next choice at each call, in the time of ``greedy``."""
        choices: Iterator[int] = iter(self.choices)

        def choose_next(logits: NDArray[np.float32], matcher: Matcher) -> int:
            greedy(logits, matcher)
            return next(choices)

        return choose_next


class ScriptWriter:
    """Makes scripts for one model."""

    def __init__(self, model: LanguageModel) -> None:
        self._end_tokens = model.ends
        self._decode = model.grammar_tokenizer.decode_bytes
        # Several tokens may have the same bytes.
        self._tokens_of_bytes: dict[bytes, list[int]] = {}
        for token in sorted(model.tokenizer.get_vocab().values()):
            if token not in self._end_tokens:
                self._tokens_of_bytes.setdefault(self._decode([token]), []).append(token)
        self._max_bytes = max(map(len, self._tokens_of_bytes))

    def script(self, matcher: PlanMatcher, text: str, *, forced: bool = True) -> Script:
        """Return the script of a text; with ``forced=False``, forced tokens are also choices.

        The call advances the matcher to the end of the text. Raise ``GrammarError`` if the grammar
        cannot write the text.
        """
        remaining = text.encode()
        tokens: list[int] = []
        choices: list[int] = []
        while True:
            forced_tokens = matcher.consume_forced() if forced else []
            if not remaining.startswith(prefix := self._decode(forced_tokens)):
                raise GrammarError(f"The grammar writes {prefix[:40]!r}, not {remaining[:40]!r}.")
            tokens += forced_tokens
            remaining = remaining[len(prefix) :]
            if matcher.finished or not remaining:
                break
            token = self._longest_start(matcher.allowed(), remaining)
            matcher.consume(token)
            choices.append(token)
            tokens.append(token)
            remaining = remaining[len(self._decode([token])) :]
        if remaining or not matcher.accepting:
            raise GrammarError(f"The grammar does not end a plan where {text[:40]!r} ends.")
        # A decoder that skips forced tokens also skips the end token of a finished plan.
        if not (forced and matcher.finished):
            choices.append(self._end_tokens[0])
        return Script(tuple(tokens), tuple(choices))

    def _longest_start(self, allowed: NDArray[np.intp], text: bytes) -> int:
        """Return the longest allowed token with which the text starts."""
        for length in range(min(self._max_bytes, len(text)), 0, -1):
            for token in self._tokens_of_bytes.get(text[:length], ()):
                if token in allowed:
                    return token
        raise GrammarError(f"The grammar cannot write {text[:40]!r}.")


class Task(NamedTuple):
    """A query and two scripts: for Casewright's decoder, and for ``generate`` with a grammar."""

    query: AnnotatedQuery
    request: PlanRequest
    forced: Script  # forced tokens take no model step
    masked: Script  # every token takes a model step


def make_tasks(
    model: LanguageModel,
    grammar: PlanGrammar,
    toolbox: Toolbox,
    queries: Iterable[AnnotatedQuery],
    count: int,
) -> tuple[list[Task], int]:
    """Return up to ``count`` tasks, and the number of plans that the grammar cannot write."""
    writer = ScriptWriter(model)
    tasks, refused_count = list[Task](), 0
    for query in queries:
        if len(tasks) == count:
            break
        request, text = query.record.request(toolbox), str(query.plan)
        try:
            forced = writer.script(grammar.plan_matcher(request), text)
            masked = writer.script(grammar.plan_matcher(request), text, forced=False)
            tasks.append(Task(query, request, forced, masked))
        except GrammarError:
            refused_count += 1
    return tasks, refused_count


def shuffled_queries(queries: Iterable[AnnotatedQuery], seed: int) -> list[AnnotatedQuery]:
    """Return, shuffled, the queries with exactly the domain's tools; their prompts start alike."""
    unchanged = [q for q in queries if not (q.record.tools_extra or q.record.tools_removed)]
    random.Random(seed).shuffle(unchanged)
    return unchanged


@contextmanager
def distant_plan_cases(
    queries: Sequence[AnnotatedQuery], measured: Sequence[AnnotatedQuery], encoder: Encoder
) -> Iterator[CaseStore]:
    """Open a store of plan cases: those ``queries`` that are similar to no ``measured`` query."""
    groups = similarity_groups([query.query for query in (*queries, *measured)], encoder)
    excluded_groups = set(groups[len(queries) :])
    others = [q for q, group in zip(queries, groups, strict=False) if group not in excluded_groups]
    with plan_store(others, encoder) as store:
        yield store
