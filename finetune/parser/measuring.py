"""The accuracy of a plan parser on toolboxes outside of its training, and its confidence."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.finetune.baselines.question_features import fit_regression
from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.evaluation.verdict import judge, same_graph
from casewright.planner import MAX_STEPS, AnnotatedQuery
from casewright.planner.parser.example_cases import PlanCase
from casewright.planner.parser.plan_reading import write_plan
from casewright.planner.parser.runtime import ParserRuntime
from casewright.planner.parser.weights import ParserCard, certainty
from casewright.tools import Toolbox

#: The log-probability of no plan.
LEAST = -20.0


@dataclass(frozen=True, slots=True)
class Scored:
    """A plan's log-probability, and flags: its tools are right, and the whole plan is right."""

    score: float
    tools: bool
    whole: bool


def scored(
    runtime: ParserRuntime, boxes: Sequence[CorpusToolbox], cases: int, seed: int = 0
) -> Iterator[Scored]:
    """Yield the scores of toolboxes' messages, with ``cases`` random other messages as cases."""
    for box in boxes:
        order = random.Random(f"{seed}:{box.name}").sample(box.queries, len(box.queries))
        yield from planned(runtime, box.toolbox, order[:cases], order[cases:])


def planned(
    runtime: ParserRuntime,
    toolbox: Toolbox,
    cases: Sequence[AnnotatedQuery],
    queries: Sequence[AnnotatedQuery],
) -> Iterator[Scored]:
    """Yield the scores of messages, with the plan cases of others."""
    prepared = runtime.prepare(toolbox, [_case(query) for query in cases])
    for query in queries:
        message, result = runtime.plans(prepared, query.query, query.record.context, MAX_STEPS)
        if not result:
            yield Scored(LEAST, False, False)
            continue
        plan = write_plan(result[0].steps, prepared.schema, message)
        whole = same_graph(query, plan, arguments=True)
        yield Scored(result[0].score, judge(query, plan).tools, whole)


def shares(scores: Sequence[Scored], words: str) -> dict[str, float]:
    """Return the shares of right tools and whole plans; ``words`` end the figures' names."""
    return {
        f"right tools, {words}": round(sum(item.tools for item in scores) / len(scores), 4),
        f"whole plans, {words}": round(sum(item.whole for item in scores) / len(scores), 4),
    }


def fitted(scores: Sequence[Scored]) -> ParserCard:
    """Return a card with the logistic curve from certainty to the share of right plans."""
    certainties = np.array([[certainty(item.score)] for item in scores])
    slope, shift = fit_regression(certainties, [item.whole for item in scores])
    return ParserCard(float(slope), float(shift))


def asking(groups: Iterable[Sequence[Scored]], card: ParserCard, share: float) -> float:
    """Return the confidence below which at most a share of each toolbox's messages is.

    ``groups`` are the scores of each held-out toolbox. A threshold for all scores together would
    ask back far more messages of an unusual toolbox.
    """
    return min(
        float(np.quantile([card.confidence(item.score) for item in scores], share))
        for scores in groups
    )


def _case(query: AnnotatedQuery) -> PlanCase:
    known = {name: value for name, value in query.record.context.items() if value is not None}
    return PlanCase(query.query, query.plan, known)
