"""The grammar of the plans that are valid for one request, compiled for one tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.planner.grammar.bounds import SPAN_CHARACTERS
from casewright.planner.grammar.context_terminals import context_terminals
from casewright.planner.grammar.forcing import NO_FORCING, is_kept
from casewright.planner.grammar.latest import Latest
from casewright.planner.grammar.matcher import PlanMatcher, compiled
from casewright.planner.grammar.span_terminal import span_terminal
from casewright.planner.grammar.terminals import REFERENCE, SPAN, fields_after_step
from casewright.planner.grammar.toolbox_part import CALL, ToolboxPart, line_part, plan_part
from casewright.planner.request import PlanRequest
from casewright.tools import Source, Toolbox

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

#: What is written instead of a further step, where a plan is written line by line.
DONE = "done"


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A grammar's text, and whether it is this question's alone."""

    text: str
    own: bool = False


class PlanGrammar:
    """Makes the grammar of a request's valid plans, in their one text form.

    What is written by it parses, passes the static checks of the request, and is what
    ``format_plan`` gives. It writes less than the plan language admits where ``bounds`` says so,
    each tool's arguments in the order in which they are declared, and spans as the question has
    them.

    The part of the text that the toolbox determines is kept; what the request adds, the spans of
    its question and the fields of its context, is made each time. A grammar without spans is the
    same for all questions, and is kept compiled: a parameter that admits any literal needs none.

    Args:
        tokenizer: Of the model that writes.
        toolboxes: How many toolboxes' parts are kept, and how many compiled grammars: those used
            last. A toolbox has more than one where requests differ in their number of steps or in
            the kinds of values that their context has.
    """

    def __init__(self, tokenizer: LLTokenizer, *, toolboxes: int = 32) -> None:
        self._tokenizer = tokenizer
        # With whether the tokenizer keeps the toolbox's words.
        self._parts: Latest[tuple[ToolboxPart, bool]] = Latest(toolboxes)
        self._compiled: Latest[LLMatcher] = Latest(toolboxes)

    def plan(self, request: PlanRequest) -> PlanMatcher:
        """Return a matcher of whole plans.

        Raises:
            GrammarError: The grammar is too large to be compiled.
            InputError: The request admits no step.
        """
        return self._matcher(self._plan(request))

    def next_step(self, request: PlanRequest, earlier: Sequence[str]) -> PlanMatcher:
        """Return a matcher of the one line ``sN = tool(…)``, or of ``done``.

        Args:
            request: What is planned for.
            earlier: The tools that steps 1 to N - 1 call. Where there is none, a plan is not yet
                done; where there are as many as the request admits, it is.

        Raises:
            GrammarError: The grammar is too large to be compiled.
            InputError: The request admits no step, or has no such tool.
        """
        return self._matcher(self._line(request, earlier))

    def text(self, request: PlanRequest) -> str:
        """Return the grammar of whole plans in llguidance's Lark, for a server that takes one.

        Raises:
            InputError: The request admits no step.
        """
        return self._plan(request).text

    def _matcher(self, grammar: _Grammar) -> PlanMatcher:
        make = partial(compiled, self._tokenizer, grammar.text)
        # Copies share what the lexer has learnt, which only a question's spans would let grow.
        made = make() if grammar.own else self._compiled.get(grammar.text, make).deep_copy()
        return PlanMatcher(made, self._tokenizer)

    def _plan(self, request: PlanRequest) -> _Grammar:
        _check_steps(request)
        steps = request.max_steps
        make = partial(plan_part, request.toolbox, max_steps=steps)
        return self._joined(request, "", _terminals(request), steps, make)

    def _line(self, request: PlanRequest, earlier: Sequence[str]) -> _Grammar:
        _check_steps(request)
        toolbox = request.toolbox
        if unknown := [name for name in earlier if name not in toolbox]:
            raise InputError(
                f"An earlier step calls {unknown[0]}, which is no tool of this request. "
                f"Its tools are {', '.join(toolbox.names)}."
            )
        if len(earlier) >= request.max_steps:
            return _Grammar(f'start:"{DONE}"')
        terminals = _terminals(request)
        references = [
            f'"s{step}"{fields_after_step(fields)}'
            for step, name in enumerate(earlier, 1)
            if (fields := toolbox[name].results)
        ]
        if references:
            terminals[REFERENCE] = f"{REFERENCE}:{'|'.join(references)}"
        done = f'|"{DONE}"' if earlier else ""
        start = f'start:"s{len(earlier) + 1} = "{CALL}{done}\n'
        return self._joined(request, start, terminals, None, partial(line_part, toolbox))

    def _joined(
        self,
        request: PlanRequest,
        start: str,
        terminals: dict[str, str],
        steps: int | None,
        make: Callable[[Set[str]], ToolboxPart],
    ) -> _Grammar:
        supplied = frozenset(terminals)

        def made() -> tuple[ToolboxPart, bool]:
            return make(supplied), is_kept(self._tokenizer, _words(request.toolbox))

        part, kept = self._parts.get((_declared(request.toolbox), supplied, steps), made)
        spans = SPAN in part.used
        if spans and not is_kept(self._tokenizer, request.question[:SPAN_CHARACTERS]):
            kept = False
        head = start if kept else NO_FORCING + start
        added = [terminals[name] for name in sorted(part.used & supplied)]
        return _Grammar("\n".join([head + part.text, *added]), spans)


def _check_steps(request: PlanRequest) -> None:
    if request.max_steps < 1:
        raise InputError(f"A plan of at most {request.max_steps} steps is none. Admit one or more.")


def _terminals(request: PlanRequest) -> dict[str, str]:
    terminals = context_terminals(request.context)
    if _takes_spans(request.toolbox) and (span := span_terminal(request.question)):
        terminals[SPAN] = span
    return terminals


def _takes_spans(toolbox: Toolbox) -> bool:
    # A literal may be any text, a span too.
    return any(
        Source.SPAN in parameter.sources and Source.LITERAL not in parameter.sources
        for tool in toolbox
        for parameter in tool.parameters
    )


def _declared(toolbox: Toolbox) -> Hashable:
    # Not the toolbox's fingerprint: two choices may read like one there, and what it says of tools
    # beyond this, the grammar does not depend on.
    return tuple(
        (
            tool.name,
            tool.results,
            tuple((p.name, p.kind, p.sources, p.choices, p.required) for p in tool.parameters),
        )
        for tool in toolbox
    )


def _words(toolbox: Toolbox) -> str:
    """Return what a plan has from the toolbox: its names and choices."""
    words: list[str] = []
    for tool in toolbox:
        words += [tool.name, *tool.results]
        for parameter in tool.parameters:
            words += [parameter.name, *parameter.choices]
    # Half a surrogate pair is never written.
    return " ".join(words).encode("utf-8", "ignore").decode()
