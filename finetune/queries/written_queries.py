"""Reading what a chat model wrote as queries: data, of which only what passes every check is kept.

Nothing of it is run. Its size is bounded, and so is the work that reading it takes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from casewright.errors import CasewrightError, InputError, PlanError
from casewright.finetune.evaluation import plan_class
from casewright.finetune.queries.annotation_sheet import request_of
from casewright.planner import AnnotatedQuery, ListValue, Literal, Plan, is_span, parse_plan
from casewright.planner.chat_planner import plan_lines
from casewright.planner.shape import shape
from casewright.tools import Source, Toolbox

#: Annotated queries of a shape that are shown to the model.
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """One kind of plan.

    Attributes:
        shape: The plan's text with its literals open; empty where any plan with the tool is wanted.
        tool: The tool that the plan is to use; empty where its shape says all.
        examples: Queries of this kind as records: query, context, plan.
    """

    shape: str
    tool: str
    examples: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """How it is named in tables."""
        return self.shape.replace("\n", "; ") or f"any with {self.tool}"

    def fits(self, plan: Plan) -> bool:
        """Say whether a plan is of this kind."""
        return shape(plan) == self.shape if self.shape else self.tool in plan.tools


def wanted_shapes(
    queries: Iterable[AnnotatedQuery], toolbox: Toolbox, most: int | None = None
) -> list[Wanted]:
    """Return what to write queries for.

    Args:
        queries: Annotated ones; those with changes to the toolbox, or that it cannot run, are left
            out.
        toolbox: A tool of it that no annotated query uses is wanted by itself, with its own
            example where it has one.
        most: At most so many shapes, the most frequent first; tools do not count.
    """
    by_shape: dict[str, list[AnnotatedQuery]] = defaultdict(list)
    for query in queries:
        changed = query.record.tools_extra or query.record.tools_removed
        if not changed and all(tool in toolbox for tool in query.plan.tools):
            by_shape[shape(query.plan)].append(query)
    # The sort is stable: of equally frequent ones, the first in the file comes first.
    shapes = sorted(by_shape.items(), key=lambda item: -len(item[1]))[:most]
    used = {tool for own in by_shape.values() for query in own for tool in query.plan.tools}
    wanted = [Wanted(form, "", _spread(own)) for form, own in shapes]
    for tool in toolbox:
        if tool.name not in used:
            shown: tuple[dict[str, Any], ...] = ()
            if tool.example is not None:
                shown = ({"query": tool.example.query, "context": {}, "plan": tool.example.plan},)
            wanted.append(Wanted("", tool.name, shown))
    return wanted


def _spread(queries: Sequence[AnnotatedQuery]) -> tuple[dict[str, Any], ...]:
    """Return examples from all over the list: neighbours in a file are often alike."""
    step = max(1, len(queries) // EXAMPLES)
    return tuple(
        {"query": query.query, "context": query.record.context, "plan": str(query.plan)}
        for query in queries[::step][:EXAMPLES]
    )


#: Characters that are read of one answer, and of one query and one plan.
ANSWER_CHARACTERS, QUERY_CHARACTERS, PLAN_CHARACTERS = 200_000, 1000, 4000
#: Characters of a context, as JSON.
CONTEXT_CHARACTERS = 2000
#: Braces of an answer at which an object may begin.
ATTEMPTS = 500


class Dropped(StrEnum):
    """Why a written query was not taken."""

    FORM = "no query, context and plan in the form asked for"
    REQUEST = "question or context unusable"
    FIELD = "context field that no annotated query has"
    NO_PLAN = "plan not in the plan language"
    INVALID = "plan that cannot be run for its request"
    SHAPE = "plan of another kind than asked for"
    SPAN = "literal that is not in the question"
    KNOWN = "question that is there already"
    ALIKE = "question too like one that is there"
    SURPLUS = "more than were wanted"


class UnusableError(CasewrightError):
    """A written query is not taken."""

    def __init__(self, why: Dropped) -> None:
        super().__init__(why.value)
        self.why = why


def written_objects(answer: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of an answer, whatever stands around them.

    A list in a code fence, one object a line, a list that was cut off and a list inside an object
    are all read.
    """
    text, at = answer[:ANSWER_CHARACTERS], 0
    decoder = json.JSONDecoder()
    for _ in range(ATTEMPTS):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield from _members(found)


def _members(found: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "query" in found or "plan" in found:
        yield found
        return
    # Of a list that was cut off, the last object's own objects are all that is whole.
    listed = next((value for value in found.values() if isinstance(value, list)), [])
    yield from (member for member in listed if isinstance(member, dict))


def read_written(
    found: Mapping[str, Any], wanted: Wanted, toolbox: Toolbox, fields: Collection[str] | None
) -> dict[str, Any]:
    """Return a written query as an annotated query's record: query, context, plan, class.

    Args:
        toolbox: The tools that its plan may use.
        fields: Names that fields of a context may have; ``None`` for any.

    Raises:
        UnusableError: It is not taken; says why.
    """
    query, context, plan = (found.get(name) for name in ("query", "context", "plan"))
    if isinstance(plan, list) and all(isinstance(line, str) for line in plan):
        plan = "\n".join(plan)
    context = {} if context is None else context
    if (
        not isinstance(query, str)
        or not isinstance(plan, str)
        or not isinstance(context, dict)
        or len(query) > QUERY_CHARACTERS
        or len(plan) > PLAN_CHARACTERS
    ):
        raise UnusableError(Dropped.FORM)
    record = {"query": query.strip(), "context": context}
    try:
        request = request_of(record, toolbox)
    except InputError as error:
        raise UnusableError(Dropped.REQUEST) from error
    if len(json.dumps(context)) > CONTEXT_CHARACTERS:
        raise UnusableError(Dropped.REQUEST)
    if fields is not None and not set(context) <= set(fields):
        raise UnusableError(Dropped.FIELD)
    try:
        parsed = parse_plan(plan_lines(plan))
    except PlanError as error:
        raise UnusableError(Dropped.NO_PLAN) from error
    try:
        request.validate(parsed)
    except PlanError as error:
        raise UnusableError(Dropped.INVALID) from error
    if not wanted.fits(parsed):
        raise UnusableError(Dropped.SHAPE)
    if not _spans_are_there(parsed, toolbox, request.question):
        raise UnusableError(Dropped.SPAN)
    return {**record, "plan": str(parsed), "class": plan_class(parsed)}


def _spans_are_there(plan: Plan, toolbox: Toolbox, question: str) -> bool:
    """Say whether every text that could be a span of the question is one.

    A plan is valid where a parameter admits literals too; in training, words that the question
    does not have would teach a model to make them up.
    """
    for step in plan.steps:
        for name, value in step.arguments:
            parameter = toolbox[step.tool].parameter(name)
            if parameter is None or Source.SPAN not in parameter.sources:
                continue
            items = value.items if isinstance(value, ListValue) else (value,)
            texts = [item.value for item in items if isinstance(item, Literal)]
            if any(
                isinstance(text, str)
                and text not in parameter.choices
                and not is_span(text, question)
                for text in texts
            ):
                return False
    return True
