"""Generates annotated queries with a chat model, for each plan shape and each tool without queries.

A shape is a plan without its literals. Only queries that pass every check are returned. Plans are
not run. The size of a model's answer and the effort to parse the answer are bounded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import InputError, PlanError
from casewright.finetune.folds import NEAR_DUPLICATE_SIMILARITY
from casewright.finetune.plan_shape import shape
from casewright.finetune.queries.annotation import checked_record
from casewright.finetune.queries.choose import best_similarity
from casewright.planner import AnnotatedQuery, ListValue, Literal, Plan, is_span, parse_plan
from casewright.planner.chat_call import ask, at_server, failure_text
from casewright.planner.chat_planner import model_name, plan_lines
from casewright.planner.prompt import render_head
from casewright.planner.spans import normalized
from casewright.stores import Encoder
from casewright.tools import Source, Toolbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: Maximum number of annotated queries that a request shows as examples of a shape.
EXAMPLE_COUNT = 3
#: Maximum numbers of characters of an answer, a query, a plan, and a context as JSON.
MAX_ANSWER, MAX_QUERY, MAX_PLAN, MAX_CONTEXT = 200_000, 1000, 4000, 2000
#: Maximum number of opening braces of an answer at which an object is parsed.
MAX_PARSES = 500
ROLE = """\
You write training data for a planner of look-ups: questions that different people might ask, each \
with the plan of tool calls that fetches the evidence to answer it. Vary topic, wording, length, \
tone and spelling as real people do; never write two questions alike."""
#: Number of spare calls for a kind of plan, since some generated queries may be unusable.
SPARE_CALLS = 2
#: Maximum number of earlier questions that a request shows, so that the model writes others.
MAX_EARLIER = 10
#: Maximum number of queries that a request asks for.
MAX_PER_REQUEST = 10
#: Number of consecutive failures that end the run.
MAX_FAILURES = 3


@dataclass(frozen=True, slots=True)
class PlanKind:
    """A kind of plan to write queries for: plans of a shape, or plans that call a tool.

    One of ``shape`` and ``tool`` is empty. ``examples`` are queries of this kind as records with
    query, context and plan.
    """

    shape: str
    tool: str
    examples: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """The kind's name in tables."""
        return self.shape.replace("\n", "; ") or f"any with {self.tool}"

    def fits(self, plan: Plan) -> bool:
        """Return True if a plan is of this kind."""
        return shape(plan) == self.shape if self.shape else self.tool in plan.tools


def plan_kinds(queries: Iterable[AnnotatedQuery], toolbox: Toolbox) -> list[PlanKind]:
    """Return the kinds of plans to write queries for: shapes, and tools that no query uses.

    The most frequent shapes come first. Queries that change the toolbox, or call a tool that it
    lacks, are ignored.
    """
    by_shape: dict[str, list[AnnotatedQuery]] = defaultdict(list)
    for query in queries:
        changes_tools = query.record.tools_extra or query.record.tools_removed
        if not changes_tools and all(tool in toolbox for tool in query.plan.tools):
            by_shape[shape(query.plan)].append(query)
    kinds = []
    # The sort is stable: equally frequent shapes stay in the order of the file.
    for plan_shape, group in sorted(by_shape.items(), key=lambda item: -len(item[1])):
        # Examples are taken from the whole group, since neighbours in a file are often similar.
        sample = group[:: max(1, len(group) // EXAMPLE_COUNT)][:EXAMPLE_COUNT]
        examples = [
            {"query": q.query, "context": q.record.context, "plan": str(q.plan)} for q in sample
        ]
        kinds.append(PlanKind(shape=plan_shape, tool="", examples=tuple(examples)))
    used_tools = {tool for group in by_shape.values() for q in group for tool in q.plan.tools}
    for tool in toolbox:
        if tool.name not in used_tools:
            tool_examples = [tool.example] if tool.example else []
            examples = [{"query": e.query, "context": {}, "plan": e.plan} for e in tool_examples]
            kinds.append(PlanKind(shape="", tool=tool.name, examples=tuple(examples)))
    return kinds


class RejectReason(StrEnum):
    """The reason why a draft or a generated query is rejected."""

    INVALID = "plan that cannot be run for its request"
    KNOWN = "question that is there already"
    ALIKE = "question too like one that is there"


def answer_objects(answer: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of an answer.

    The objects may be between other words, on lines of their own, in a code fence, in an incomplete
    list, or in the first list inside another object.
    """
    text, position = answer[:MAX_ANSWER], 0
    decoder = json.JSONDecoder()
    for _ in range(MAX_PARSES):
        position = text.find("{", position)
        if position < 0:
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        if "query" in value or "plan" in value:
            yield value
        else:
            members = next((part for part in value.values() if isinstance(part, list)), [])
            yield from (member for member in members if isinstance(member, dict))


def read_answer_object(
    item: Mapping[str, Any], kind: PlanKind, toolbox: Toolbox, allowed: Collection[str] | None
) -> dict[str, Any] | None:
    """Return an object of an answer as an annotated query's record; ``None`` if it is unusable.

    A usable plan is valid and of this kind, and takes the texts for spans from the question.
    ``allowed`` are the fields that a context may have; ``None`` allows all.
    """
    query, context, plan = (item.get(name) for name in ("query", "context", "plan"))
    if isinstance(plan, list) and all(isinstance(line, str) for line in plan):
        plan = "\n".join(plan)
    context = {} if context is None else context
    if not (isinstance(query, str) and isinstance(plan, str) and isinstance(context, dict)):
        return None
    if (
        len(query) > MAX_QUERY
        or len(plan) > MAX_PLAN
        or len(json.dumps(context)) > MAX_CONTEXT
        or (allowed is not None and not set(context) <= set(allowed))
    ):
        return None
    try:
        candidate = {"query": query.strip(), "context": context, "plan": plan_lines(plan)}
        record = checked_record(candidate, toolbox, ())
    except (InputError, PlanError):
        return None
    parsed = parse_plan(record["plan"])
    is_usable = kind.fits(parsed) and _quotes_question(parsed, toolbox, record["query"])
    return record if is_usable else None


def _quotes_question(plan: Plan, toolbox: Toolbox, question: str) -> bool:
    """Return True if each text for a parameter with spans is a span of the question, or a choice.

    Other texts may be valid, but would teach a model to invent words.
    """
    for step in plan.steps:
        for name, value in step.arguments:
            parameter = toolbox[step.tool].parameter(name)
            if parameter is None or Source.SPAN not in parameter.sources:
                continue
            values = value.items if isinstance(value, ListValue) else (value,)
            texts = [v.value for v in values if isinstance(v, Literal) and isinstance(v.value, str)]
            if not all(text in parameter.choices or is_span(text, question) for text in texts):
                return False
    return True


class SeenQuestions:
    """Known questions; a repetition is one of them, or has a cosine above ``threshold`` to one."""

    def __init__(self, encoder: Encoder, threshold: float) -> None:
        self._encoder = encoder
        self._threshold = threshold
        self._texts: set[str] = set()
        self._vectors = np.zeros((0, encoder.dimension), dtype=np.float32)

    def add(self, texts: Sequence[str]) -> None:
        """Add questions, even if they are repetitions."""
        if texts:
            self._texts |= {normalized(text) for text in texts}
            self._vectors = np.concatenate([self._vectors, self._encoder.embed(texts)])

    def add_new(self, text: str) -> RejectReason | None:
        """Add a question and return ``None``, or return the reason why it is a repetition."""
        if normalized(text) in self._texts:
            return RejectReason.KNOWN
        vector = self._encoder.embed([text])
        if len(self._vectors) and best_similarity(vector, self._vectors)[0] > self._threshold:
            return RejectReason.ALIKE
        self._texts.add(normalized(text))
        self._vectors = np.concatenate([self._vectors, vector])
        return None


@dataclass(slots=True)
class WritingReport:
    """The generated queries as records; ``stop_reason`` is empty if the run did not end early."""

    records: list[dict[str, Any]] = field(default_factory=list)
    stop_reason: str = ""


class QueryWriter:
    """Generates queries with plans by a chat model.

    The annotated ``queries`` give shapes and examples. A new query must differ from ``queries`` and
    the ``excluded`` questions, for example a test set; the model does not see excluded questions.
    ``seconds`` is the timeout of a call.
    """

    def __init__(
        self,
        model: BaseChatModel,
        toolbox: Toolbox,
        queries: Sequence[AnnotatedQuery],
        encoder: Encoder,
        *,
        excluded: Sequence[str] = (),
        seconds: float = 120.0,
    ) -> None:
        self._model = model
        self._toolbox = toolbox
        self._encoder = encoder
        self._seconds = seconds
        self._known_questions = [*(query.query for query in queries), *excluded]
        known_fields = {name for query in queries for name in query.record.context}
        # Without queries, a context may have any field.
        self._context_fields = known_fields if queries else None
        self.kinds = plan_kinds(queries, toolbox)

    def write(
        self, per_kind: int, advance: Callable[[int], None] = lambda count: None
    ) -> WritingReport:
        """Generate up to ``per_kind`` queries of each kind; call ``advance`` after each kind."""
        report = WritingReport()
        seen = SeenQuestions(self._encoder, NEAR_DUPLICATE_SIMILARITY)
        seen.add(self._known_questions)
        failure_count = 0
        for kind in self.kinds:
            questions: list[str] = []
            for _ in range(math.ceil(per_kind / MAX_PER_REQUEST) + SPARE_CALLS):
                missing_count = per_kind - len(questions)
                if not missing_count or report.stop_reason:
                    break
                try:
                    answer = self._ask(kind, min(missing_count, MAX_PER_REQUEST), questions)
                except Exception as error:  # noqa: BLE001 - a model may fail in any way
                    failure_count += 1
                    if failure_count == MAX_FAILURES:
                        reason = self._failure_reason(error)
                        report.stop_reason = f"The last {MAX_FAILURES} calls failed. {reason}"
                    continue
                failure_count = 0
                records = (self._new_record(item, kind, seen) for item in answer_objects(answer))
                for record in islice(filter(None, records), missing_count):
                    report.records.append(record)
                    questions.append(record["query"])
            advance(1)
        return report

    def _ask(self, kind: PlanKind, count: int, earlier: Sequence[str]) -> str:
        system_prompt = render_head(self._toolbox, role=ROLE)
        messages = [("system", system_prompt), ("user", _request_text(kind, count, earlier))]
        return str(ask(self._model, messages, self._seconds).text)

    def _failure_reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"The model{at_server(self._model)} gave no answer within {self._seconds:g} s."
        return failure_text(self._model, error).rstrip(".") + "."

    def _new_record(
        self, item: Mapping[str, Any], kind: PlanKind, seen: SeenQuestions
    ) -> dict[str, Any] | None:
        """Return an object of an answer as a record; ``None`` if it is unusable or a repetition."""
        record = read_answer_object(item, kind, self._toolbox, self._context_fields)
        if record is None or seen.add_new(record["query"]):
            return None
        text_hash = hashlib.sha256(normalized(record["query"]).encode()).hexdigest()[:12]
        return {"id": f"w-{text_hash}", **record, "source": f"written by {model_name(self._model)}"}


def _request_text(kind: PlanKind, count: int, earlier: Sequence[str]) -> str:
    parts = [f"Write questions whose plan uses the tool {kind.tool}."]
    if kind.shape:
        parts = [
            'Write questions whose plan is exactly this, with your own text for each "":\n'
            f"{kind.shape}"
        ]
    if kind.examples:
        examples = "\n".join(json.dumps(item, ensure_ascii=False) for item in kind.examples)
        parts.append(f"Examples, one a line:\n{examples}")
    if earlier:
        lines = "\n".join(f"- {text}" for text in earlier[-MAX_EARLIER:])
        parts.append(f"These are there already; write others:\n{lines}")
    parts.append(
        f"Write {count} as a JSON list of objects with the fields query (the question), context "
        "(an object: what is known beside it, with every field that the plan refers to) and plan "
        "(its lines joined by \\n). Where a parameter takes a span, its text is whole words that "
        "stand next to each other in the question. Write the list and nothing else."
    )
    return "\n\n".join(parts)
