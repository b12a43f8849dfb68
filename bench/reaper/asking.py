"""Asking one planner a set of questions, and what its answers come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from casewright.bench.planner import UncachedQuestions
from casewright.bench.reaper.row import QuestionSet
from casewright.errors import InputError
from casewright.finetune.evaluation import Verdict, as_row, evaluate, score_classes
from casewright.finetune.evaluation.intervals import wilson
from casewright.finetune.evaluation.outcome import Outcome
from casewright.planner import CasePlanner, ModelPlanner, Planner, plan_store
from casewright.planner.shipped import PRIOR, SPANS
from casewright.stores import CachedEncoder, CaseStore

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel
    from casewright.planner.numpy_model import NumpyModel

#: A batch of a slow machine must not end by the clock, which would make figures the machine's.
SECONDS = 600.0
#: Questions that are decoded together where a plan's own time is not asked for.
TOGETHER = 16


@dataclass(frozen=True, slots=True)
class Mode:
    """How a language model is asked.

    Attributes:
        grammar: Under the grammar of the request.
        cases: With plan cases in its prompt.
        aids: Helped as the planner that ships is: a prior over tools, spans for texts.
    """

    grammar: bool
    cases: bool
    aids: bool = False


#: In why a model's plan is another planner's: it raised, so there is nothing to measure.
FAILED = "It failed"
#: As it is served first; the others are the model's own work.
MODES = (
    Mode(True, True, aids=True),
    Mode(True, True),
    Mode(True, False),
    Mode(False, True),
    Mode(False, False),
)
SERVED = MODES[0]
#: Those of random weights: without a grammar they write no plan.
BOUND = MODES[:3]


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions with their plan cases in a store.

    Attributes:
        questions: What is asked.
        store: The plan cases.
        examples: How many of them a prompt shows.
        together: How many questions are decoded at once.
        seed: Of the tools that are removed.
    """

    questions: QuestionSet
    store: CaseStore
    examples: int
    together: int = TOGETHER
    seed: int = 0

    def of_model(self, model: LanguageModel | NumpyModel, mode: Mode) -> dict[str, Any]:
        """Ask a language model; with the grammar off, with a needed tool removed too."""
        planner = ModelPlanner(
            model,
            plan_cases=self.store if mode.cases else None,
            examples=self.examples,
            seconds=SECONDS,
            batch=self.together,
            constrained=mode.grammar,
            prior=PRIOR if mode.aids else 0.0,
            spans=SPANS and mode.aids,
        )
        return self.of(planner, removal=not mode.grammar)

    def of_cases(self) -> dict[str, Any]:
        """Ask the case planner, which has these plan cases and no reader."""
        return self.of(CasePlanner(self.store))

    def of(self, planner: Planner, *, removal: bool = False) -> dict[str, Any]:
        """Ask a planner, and return its figures, JSON-plain.

        A plan that a fallback gave, or that is not valid, is wrong in everything: no planner
        borrows another's accuracy.

        Args:
            planner: The planner.
            removal: Measure whether it keeps to the tools that are left when one is removed.
        """
        name = planner.name
        found = evaluate(
            self.questions.items,
            {name: planner},
            removal={name: planner} if removal else None,
            seed=self.seed,
        )
        outcomes, figures = found.outcomes[name], found.figures[name]
        _check_worked(name, outcomes)
        verdicts = [o.verdict if o.own else _wrong(o.verdict) for o in outcomes]
        scores = score_classes(verdicts)
        right = sum(verdict.tools for verdict in verdicts)
        low, high = wilson(right, len(verdicts))
        return {
            "classes": [dict(as_row(score)) for score in scores],
            "low": round(low, 4),
            "high": round(high, 4),
            "invalid": round(sum(not o.own for o in outcomes) / len(outcomes), 4),
            "only_provided": _value(figures["only_provided"]) if removal else None,
            "ms_p50": _value(figures["ms_p50"], 1),
            "output_tokens": _value(figures["output_tokens"], 1),
            "model_steps": _value(figures["model_steps"], 1),
        }


@contextmanager
def open_asking(
    questions: QuestionSet,
    encoder: CachedEncoder,
    examples: int,
    *,
    together: int = TOGETHER,
    seed: int = 0,
) -> Iterator[Asking]:
    """Yield the questions with their plan cases in a store, which is closed in the end."""
    with plan_store(questions.cases, UncachedQuestions(encoder)) as store:
        yield Asking(questions, store, examples, together, seed)


def whole(found: dict[str, Any]) -> dict[str, Any]:
    """Return the figures over all classes."""
    classes: Sequence[dict[str, Any]] = found["classes"]
    return {**classes[-1], **{name: found[name] for name in found if name != "classes"}}


def _check_worked(name: str, outcomes: Sequence[Outcome]) -> None:
    """Refuse figures of a planner that did not run: they would be kept, and look like a result."""
    failed = [o.answered.error for o in outcomes if o.answered.error]
    failed += [o.result.fallback for o in outcomes if o.result and FAILED in o.result.fallback]
    if failed:
        raise InputError(
            f"{len(failed)} of {len(outcomes)} questions were not answered by {name}, the first "
            f"since: {failed[0]} Run the same command again; nothing of this was kept."
        )


def _wrong(verdict: Verdict) -> Verdict:
    return replace(verdict, predicted="", tools=False, arguments=False)


def _value(figure: Any, digits: int = 4) -> float | None:
    return None if figure.value is None else round(figure.value, digits)
