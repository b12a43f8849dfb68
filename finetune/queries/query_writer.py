"""New queries by a chat model, for each shape of plan and each unused tool.

Only queries that pass every check are kept. No plan is run; the size of an answer and the work to
read it are bounded.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import CasewrightError, InputError, PlanError
from casewright.finetune.folds import SAME_GROUP
from casewright.finetune.plan_shape import shape
from casewright.finetune.queries.annotation import checked_record
from casewright.finetune.queries.choose import best_similarity
from casewright.planner import AnnotatedQuery, ListValue, Literal, Plan, is_span, parse_plan
from casewright.planner.chat_call import ask, at_server, failure
from casewright.planner.chat_planner import model_name, plan_lines
from casewright.planner.prompt import render_head
from casewright.planner.spans import normalized
from casewright.stores import Encoder
from casewright.tools import Source, Toolbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


#: Annotated queries of one shape in a request.
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """A kind of plan to write queries for: a shape, or any plan that calls a tool.

    ``examples`` are queries of this kind as records: query, context, plan.
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


def wanted_shapes(queries: Iterable[AnnotatedQuery], toolbox: Toolbox) -> list[Wanted]:
    """Return the kinds of plans to write queries for: shapes, and tools that no query uses.

    The most frequent shapes come first. Queries that change the toolbox or do not fit it are left
    out.
    """
    by_shape: dict[str, list[AnnotatedQuery]] = defaultdict(list)
    for query in queries:
        changed = query.record.tools_extra or query.record.tools_removed
        if not changed and all(tool in toolbox for tool in query.plan.tools):
            by_shape[shape(query.plan)].append(query)
    # The sort is stable: of equally frequent shapes, the first in the file comes first.
    shapes = sorted(by_shape.items(), key=lambda item: -len(item[1]))
    used = {tool for group in by_shape.values() for query in group for tool in query.plan.tools}
    wanted = [Wanted(template, "", _examples_of(group)) for template, group in shapes]
    for tool in toolbox:
        if tool.name not in used:
            examples: tuple[dict[str, Any], ...] = ()
            if (example := tool.example) is not None:
                examples = ({"query": example.query, "context": {}, "plan": example.plan},)
            wanted.append(Wanted("", tool.name, examples))
    return wanted


def _examples_of(queries: Sequence[AnnotatedQuery]) -> tuple[dict[str, Any], ...]:
    # Spread over the list: neighbours in a file are often alike.
    step = max(1, len(queries) // EXAMPLES)
    return tuple(
        {"query": query.query, "context": query.record.context, "plan": str(query.plan)}
        for query in queries[::step][:EXAMPLES]
    )


#: Limits on the characters of an answer, a query, a plan, and a context as JSON.
ANSWER_CHARACTERS, QUERY_CHARACTERS, PLAN_CHARACTERS = 200_000, 1000, 4000
CONTEXT_CHARACTERS = 2000
#: Braces of an answer at which decoding is tried.
ATTEMPTS = 500


class Dropped(StrEnum):
    """A reason for which a written query was not taken."""

    INVALID = "plan that cannot be run for its request"
    KNOWN = "question that is there already"
    ALIKE = "question too like one that is there"


class UnusableError(CasewrightError):
    """The error for a written query that is not taken."""

    def __init__(self, why: Dropped) -> None:
        super().__init__(why.value)
        self.why = why


def written_objects(answer: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of an answer.

    The objects may stand between other words, one a line, in a code fence, in a list that was cut
    off, or in a list inside an object.
    """
    text, position = answer[:ANSWER_CHARACTERS], 0
    decoder = json.JSONDecoder()
    for _ in range(ATTEMPTS):
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


def read_written(
    fields: Mapping[str, Any], wanted: Wanted, toolbox: Toolbox, known: Collection[str] | None
) -> dict[str, Any] | None:
    """Return an object of an answer as an annotated query's record; ``None`` if it is unusable.

    Its plan is valid, of the kind that was asked for, and quotes the question. ``known`` are the
    fields that a context may have.
    """
    query, context, plan = (fields.get(name) for name in ("query", "context", "plan"))
    if isinstance(plan, list) and all(isinstance(line, str) for line in plan):
        plan = "\n".join(plan)
    context = {} if context is None else context
    if not (isinstance(query, str) and isinstance(plan, str) and isinstance(context, dict)):
        return None
    if len(query) > QUERY_CHARACTERS or len(plan) > PLAN_CHARACTERS:
        return None
    if len(json.dumps(context)) > CONTEXT_CHARACTERS:
        return None
    if known is not None and not set(context) <= set(known):
        return None
    try:
        written = {"query": query.strip(), "context": context, "plan": plan_lines(plan)}
        record = checked_record(written, toolbox, ())
    except (InputError, PlanError):
        return None
    parsed = parse_plan(record["plan"])
    usable = wanted.fits(parsed) and _quotes_question(parsed, toolbox, record["query"])
    return record if usable else None


def _quotes_question(plan: Plan, toolbox: Toolbox, question: str) -> bool:
    """Return whether every text that may be a span of the question is one.

    Other texts may be valid, but would teach a model to invent words.
    """
    for step in plan.steps:
        for name, value in step.arguments:
            parameter = toolbox[step.tool].parameter(name)
            if parameter is None or Source.SPAN not in parameter.sources:
                continue
            items = value.items if isinstance(value, ListValue) else (value,)
            texts = (item.value for item in items if isinstance(item, Literal))
            if any(
                isinstance(text, str)
                and text not in parameter.choices
                and not is_span(text, question)
                for text in texts
            ):
                return False
    return True


class SeenQuestions:
    """The known questions, to refuse new ones that repeat them or are above a cosine threshold."""

    def __init__(self, encoder: Encoder, threshold: float) -> None:
        self._encoder = encoder
        self._threshold = threshold
        self._texts: set[str] = set()
        self._vectors = np.zeros((0, encoder.dimension), dtype=np.float32)

    def add(self, texts: Sequence[str]) -> None:
        """Add questions without a check."""
        if texts:
            self._texts |= {normalized(text) for text in texts}
            self._vectors = np.concatenate([self._vectors, self._encoder.embed(texts)])

    def take(self, text: str) -> None:
        """Add a question; raise ``UnusableError`` if it repeats or resembles a known one."""
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
#: Calls beyond the number that suffices if every written query is taken.
SPARE_CALLS = 2
#: Known questions in a request, which the model is not to repeat.
SHOWN = 10


#: Queries of one request; failures in a row after which the model gets no more requests.
PER_REQUEST, MOST_FAILURES = 10, 3


@dataclass(slots=True)
class WritingReport:
    """The queries of a writing run.

    Attributes:
        records: The written queries, as records of annotated queries.
        stopped: Why the run ended early, or empty.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""


class QueryWriter:
    """Asks a chat model for queries with plans, and keeps those that pass every check.

    No new query may resemble the annotated ones, which give shapes and examples, nor those in
    ``apart``, such as questions of an evaluation, which the model does not see. ``seconds`` is the
    deadline of a call.
    """

    def __init__(
        self,
        model: BaseChatModel,
        toolbox: Toolbox,
        queries: Sequence[AnnotatedQuery],
        encoder: Encoder,
        *,
        apart: Sequence[str] = (),
        seconds: float = 120.0,
    ) -> None:
        self._model = model
        self._toolbox = toolbox
        self._encoder = encoder
        self._seconds = seconds
        self._known = [query.query for query in queries] + list(apart)
        fields = {name for query in queries for name in query.record.context}
        self._fields = fields if queries else None
        self.wanted = wanted_shapes(queries, toolbox)

    def write(
        self, per_kind: int, advance: Callable[[int], None] = lambda count: None
    ) -> WritingReport:
        """Write so many queries of each kind of plan; call ``advance`` with 1 after each kind."""
        report = WritingReport()
        seen = SeenQuestions(self._encoder, SAME_GROUP)
        seen.add(self._known)
        failures = 0
        for wanted in self.wanted:
            texts: list[str] = []
            calls = -(-per_kind // PER_REQUEST) + SPARE_CALLS
            while len(texts) < per_kind and calls and not report.stopped:
                calls -= 1
                try:
                    answer = self._ask(wanted, min(per_kind - len(texts), PER_REQUEST), texts)
                except Exception as error:  # noqa: BLE001 - a model may fail in any way
                    failures += 1
                    if failures == MOST_FAILURES:
                        report.stopped = (
                            f"It failed {MOST_FAILURES} times in a row. {self._failure(error)}"
                        )
                    continue
                failures = 0
                for fields in written_objects(answer):
                    if len(texts) == per_kind:
                        break
                    if (record := self._read(fields, wanted, seen)) is not None:
                        report.records.append(record)
                        texts.append(record["query"])
            advance(1)
        return report

    def _ask(self, wanted: Wanted, count: int, known: Sequence[str]) -> str:
        messages = [
            ("system", render_head(self._toolbox, role=ROLE)),
            ("user", _request(wanted, count, known)),
        ]
        return str(ask(self._model, messages, self._seconds).text)

    def _failure(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"The model{at_server(self._model)} gave no answer within {self._seconds:g} s."
        return failure(self._model, error).rstrip(".") + "."

    def _read(
        self, fields: Mapping[str, Any], wanted: Wanted, seen: SeenQuestions
    ) -> dict[str, Any] | None:
        record = read_written(fields, wanted, self._toolbox, self._fields)
        if record is None:
            return None
        try:
            seen.take(record["query"])
        except UnusableError:
            return None
        key = hashlib.sha256(normalized(record["query"]).encode()).hexdigest()[:12]
        return {"id": f"w-{key}", **record, "source": f"written by {model_name(self._model)}"}


def _request(wanted: Wanted, count: int, known: Sequence[str]) -> str:
    parts = [f"Write questions whose plan uses the tool {wanted.tool}."]
    if wanted.shape:
        parts = [
            'Write questions whose plan is exactly this, with your own text for each "":\n'
            f"{wanted.shape}"
        ]
    if wanted.examples:
        examples = "\n".join(json.dumps(item, ensure_ascii=False) for item in wanted.examples)
        parts.append(f"Examples, one a line:\n{examples}")
    if known:
        listed = "\n".join(f"- {text}" for text in known[-SHOWN:])
        parts.append(f"These are there already; write others:\n{listed}")
    parts.append(
        f"Write {count} as a JSON list of objects with the fields query (the question), context "
        "(an object: what is known beside it, with every field that the plan refers to) and plan "
        "(its lines joined by \\n). Where a parameter takes a span, its text is whole words that "
        "stand next to each other in the question. Write the list and nothing else."
    )
    return "\n\n".join(parts)
