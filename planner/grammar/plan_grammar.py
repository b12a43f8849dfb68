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
    result_field_regex,
)
from casewright.planner.grammar.toolbox_rules import CALL_RULE, ToolboxRules, line_rules, plan_rules
from casewright.planner.plan import Plan, Step
from casewright.planner.request import PlanRequest
from casewright.tools import Source, ToolSpec

#: The last line of a plan that is written line by line; the other lines are steps.
DONE = "done"
#: The grammar of a line of free text, such as a thought: 8 to 200 characters and a line feed.
FREE_LINE = "start: /[^\\n]{8,200}\\n/"
#: First line of a grammar, to turn forcing off. If only one text can follow, llguidance tokenizes
#: the text and forces its tokens. But tokenizers change some texts: the name of a special token
#: becomes that token, and a letter with a combining mark becomes one character. The forced tokens
#: of a changed text do not match the grammar, and no other tokens are allowed. So nothing is forced
#: if the tokenizer changes a text.
NO_FORCING = '%llguidance {"no_forcing":true}\n'


class PlanGrammar:
    """Compiles a grammar of the valid plans of a request, in the form of ``format_plan``.

    A text of this grammar parses and passes the static checks of the request. The grammar admits
    fewer plans than the plan language: it has the limits of the module ``terminals``, arguments are
    in the order of the tool's parameters, and spans are spelled as in the question. It enforces the
    maximum number of steps, and the budget's limits on calls. The grammar of a whole plan counts
    calls in ``MAX_COUNTER_BITS`` bits, and leaves out limits that do not fit in these bits.

    The rules that depend only on the toolbox are cached. The terminals for spans and for context
    fields are defined for each request. If no parameter needs spans, the grammar does not depend on
    the question, and its compiled form is cached.

    Args:
        cache_size: Maximum number of cached rule sets, and of cached compiled grammars. A toolbox
            has several rule sets if requests differ in their limits or in the context's types.
    """

    def __init__(self, tokenizer: LLTokenizer, *, cache_size: int = 32) -> None:
        self._tokenizer = tokenizer
        self._cached_rules = lru_cache(cache_size)(self._toolbox_rules)
        self._compiled = lru_cache(cache_size)(partial(compile_grammar, tokenizer))

    def plan_matcher(self, request: PlanRequest) -> PlanMatcher:
        """Return a matcher for a whole plan.

        Raises:
            GrammarError: The grammar is too large to be compiled.
            InputError: The request's ``max_steps`` is below 1.
        """
        _check_steps(request)
        return self._matcher(request, _request_terminals(request), request.max_steps, start="")

    def line_matcher(self, request: PlanRequest, earlier: Sequence[str]) -> PlanMatcher:
        """Return a matcher for the next line of a plan, ``sN = tool(…)`` or ``done``.

        Args:
            earlier: The tools of steps 1 to N - 1. If there are none, ``done`` is not
                allowed; if there are ``max_steps`` of them, only ``done`` is allowed.

        Raises:
            GrammarError: The grammar is too large to be compiled.
            InputError: ``max_steps`` is below 1, or the toolbox lacks an earlier tool.
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
            f'"s{step}"{result_field_regex(fields)}'
            for step, name in enumerate(earlier, 1)
            if (fields := toolbox[name].results)
        ]
        if references:
            terminals[REFERENCE] = f"{REFERENCE}:{'|'.join(references)}"
        steps = [Step(name) for name in earlier]
        not_callable = [t.name for t in toolbox if request.excess(Plan((*steps, Step(t.name))))]
        request = replace(request, toolbox=toolbox.without(*not_callable))
        done = f'|"{DONE}"' if earlier else ""
        start = f'start:"s{len(earlier) + 1} = "{CALL_RULE}{done}\n'
        return self._matcher(request, terminals, max_steps=None, start=start)

    def free_line_matcher(self) -> PlanMatcher:
        """Return a matcher for a line of free text, of 8 to 200 characters."""
        return PlanMatcher(self._compiled(FREE_LINE).deep_copy(), self._tokenizer)

    def _matcher(
        self, request: PlanRequest, terminals: dict[str, str], max_steps: int | None, start: str
    ) -> PlanMatcher:
        """Return a matcher for a plan; with ``max_steps=None``, for a line (rule ``start``)."""
        request_terminals = frozenset(terminals)
        # The cache key. Toolbox.fingerprint() would be ambiguous: it joins choices without escapes.
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
        """Return a toolbox's rules, and True if the tokenizer preserves all its texts."""
        texts: list[str] = []
        for tool in tools:
            texts += [tool.name, *tool.results]
            for parameter in tool.parameters:
                texts += [parameter.name, *parameter.choices]
        # If the joined text is preserved, so are its parts. The grammar omits lone surrogates.
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
    # A parameter that takes literals needs no spans: a literal may be any text.
    needs_spans = any(
        Source.SPAN in parameter.sources and Source.LITERAL not in parameter.sources
        for tool in request.toolbox
        for parameter in tool.parameters
    )
    if needs_spans and (span := span_terminal(request.question)):
        terminals[SPAN] = span
    return terminals


def _preserves(tokenizer: LLTokenizer, text: str) -> bool:
    """Return True if no token of the text is special and the tokens decode to the same text."""
    tokens = tokenizer.tokenize_str(text)
    return tokenizer.decode_bytes(tokens) == text.encode() and not any(
        map(tokenizer.is_special_token, tokens)
    )
