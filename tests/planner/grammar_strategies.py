"""Arbitrary requests, and plans that are valid for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from casewright.errors import InputError, PlanError
from casewright.planner import (
    ContextRef,
    ListValue,
    Literal,
    Plan,
    PlanRequest,
    QuestionRef,
    Step,
    StepRef,
)
from casewright.planner.request import check_question
from casewright.tools import Parameter, Source, Toolbox, ToolSpec
from casewright.tools.parameter import KINDS

HOSTILE = (
    '\\"\\\\ \t\n\r\x7f\x85\u00a0\u2028\u2029\u200b\u200f\u202e\ufeff\ufffd#/%|:;<>[]{}()&~*+?^$.,'
    "</s>[INST]éßŉİΐﬁᾳΣςǰ\u0301\u0345\u0300क्षहिन्दीกี่العربية中文😀👩‍👧🇫🇷aA1_"
)
CHOICES = (
    ("red", "small"),
    ("</s>", "[INST]", "<s>"),
    ('"', "\\", "a\nb", "\x00\x7f", " ", ""),
    ("\ud800", "é", "😀\u2028"),
    ("x" * 200, 'start: "a"', "%if"),
)
FIELDS = ("item_id", "title", "context", "s1", "a", "ab")
NAMES = ("a", "b", "ab", "item_id", "question", "context", "s1", "true", "i", "start")


def is_askable(question: str) -> bool:
    try:
        check_question(question)
    except InputError:
        return False
    return True


#: Any text that is a valid question.
QUESTIONS = st.one_of(
    st.lists(
        st.sampled_from(["old", "red", 'tent"', "wool", "my", "Käse", "x-200", "(b)"]),
        min_size=1,
        max_size=6,
    ).map(" ".join),
    st.text(HOSTILE, min_size=1, max_size=30),
    st.text(min_size=1, max_size=20),
).filter(is_askable)
CONTEXTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from([*NAMES[:4], "no name", 'x"', "page\n", "é", "N" * 80]),
    st.sampled_from(["p1", "", 3, 1.5, True, None, ["a"], [], {}]),
    max_size=4,
)
PARAMETERS = st.builds(
    Parameter,
    st.sampled_from(NAMES),
    kind=st.sampled_from(("any", "string", *KINDS)),
    sources=st.sampled_from(range(1, 128)).map(
        lambda bits: frozenset(s for i, s in enumerate(Source) if bits >> i & 1)
    ),
    choices=st.sampled_from([(), (), *CHOICES]),
    required=st.booleans(),
)
RESULTS = st.lists(st.sampled_from(FIELDS), max_size=3).map(tuple)
TOOLS = st.builds(
    ToolSpec,
    st.sampled_from([*NAMES, "no_evidence_2", "done", "tool"]),
    st.just(""),
    st.lists(PARAMETERS, min_size=1, max_size=3, unique_by=lambda p: p.name).map(tuple),
    RESULTS,
)
REQUESTS = st.builds(
    PlanRequest,
    QUESTIONS,
    st.lists(TOOLS, min_size=1, max_size=5, unique_by=lambda t: t.name).map(Toolbox),
    CONTEXTS,
    max_steps=st.sampled_from((4, 3, 2, 1, 6)),
)

#: Texts within the grammar's bounds: no blank at the start, no rare control character.
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="".join(map(chr, range(32)))),
    min_size=1,
    max_size=12,
).filter(lambda text: text[0] != " ") | st.text('ab"\\\n\té😀', min_size=1, max_size=59).filter(
    lambda text: text[0] not in "\n\t"
)
NUMBERS = st.integers(1 - 10**15, 10**15 - 1) | st.integers(-(10**9), 10**9).map(
    lambda thousandths: thousandths / 1000
)


@st.composite
def valid_plans(draw: st.DrawFn, request: PlanRequest) -> Plan:
    """Draw a plan that is valid for the request and within the grammar's bounds.

    Texts are written with ``literal`` alone: spans have tests of their own.
    """
    steps: list[Step] = []
    step_count = draw(st.integers(1, request.max_steps))
    for _ in range(3 * step_count):
        if len(steps) == step_count:
            break
        tool = draw(st.sampled_from(list(request.toolbox)))
        arguments = []
        for parameter in tool.parameters:
            values = _values(parameter, request, steps)
            if values and (parameter.required or draw(st.booleans())):
                arguments.append((parameter.name, draw(st.one_of(values))))
        step = Step(tool.name, tuple(arguments))
        try:
            request.validate(Plan((*steps, step)))
        except PlanError:
            continue
        steps.append(step)
    return Plan(tuple(steps) or (Step("no_evidence"),))


Values = list[st.SearchStrategy[Any]]


def _values(parameter: Parameter, request: PlanRequest, earlier: list[Step]) -> Values:
    values = _scalars(parameter, request, earlier, parameter.fits)
    if parameter.kind in ("array", "any"):
        items = _scalars(parameter, request, earlier, lambda value: True)
        if items:
            lists = st.lists(st.one_of(items), min_size=1, max_size=3)
            values.append(lists.map(lambda members: ListValue(tuple(members))))
    return values


def _scalars(
    parameter: Parameter, request: PlanRequest, earlier: list[Step], fits: Callable[[Any], bool]
) -> Values:
    sources = parameter.sources
    values: Values = []
    if fits("text"):
        values += [st.just(Literal(c)) for c in parameter.choices if _encodable(c)]
        values += [st.builds(Literal, TEXTS)] * (Source.LITERAL in sources)
        values += [st.just(QuestionRef())] * (Source.QUESTION in sources)
    if Source.NUMBER in sources and fits(1):
        values.append(st.builds(Literal, NUMBERS.filter(fits)))
    if Source.BOOLEAN in sources and fits(True):
        values.append(st.builds(Literal, st.booleans()))
    if Source.CONTEXT in sources:
        fields = [f for f, value in request.context.items() if value is not None and fits(value)]
        values += [st.just(ContextRef(f)) for f in fields if f in NAMES]
    if Source.STEP in sources:
        values += [
            st.builds(StepRef, st.just(number), st.sampled_from(results), st.integers(0, 9))
            for number, step in enumerate(earlier, 1)
            if (results := request.toolbox[step.tool].results)
        ]
    return values


def _encodable(text: str) -> bool:
    return all(not 0xD800 <= ord(char) < 0xE000 for char in text)
