"""The grammar of the plans that are valid for one request, compiled for one tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.planner.grammar.matcher import PlanMatcher, compiled
from casewright.planner.grammar.request_terminals import context_terminals, span_terminal
from casewright.planner.grammar.terminals import (
    REFERENCE,
    SPAN,
    SPAN_CHARACTERS,
    fields_after_step,
)
from casewright.planner.grammar.toolbox_part import CALL, ToolboxPart, line_part, plan_part
from casewright.planner.plan import Plan, Step
from casewright.planner.request import PlanRequest
from casewright.tools import Source, ToolSpec

if TYPE_CHECKING:
    from llguidance import LLTokenizer

#: The last line, instead of a step, of a plan that is written line by line.
DONE = "done"
#: The grammar of a line of free text.
LINE = "start: /[^\\n]{8,200}\\n/"
#: The first line of a grammar without forced text. llguidance passes forced text to the tokenizer,
#: which may change it: to a special token if the text looks like one, or to a composed character
#: for a letter and its mark. Such a token does not match the grammar, and no other would be
#: allowed. For toolboxes with such texts, any tokenization is allowed instead.
NO_FORCING = '%llguidance {"no_forcing":true}\n'


class PlanGrammar:
    """Makes the grammar of a request's valid plans, in canonical text form.

    A text of this grammar parses, passes the static checks of the request, and has the form of
    ``format_plan``. The grammar admits less than the plan language: it has the bounds of
    ``terminals``, a tool's arguments are in the order of their declaration, and spans have the
    question's spelling. It enforces the budget's number of steps and, if rules can count them,
    calls of tools.

    The text that depends only on the toolbox is cached; the text for the question's spans and the
    context's fields is made for each request. A grammar without spans, which a parameter for any
    literal does not need, is the same for all questions and is cached in compiled form.

    Args:
        toolboxes: Size of the caches of toolbox parts and of compiled grammars. A toolbox has
            several parts if requests differ in the number of steps or the types of context values.
    """

    def __init__(self, tokenizer: LLTokenizer, *, toolboxes: int = 32) -> None:
        self._tokenizer = tokenizer
        self._part = lru_cache(toolboxes)(self._new_part)
        self._compiled = lru_cache(toolboxes)(partial(compiled, tokenizer))

    def plan(self, request: PlanRequest) -> PlanMatcher:
        """Return a matcher for a whole plan.

        Raises:
            GrammarError: The grammar is too large to be compiled.
            InputError: The request admits no step.
        """
        _check_steps(request)
        return self._matcher(request, "", _terminals(request), request.max_steps)

    def next_step(self, request: PlanRequest, earlier: Sequence[str]) -> PlanMatcher:
        """Return a matcher for a single line, ``sN = tool(…)`` or ``done``.

        Args:
            earlier: The tools of steps 1 to N - 1. If there are none, ``done`` is not allowed; if
                there are as many as the request admits, only ``done`` is.

        Raises:
            GrammarError: The grammar is too large to be compiled.
            InputError: The request admits no step, or lacks an earlier tool.
        """
        _check_steps(request)
        toolbox = request.toolbox
        if unknown := [name for name in earlier if name not in toolbox]:
            raise InputError(
                f"An earlier step calls {unknown[0]}, which is no tool of this request. "
                f"Its tools are {', '.join(toolbox.names)}."
            )
        if len(earlier) >= request.max_steps:
            return PlanMatcher(self._compiled(f'start:"{DONE}"').deep_copy(), self._tokenizer)
        terminals = _terminals(request)
        references = [
            f'"s{step}"{fields_after_step(fields)}'
            for step, name in enumerate(earlier, 1)
            if (fields := toolbox[name].results)
        ]
        if references:
            terminals[REFERENCE] = f"{REFERENCE}:{'|'.join(references)}"
        called = [Step(name) for name in earlier]
        spent = [t.name for t in toolbox if request.beyond(Plan((*called, Step(t.name))))]
        request = replace(request, toolbox=toolbox.without(*spent))
        done = f'|"{DONE}"' if earlier else ""
        start = f'start:"s{len(earlier) + 1} = "{CALL}{done}\n'
        return self._matcher(request, start, terminals, None)

    def line(self) -> PlanMatcher:
        """Return a matcher for a line of free text, of at most 200 characters."""
        return PlanMatcher(self._compiled(LINE).deep_copy(), self._tokenizer)

    def _matcher(
        self, request: PlanRequest, start: str, terminals: dict[str, str], steps: int | None
    ) -> PlanMatcher:
        """Return a matcher for a plan of at most ``steps`` steps, or if ``None`` for one line."""
        supplied = frozenset(terminals)
        # Not the toolbox's fingerprint, in which two choices may look like one.
        tools = tuple(ToolSpec(t.name, "", t.parameters, t.results) for t in request.toolbox)
        most = tuple(request.most_calls().items()) if steps is not None else ()
        part, forcing = self._part(tools, supplied, steps, most)
        spans = SPAN in part.used
        if spans and not _unchanged(self._tokenizer, request.question[:SPAN_CHARACTERS]):
            forcing = False
        head = start if forcing else NO_FORCING + start
        text = "\n".join([head + part.text, *(terminals[n] for n in sorted(part.used & supplied))])
        # Copies share the lexer's cache, which would grow with the spans of each question.
        matcher = compiled(self._tokenizer, text) if spans else self._compiled(text).deep_copy()
        return PlanMatcher(matcher, self._tokenizer)

    def _new_part(
        self,
        tools: tuple[ToolSpec, ...],
        supplied: frozenset[str],
        steps: int | None,
        most: tuple[tuple[str, int], ...],
    ) -> tuple[ToolboxPart, bool]:
        """Return a toolbox's part, and True if the tokenizer preserves the toolbox's texts."""
        words: list[str] = []
        for tool in tools:
            words += [tool.name, *tool.results]
            for parameter in tool.parameters:
                words += [parameter.name, *parameter.choices]
        # A lone surrogate is never written.
        text = " ".join(words).encode("utf-8", "ignore").decode()
        if steps is None:
            part = line_part(tools, supplied)
        else:
            part = plan_part(tools, supplied, steps, dict(most))
        return part, _unchanged(self._tokenizer, text)


def _check_steps(request: PlanRequest) -> None:
    if request.max_steps < 1:
        raise InputError(f"The request admits {request.max_steps} steps. Admit one or more.")


def _terminals(request: PlanRequest) -> dict[str, str]:
    terminals = context_terminals(request.context)
    # A literal may be any text, including a span.
    takes_spans = any(
        Source.SPAN in parameter.sources and Source.LITERAL not in parameter.sources
        for tool in request.toolbox
        for parameter in tool.parameters
    )
    if takes_spans and (span := span_terminal(request.question)):
        terminals[SPAN] = span
    return terminals


def _unchanged(tokenizer: LLTokenizer, text: str) -> bool:
    """Return True if the tokenizer preserves the text, and so every part of it."""
    tokens = tokenizer.tokenize_str(text)
    return tokenizer.decode_bytes(tokens) == text.encode() and not any(
        map(tokenizer.is_special_token, tokens)
    )
