"""What demonstrations do to a model's answers, question by question."""

from __future__ import annotations

from collections.abc import Sequence

from casewright.finetune.demonstrations.asked import AnswerScorer, Asked
from casewright.finetune.demonstrations.judged import JudgedQuestion
from casewright.finetune.demonstrations.measures import Verdicts, measure
from casewright.finetune.demonstrations.shown import Shown
from casewright.stores.progress import progress_bar

Logprobs = tuple[float, ...]


def score_all(
    scorer: AnswerScorer, asked: Sequence[Asked], *, progress: bool | None = None
) -> list[Logprobs]:
    """Return the log-probabilities of each question's answers; what is asked twice, once."""
    first: dict[Asked, int] = {}
    for one in asked:
        first.setdefault(one, len(first))
    found: list[Logprobs] = [()] * len(first)
    with progress_bar("Scoring questions", len(first), show=progress) as advance:
        for place, likelihoods in scorer.score(list(first)):
            found[place] = tuple(one.logprob for one in likelihoods)
            advance(1)
    return [found[first[one]] for one in asked]


def verdicts(
    scorer: AnswerScorer,
    questions: Sequence[JudgedQuestion],
    shown: Sequence[Sequence[Shown]],
    *,
    progress: bool | None = None,
) -> list[list[Verdicts]]:
    """Measure several selections at once.

    Args:
        shown: For each selection what it shows before each question.
        progress: Whether a bar is shown; see ``progress_bar``.

    Returns:
        For each selection the measures of each question, against the question without
        demonstrations.
    """
    rows = [[Shown()] * len(questions), *shown]
    asked = [
        one.asked(question) for row in rows for one, question in zip(row, questions, strict=True)
    ]
    found = score_all(scorer, asked, progress=progress)
    count = len(questions)
    alone = found[:count]
    return [
        [
            judged(question, given, without)
            for question, given, without in zip(
                questions, found[start : start + count], alone, strict=True
            )
        ]
        for start in range(count, len(found), count)
    ]


def judged(question: JudgedQuestion, given: Logprobs, alone: Logprobs) -> Verdicts:
    """Return a question's measures from its answers' log-probabilities, the right ones first."""
    split = len(question.right)
    return measure(given[:split], given[split:], alone[:split], alone[split:])
