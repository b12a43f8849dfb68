"""New queries by a chat model, for teams that have few: per shape of plan, and per tool."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import Field

from casewright.errors import PlanError
from casewright.finetune.folds import SAME_GROUP
from casewright.finetune.queries.no_answer import MOST_FAILURES, no_answer
from casewright.finetune.queries.seen_questions import SeenQuestions
from casewright.finetune.queries.written_queries import (
    Dropped,
    UnusableError,
    Wanted,
    read_written,
    wanted_shapes,
    written_objects,
)
from casewright.finetune.section import Section
from casewright.planner import AnnotatedQuery, Plan, parse_plan
from casewright.planner.chat_call import ask
from casewright.planner.chat_planner import model_name
from casewright.planner.prompt import render_head
from casewright.planner.spans import normalized
from casewright.stores import Encoder
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

ROLE = """\
You write training data for a planner of look-ups: questions that different people might ask, each \
with the plan of tool calls that fetches the evidence to answer it. Vary topic, wording, length, \
tone and spelling as real people do; never write two questions alike."""
#: Calls beyond those that would do if everything a model writes were taken.
SPARE_CALLS = 2
#: Questions that are there already which the model is told not to repeat.
SHOWN = 10


class WriterSettings(Section):
    """How queries are written.

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
    """What was written.

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
                for found in written_objects(answer):
                    try:
                        if not missing:
                            raise UnusableError(Dropped.SURPLUS)
                        record = self._read(found, wanted, seen)
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
        shown = "\n".join(json.dumps(one, ensure_ascii=False) for one in wanted.examples)
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
