"""A grammar that admits only the valid plans of a request, compiled for a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from llguidance import LLTokenizer

from casewright.errors import InputError
from casewright.planner.grammar.matcher import PlanMatcher, compile_grammar
from casewright.planner.grammar.request_terminals import context_terminals, span_terminal
from casewright.planner.grammar.terminals import (
    MAX_QUESTION_CHARACTERS,
    REFERENCE,
    SPAN,
    fields_after_step,
)
from casewright.planner.grammar.toolbox_rules import CALL_RULE, ToolboxRules, line_rules, plan_rules
from casewright.planner.plan import Plan, Step
from casewright.planner.request import PlanRequest
from casewright.tools import Source, ToolSpec

#: The last line of a plan that is written line by line; the other lines are steps.
DONE = "done"
#: The grammar of a line of free text: 8 to 200 characters and a line feed.
FREE_LINE = "start: /[^\\n]{8,200}\\n/"
#: First line of a grammar that forces no tokens. llguidance tokenizes forced text, and tokenizers
#: change some texts: the name of a special token becomes that token, and a letter with a combining
#: mark becomes one character. The forced tokens of a changed text would not match the grammar, but
#: no other tokens would be allowed. So nothing is forced if a text would be changed.
NO_FORCING = '%llguidance {"no_forcing":true}\n'


class PlanGrammar:
    """Compiles the grammar of a request's valid plans, in canonical text form.

    A text of this grammar parses, passes the static checks of the request, and has the form of
    ``format_plan``. The grammar admits fewer plans than the plan language: it has the limits of
    the module ``terminals``, arguments are in the order of the tool's parameters, and spans are
    spelled as in the question. It enforces the maximum number of steps and, as far as rules can
    count calls, the budget's maximum numbers of calls of a tool.

    The rules that depend only on the toolbox are cached; the terminals of the question's spans and
    the context's fields are defined for each request. If no parameter needs spans, the grammar does
    not depend on the question, and its compiled form is cached.

    Args:
        cache_size: Maximum number of cached rule sets, and of cached compiled grammars. A toolbox
            has several rule sets if requests differ in the number of steps or the context's types.
    """

    def __init__(self, tokenizer: LLTokenizer, *, cache_size: int = 32) -> None:
        self._tokenizer = tokenizer
        self._cached_rules = lru_cache(cache_size)(self._toolbox_rules)
        self._compiled = lru_cache(cache_size)(partial(compile_grammar, tokenizer))

    def plan_matcher(self, request: PlanRequest) -> PlanMatcher:
        """Return a matcher for a whole plan.

        Raises:
            GrammarError: The grammar is too large to be compiled.
            InputError: The request admits no step.
        """
        _check_steps(request)
        return self._matcher(request, "", _request_terminals(request), request.max_steps)

    def line_matcher(self, request: PlanRequest, earlier: Sequence[str]) -> PlanMatcher:
        """Return a matcher for the next line of a plan, ``sN = tool(…)`` or ``done``.

        Args:
            earlier: The tools of steps 1 to N - 1. If there are none, ``done`` is not
                allowed; if there are ``max_steps`` of them, only ``done`` is allowed.

        Raises:
            GrammarError: The grammar is too large to be compiled.
            InputError: The request admits no step, or its toolbox lacks an earlier tool.
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
        terminals = _request_terminals(request)
        references = [
            f'"s{step}"{fields_after_step(fields)}'
            for step, name in enumerate(earlier, 1)
            if (fields := toolbox[name].results)
        ]
        if references:
            terminals[REFERENCE] = f"{REFERENCE}:{'|'.join(references)}"
        steps = [Step(name) for name in earlier]
        exhausted = [t.name for t in toolbox if request.excess(Plan((*steps, Step(t.name))))]
        request = replace(request, toolbox=toolbox.without(*exhausted))
        done = f'|"{DONE}"' if earlier else ""
        start = f'start:"s{len(earlier) + 1} = "{CALL_RULE}{done}\n'
        return self._matcher(request, start, terminals, None)

    def free_line_matcher(self) -> PlanMatcher:
        """Return a matcher for a line of free text, of 8 to 200 characters."""
        return PlanMatcher(self._compiled(FREE_LINE).deep_copy(), self._tokenizer)

    def _matcher(
        self, request: PlanRequest, start: str, terminals: dict[str, str], max_steps: int | None
    ) -> PlanMatcher:
        """Return a matcher for at most ``max_steps`` steps; with ``None``, for a single line."""
        request_terminals = frozenset(terminals)
        # The toolbox's fingerprint would be a wrong key: it joins choices without escaping quotes.
        tools = tuple(ToolSpec(t.name, "", t.parameters, t.results) for t in request.toolbox)
        max_calls = tuple(request.max_calls().items()) if max_steps is not None else ()
        rules, can_force = self._cached_rules(tools, request_terminals, max_steps, max_calls)
        uses_spans = SPAN in rules.used_terminals
        question = request.question[:MAX_QUESTION_CHARACTERS]
        if uses_spans and not _preserves(self._tokenizer, question):
            can_force = False
        definitions = [terminals[name] for name in sorted(rules.used_terminals & request_terminals)]
        text = "\n".join([("" if can_force else NO_FORCING) + start + rules.text, *definitions])
        # A grammar with spans is compiled anew: copies share the lexer's cache, which would grow
        # with the spans of each question.
        if uses_spans:
            return PlanMatcher(compile_grammar(self._tokenizer, text), self._tokenizer)
        return PlanMatcher(self._compiled(text).deep_copy(), self._tokenizer)

    def _toolbox_rules(
        self,
        tools: tuple[ToolSpec, ...],
        request_terminals: frozenset[str],
        max_steps: int | None,
        max_calls: tuple[tuple[str, int], ...],
    ) -> tuple[ToolboxRules, bool]:
        """Return a toolbox's rules, and True if the tokenizer preserves the toolbox's texts."""
        texts: list[str] = []
        for tool in tools:
            texts += [tool.name, *tool.results]
            for parameter in tool.parameters:
                texts += [parameter.name, *parameter.choices]
        # A lone surrogate is never written.
        text = " ".join(texts).encode("utf-8", "ignore").decode()
        if max_steps is None:
            rules = line_rules(tools, request_terminals)
        else:
            rules = plan_rules(tools, request_terminals, max_steps, dict(max_calls))
        return rules, _preserves(self._tokenizer, text)


def _check_steps(request: PlanRequest) -> None:
    if request.max_steps < 1:
        raise InputError(f"The request has max_steps={request.max_steps}. Give 1 or more.")


def _request_terminals(request: PlanRequest) -> dict[str, str]:
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


def _preserves(tokenizer: LLTokenizer, text: str) -> bool:
    """Return True if the tokenizer preserves the text, and therefore every part of it."""
    tokens = tokenizer.tokenize_str(text)
    return tokenizer.decode_bytes(tokens) == text.encode() and not any(
        map(tokenizer.is_special_token, tokens)
    )
