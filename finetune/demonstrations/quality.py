"""The quality of a demonstration: how likely the answer is under a model (RAGSys, section 3.3.3).

The quality is the mean log-probability of the answer's tokens given the question: the negative
log-perplexity. A model follows likely demonstrations better than unlikely ones (Gonen et al. 2023).
To prefer unlikely demonstrations (RAGSys, section 4.3), set ``lambda_b`` above 1.
"""

from __future__ import annotations

from casewright.errors import InputError
from casewright.finetune.demonstrations.judged import AnswerPrompt, AnswerScorer, CaseReader
from casewright.stores import CaseStore, Change
from casewright.stores.progress import progress_bar

#: A ``quality_range`` for a schema whose qualities are log-probabilities.
QUALITY_RANGE = (-20.0, 0.0)
#: Number of cases that are written to the store at once.
_CASES_PER_WRITE = 256


def measure_quality(
    store: CaseStore, scorer: AnswerScorer, reading: CaseReader | None = None
) -> int:
    """Write the quality of a store's cases to the store, and return the number of measured cases.

    Cases with a quality by the same model (``quality_by``) are skipped, so that an interrupted run
    resumes. ``reading`` finds a case's question and answer. ``InputError`` if the schema's
    ``quality_range`` begins above -1, or a case has no question and answer.
    """
    if not can_hold_quality(store):
        low, high = store.schema.quality_range
        raise InputError(
            f"The schema {store.schema.name!r} allows a quality from {low:g} to {high:g}. This is "
            f"too high for log-probabilities. Give the schema quality_range={QUALITY_RANGE}."
        )
    case_reader = reading or CaseReader.of(store)
    quality_by = f"{scorer.signature}, log p(answer | question)"
    cases = [c for c in store.all() if c.quality is None or c.quality_by != quality_by]
    # For each question, the answers by case id. Each question is one prompt with all these answers.
    answers_by_question: dict[str, dict[str, str]] = {}
    for case in cases:
        demonstration = case_reader.demonstration(case)
        answers_by_question.setdefault(demonstration.question, {})[case.id] = demonstration.answer
    prompts = [AnswerPrompt(q, tuple(a.values())) for q, a in answers_by_question.items()]
    case_ids = [tuple(answers) for answers in answers_by_question.values()]
    changes: dict[str, Change] = {}
    with progress_bar("Measuring the cases' quality", len(cases)) as advance:
        for index, likelihoods in scorer.score(prompts):
            for case_id, likelihood in zip(case_ids[index], likelihoods, strict=True):
                quality = likelihood.logprob / likelihood.tokens
                changes[case_id] = Change(quality=quality, quality_by=quality_by)
            if len(changes) >= _CASES_PER_WRITE:
                store.update(changes)
                changes = {}
            advance(len(likelihoods))
    store.update(changes)
    return len(cases)


def can_hold_quality(store: CaseStore) -> bool:
    """Return True if a store's quality range begins at -1 or below, as log-probabilities need."""
    return store.schema.quality_range[0] <= -1
