"""New queries by a chat model, for teams that have few: per shape of plan, and per tool.

Of what the model wrote, only what passes every check is kept. Nothing of it is run; its size is
bounded, and so is the work that reading it takes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from casewright.errors import CasewrightError, InputError, PlanError
from casewright.finetune.evaluation import plan_class
from casewright.finetune.folds import SAME_GROUP
from casewright.finetune.plan_shape import shape
from casewright.finetune.queries.annotation import request_of
from casewright.finetune.queries.no_answer import MOST_FAILURES, no_answer
from casewright.finetune.queries.similarity import best_similarity
from casewright.finetune.section import Section
from casewright.planner import AnnotatedQuery, ListValue, Literal, Plan, is_span, parse_plan
from casewright.planner.chat_call import ask
from casewright.planner.chat_planner import model_name, plan_lines
from casewright.planner.prompt import render_head
from casewright.planner.spans import normalized
from casewright.stores import Encoder
from casewright.tools import Source, Toolbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


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
        """The name in tables."""
        return self.shape.replace("\n", "; ") or f"any with {self.tool}"

    def fits(self, plan: Plan) -> bool:
        """Return whether a plan is of this kind."""
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
            result, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield from _members(result)


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
    """Return whether every text that could be a span of the question is one.

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


class SeenQuestions:
    """Questions that are there, and whether another is too like one of them.

    Args:
        threshold: A cosine above this is too like.
    """

    def __init__(self, encoder: Encoder, threshold: float) -> None:
        self._encoder = encoder
        self._threshold = threshold
        self._texts: set[str] = set()
        self._vectors = np.zeros((0, encoder.dimension), dtype=np.float32)

    def add(self, texts: Sequence[str]) -> None:
        """Add questions as they are."""
        if texts:
            self._texts |= {normalized(text) for text in texts}
            self._vectors = np.concatenate([self._vectors, self._encoder.embed(texts)])

    def take(self, text: str) -> None:
        """Add a question.

        Raises:
            UnusableError: It is there, or one that is too like it.
        """
        if normalized(text) in self._texts:
            raise UnusableError(Dropped.KNOWN)
        vector = self._encoder.embed([text])
        if len(self._vectors) and best_similarity(vector, self._vectors)[0] > self._threshold:
            raise UnusableError(Dropped.ALIKE)
        self._texts.add(normalized(text))
        self._vectors = np.concatenate([self._vectors, vector])


ROLE = """\
You write training data for a planner of look-ups: questions that different people might ask, each \
with the plan of tool calls that fetches the evidence to answer it. Vary topic, wording, length, \
tone and spelling as real people do; never write two questions alike."""
#: Calls beyond those that would do if everything a model writes were taken.
SPARE_CALLS = 2
#: Questions that are there already which the model is told not to repeat.
SHOWN = 10


class WriterSettings(Section):
    """Settings of the writing of queries.

    Attributes:
        per_shape: How many for each shape of plan, those that the output holds already included.
        per_request: How many are asked for at once.
        shapes: At most so many shapes, the most frequent first.
        threshold: A question whose cosine to another is above this is too like it.
        seconds: Deadline of one call.
    """

    per_shape: int = Field(default=10, ge=1, le=10_000)
    per_request: int = Field(default=10, ge=1, le=50)
    shapes: int | None = Field(default=None, ge=1)
    threshold: float = Field(default=SAME_GROUP, gt=0, le=1)
    seconds: float = Field(default=120.0, gt=0)


@dataclass(slots=True)
class WritingReport:
    """The results of a writing run.

    Attributes:
        written: New queries by the name of what they were wanted for.
        dropped: What the model wrote and was not taken, by reason.
        stopped: Why it was asked no more before the end; empty where it was.
    """

    written: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    dropped: Counter[Dropped] = field(default_factory=Counter)
    calls: int = 0
    failed: int = 0
    failure: str = ""
    stopped: str = ""


class QueryWriter:
    """Asks a chat model for queries with plans, and keeps those that pass every check.

    Args:
        toolbox: The tools that plans may use.
        queries: Annotated queries: their shapes are wanted, and they are shown as examples.
        apart: Questions that nothing written may be like either, such as those that a planner is
            measured on; they are not shown.
    """

    def __init__(
        self,
        model: BaseChatModel,
        toolbox: Toolbox,
        queries: Sequence[AnnotatedQuery],
        encoder: Encoder,
        settings: WriterSettings | None = None,
        *,
        apart: Sequence[str] = (),
    ) -> None:
        self._model = model
        self._toolbox = toolbox
        self._encoder = encoder
        self._settings = settings or WriterSettings()
        self._known = [query.query for query in queries] + list(apart)
        fields = {name for query in queries for name in query.record.context}
        self._fields = fields if queries else None
        self.wanted = wanted_shapes(queries, toolbox, self._settings.shapes)

    def write(
        self,
        take: Callable[[Mapping[str, Any]], None],
        already: Sequence[Mapping[str, Any]] = (),
        advance: Callable[[int], None] = lambda count: None,
    ) -> WritingReport:
        """Write what is missing.

        Args:
            take: Is given each new record: an annotated query.
            already: Records of an earlier run; they count, and nothing new may be like them.
            advance: Told of every kind of plan that is done.
        """
        report = WritingReport()
        seen = SeenQuestions(self._encoder, self._settings.threshold)
        own = [str(record["query"]) for record in already]
        seen.add([*self._known, *own])
        plans = [_plan_of(record) for record in already]
        failures = 0
        for wanted in self.wanted:
            kept = zip(own, plans, strict=True)
            there = [text for text, plan in kept if plan is not None and wanted.fits(plan)]
            missing = max(0, self._settings.per_shape - len(there))
            calls = -(-missing // self._settings.per_request) + SPARE_CALLS
            while missing and calls and not report.stopped:
                calls -= 1
                report.calls += 1
                try:
                    answer = self._ask(wanted, min(missing, self._settings.per_request), there)
                except Exception as error:  # noqa: BLE001 - a model may fail in any way
                    report.failed += 1
                    report.failure = no_answer(self._model, error, self._settings.seconds)
                    failures += 1
                    if failures == MOST_FAILURES:
                        report.stopped = (
                            f"It failed {MOST_FAILURES} times in a row. {report.failure}"
                        )
                    continue
                failures = 0
                for result in written_objects(answer):
                    try:
                        if not missing:
                            raise UnusableError(Dropped.SURPLUS)
                        record = self._read(result, wanted, seen)
                    except UnusableError as unusable:
                        report.dropped[unusable.why] += 1
                        continue
                    take(record)
                    there.append(record["query"])
                    report.written[wanted.name] += 1
                    missing -= 1
            if missing:
                report.missing[wanted.name] = missing
            advance(1)
        return report

    def _ask(self, wanted: Wanted, count: int, there: Sequence[str]) -> str:
        from langchain_core.messages import HumanMessage, SystemMessage

        messages = [
            SystemMessage(render_head(self._toolbox, role=ROLE)),
            HumanMessage(_request(wanted, count, there)),
        ]
        return str(ask(self._model, messages, self._settings.seconds).text)

    def _read(
        self, found: Mapping[str, Any], wanted: Wanted, seen: SeenQuestions
    ) -> dict[str, Any]:
        record = read_written(found, wanted, self._toolbox, self._fields)
        seen.take(record["query"])
        key = hashlib.sha256(normalized(record["query"]).encode()).hexdigest()[:12]
        return {"id": f"w-{key}", **record, "source": f"written by {model_name(self._model)}"}


def _plan_of(record: Mapping[str, Any]) -> Plan | None:
    try:
        return parse_plan(str(record.get("plan", "")))
    except PlanError:
        return None


def _request(wanted: Wanted, count: int, there: Sequence[str]) -> str:
    """Return what is asked of the model: the kind of plan, with examples, and the form."""
    parts = []
    if wanted.shape:
        parts.append(
            'Write questions whose plan is exactly this, with your own text for each "":\n'
            f"{wanted.shape}"
        )
    else:
        parts.append(f"Write questions whose plan uses the tool {wanted.tool}.")
    if wanted.examples:
        shown = "\n".join(json.dumps(example, ensure_ascii=False) for example in wanted.examples)
        parts.append(f"Examples, one a line:\n{shown}")
    if there:
        listed = "\n".join(f"- {text}" for text in there[-SHOWN:])
        parts.append(f"These are there already; write others:\n{listed}")
    parts.append(
        f"Write {count} as a JSON list of objects with the fields query (the question), context "
        "(an object: what is known beside it, with every field that the plan refers to) and plan "
        "(its lines joined by \\n). Where a parameter takes a span, its text is whole words that "
        "stand next to each other in the question. Write the list and nothing else."
    )
    return "\n\n".join(parts)
