"""What language models are asked to write: annotated plans, chosen by a script, behind prompts.

Random weights write nonsense of any length. So a system writes an annotated query's own plan: at
each step the network's logits are computed, and the likeliest of the allowed tokens is looked for
as in greedy decoding; what is written is the longest allowed token that goes on with that plan.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.bench.models import ModelChoice
from casewright.errors import GrammarError, InputError
from casewright.finetune.folds import similarity_groups
from casewright.planner import AnnotatedQuery, PlanRequest, plan_store
from casewright.planner.decoding import Choose, greedy
from casewright.planner.language_model import PromptTokens
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.grammar import PlanGrammar, PlanMatcher
    from casewright.planner.language_model import LanguageModel

#: Fewest and most tokens of a plan; ``None`` for any.
Range = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Script:
    """How a model writes one text under a grammar.

    Attributes:
        tokens: The text's, without the one that ends it.
        choices: Those of them that are chosen, in order, with the one that ends the text where
            ending it is a choice.
    """

    tokens: tuple[int, ...]
    choices: tuple[int, ...]

    def choose(self) -> Choose:
        """Return what makes these choices, once, in the time that greedy decoding takes."""
        left: Iterator[int] = iter(self.choices)

        def follow(logits: NDArray[np.float32], matcher: Matcher) -> int:
            greedy(logits, matcher)
            return next(left)

        return follow


class ScriptWriter:
    """Finds how one model writes texts."""

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
        """Find how a text is written.

        Args:
            matcher: Of the text's grammar; it is used up.
            text: What is to be written.
            forced: Whether tokens that nothing else could stand for are written without a choice.

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
                place = int(np.searchsorted(allowed, token))
                if place < len(allowed) and allowed[place] == token:
                    return token
        raise GrammarError(f"The grammar cannot write {text[:40]!r}.")


@dataclass(frozen=True, slots=True)
class Task:
    """A query to plan for; its plan is written without a choice where it is forced, or masked."""

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
    tokens: Range = None,
) -> tuple[list[Task], int]:
    """Make tasks of the first queries whose plans can be written, and count those that cannot."""
    scripts, made, refused = ScriptWriter(model), list[Task](), 0
    for query in queries:
        if len(made) == count:
            break
        request, text = query.record.request(toolbox), str(query.plan)
        try:
            forced = scripts.script(grammar.plan(request), text)
            masked = scripts.script(grammar.plan(request), text, forced=False)
        except GrammarError:
            refused += 1
            continue
        if tokens is None or tokens[0] <= len(masked.tokens) <= tokens[1]:
            made.append(Task(query, request, forced, masked))
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


def read_shape(text: str | None) -> PromptShape | None:
    """Read lengths given as ``700+100``; raises ``InputError``."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)\+(\d+)", text)
    shape = PromptShape(*map(int, found.groups())) if found else PromptShape(0, 0)
    if not (shape.head and shape.tail):
        raise InputError(
            f"--prompt-tokens {text!r} cannot be read. Give those of the prompt that do not change "
            "and those that do: 700+100."
        )
    return shape


def read_range(text: str | None) -> Range:
    """Read a range given as ``30-60``; raises ``InputError``."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)-(\d+)", text)
    least, most = map(int, found.groups()) if found else (1, 0)
    if least > most:
        raise InputError(
            f"--plan-tokens {text!r} cannot be read. Give the fewest and the most: 30-60."
        )
    return least, most


def check_shape(shape: PromptShape | None, model: ModelChoice) -> None:
    """Raise ``InputError`` where a trained model is to read prompts that are cut."""
    if shape is not None and not model.random:
        raise InputError(
            "--prompt-tokens cuts prompts in the middle, which a trained model would misread. "
            "Leave it out, or --model."
        )


def no_tasks(domain: str, tokens: Range) -> InputError:
    """Return the error that a domain has no annotated queries that could be planned for."""
    of = f" of {tokens[0]} to {tokens[1]} tokens" if tokens else ""
    return InputError(
        f"Domain {domain!r} has no annotated queries whose plans{of} can be written. "
        "Take --domain shopping, and a wider range of --plan-tokens."
    )
