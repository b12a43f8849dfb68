"""The quality of a demonstration: how likely its answer is under a model (RAGSys, 3.3.3).

The quality is the mean log-probability of the answer's tokens given the question: the negative
log-perplexity. A model follows demonstrations better if they are likely under it (Gonen et al.
2023). For the opposite preference (the paper's section 4.3), set λ_b above 1.
"""

from __future__ import annotations

from casewright.errors import InputError
from casewright.finetune.demonstrations.judged import AnswerPrompt, AnswerScorer, CaseReader
from casewright.stores import CaseStore, Change
from casewright.stores.progress import progress_bar

#: The quality range of a schema for log-probabilities.
QUALITY_RANGE = (-20.0, 0.0)
#: Number of cases that are written to the store at once.
_CASES_PER_WRITE = 256


def measure_quality(
    store: CaseStore, scorer: AnswerScorer, reading: CaseReader | None = None
) -> int:
    """Measure the quality of a store's cases, write it to the store, and return their number.

    Cases with a quality by the same model (``quality_by``) are skipped, so that an interrupted run
    resumes. ``reading`` maps a case to its question and answer. ``InputError`` if the schema's
    ``quality_range`` begins above -1, or a case has no question and answer.
    """
    if not can_hold_quality(store):
        low, high = store.schema.quality_range
        raise InputError(
            f"The schema {store.schema.name!r} has a quality from {low:g} to {high:g}, which is "
            f"too high for log-probabilities. Give the schema quality_range={QUALITY_RANGE}."
        )
    case_reader = reading or CaseReader.of(store)
    source = f"{scorer.signature}, log p(answer | question)"
    cases = [case for case in store.all() if case.quality is None or case.quality_by != source]
    # The answers to each question by case id; answers to one question share a prompt.
    answers_of: dict[str, dict[str, str]] = {}
    for case in cases:
        demonstration = case_reader.demonstration(case)
        answers_of.setdefault(demonstration.question, {})[case.id] = demonstration.answer
    prompts = [AnswerPrompt(q, tuple(answers.values())) for q, answers in answers_of.items()]
    ids = [tuple(answers) for answers in answers_of.values()]
    changes: dict[str, Change] = {}
    with progress_bar("Measuring the cases' quality", len(cases)) as advance:
        for index, likelihoods in scorer.score(prompts):
            for id_, likelihood in zip(ids[index], likelihoods, strict=True):
                quality = likelihood.logprob / likelihood.tokens
                changes[id_] = Change(quality=quality, quality_by=source)
            if len(changes) >= _CASES_PER_WRITE:
                store.update(changes)
                changes = {}
            advance(len(likelihoods))
    store.update(changes)
    return len(cases)


def can_hold_quality(store: CaseStore) -> bool:
    """Return True if a store's quality range reaches -1, so that log-probabilities fit in it."""
    return store.schema.quality_range[0] <= -1
