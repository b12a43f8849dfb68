"""Arbitrary plans, and texts that are nearly plans."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from casewright.planner import (
    ContextRef,
    ListValue,
    Literal,
    Plan,
    QuestionRef,
    Step,
    StepRef,
    is_span,
)
from casewright.planner.plan import Value

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True) | st.sampled_from(
    ["question", "context", "true", "false", "s1", "s2", "null"]
)
#: Any text that Unicode allows: no half of a surrogate pair.
TEXTS = st.text() | st.text('\\"[](),=s1.\n\r\t\0\x7f\u2028\u2029\x85 é😀', max_size=12)
LITERALS = st.builds(
    Literal,
    TEXTS
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans(),
)
REFERENCES = st.builds(StepRef, st.integers(1, 999_999), NAMES, st.integers(0, 999_999))
SCALARS = LITERALS | st.just(QuestionRef()) | st.builds(ContextRef, NAMES) | REFERENCES
LISTS = st.builds(ListValue, st.lists(SCALARS, max_size=4).map(tuple))
ARGUMENTS = st.dictionaries(NAMES, SCALARS | LISTS, max_size=4).map(lambda d: tuple(d.items()))
STEPS = st.builds(Step, NAMES, ARGUMENTS)
PLANS = st.builds(Plan, st.lists(STEPS, min_size=1, max_size=5).map(tuple))

TOKENS = st.sampled_from(
    [
        *("s1", "s2", " = ", "=", "a", "tool", "(", ")", "[", "]", ",", ", ", "x", "y=", "\n"),
        *('"', '"text"', "\\", '\\"', "\\u00e9", "\\ud800", "1", "-", "0", "1.5", "1e999", "1e5"),
        *("true", "false", "null", "NaN", "question", "context.a", "s1.a", "s1[0].a", "s0.a"),
        *(" ", "\t", "\r", "\0", "\u2028", "\ud800", "é", "😀", "#", "'", ".", "s1 = a()"),
    ]
)
TOKEN_TEXTS = st.lists(TOKENS, max_size=25).map("".join)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Draw a plan's text with some characters taken out, put in or replaced."""
    text = str(draw(PLANS))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 3))
        text = text[:start] + draw(TOKENS | st.characters() | st.just("")) + text[end:]
    return text


#: Questions of ordinary words.
SENTENCES = st.lists(
    st.sampled_from(["old", "red", "tent", "wool", "socks", "my", "sell", "Käse", "x-200"]),
    min_size=1,
    max_size=8,
).map(" ".join)


@st.composite
def spans_of(draw: st.DrawFn, question: str) -> str:
    """Draw adjacent words of a question."""
    words = question.split()
    start = draw(st.integers(0, len(words) - 1))
    return " ".join(words[start : draw(st.integers(start + 1, len(words)))])


@st.composite
def valid_plans(draw: st.DrawFn, question: str) -> Plan:
    """Draw a plan whose steps refer only to earlier ones; no two steps call the same tool.

    Its literals are words of the question, or anything else.
    """
    steps: list[Step] = []
    for number in range(1, draw(st.integers(1, 7)) + 1):
        free = LITERALS | st.just(QuestionRef()) | st.builds(ContextRef, NAMES)
        scalars = free | st.builds(Literal, spans_of(question))
        if number > 1:
            fields = st.sampled_from(["item_id", "title"])
            references = st.builds(StepRef, st.integers(1, number - 1), fields, st.integers(0, 2))
            scalars = st.one_of(scalars, references, references)
        lists = st.builds(ListValue, st.lists(scalars, max_size=3).map(tuple))
        arguments = draw(st.dictionaries(NAMES, scalars | lists, max_size=3))
        steps.append(Step(f"t{number}", tuple(arguments.items())))
    return Plan(tuple(steps))


def replace_spans(plan: Plan, question: str, draw: Callable[..., str], other: str) -> Plan:
    """Return the plan with spans of its question replaced by spans of another question."""

    def replaced(value: Value) -> Value:
        if not isinstance(value, Literal) or not isinstance(value.value, str):
            return value
        return Literal(draw(spans_of(other))) if is_span(value.value, question) else value

    return Plan(
        tuple(Step(s.tool, tuple((n, replaced(v)) for n, v in s.arguments)) for s in plan.steps)
    )
