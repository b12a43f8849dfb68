"""The quality of a demonstration: how likely a model holds its answer to be (RAGSys, 3.3.3).

It is the mean log-probability of the answer's tokens given the question: its log-perplexity with
the sign turned, so that more is better. What a model writes easily it follows easily (Gonen et al.
2023); that what surprises it teaches it more is the paper's section 4.3, and a λ_b above 1.
"""

from __future__ import annotations

from casewright.errors import InputError
from casewright.finetune.demonstrations.judged import Asked, CaseReading, LocalScorer
from casewright.stores import CaseStore, Change
from casewright.stores.progress import progress_bar

#: Lowest and highest of a schema whose quality this is.
QUALITY_RANGE = (-20.0, 0.0)
#: Cases of one write to the store.
_WRITTEN = 256


def measure_quality(
    store: CaseStore,
    scorer: LocalScorer,
    reading: CaseReading | None = None,
    *,
    progress: bool | None = None,
) -> int:
    """Measure every case of a store, and write it to the store's quality column.

    Cases that this model measured already are left as they are, so that a killed run goes on where
    it was; ``quality_by`` tells by the model's name and weights, and by what was measured.

    Args:
        store: The store; its schema's ``quality_range`` reaches below 0.
        scorer: Scores the answers; a ``RecordedScorer`` will do.
        progress: Whether a bar is shown; see ``progress_bar``.

    Returns:
        How many cases were measured.

    Raises:
        InputError: The schema's quality is another one, a case is no demonstration, or the model
            tells no probabilities of texts.
    """
    low, high = store.schema.quality_range
    if not can_hold_quality(store):
        raise InputError(
            f"The schema {store.schema.name!r} has a quality from {low:g} to {high:g}, and a log-"
            f"probability is below 0. Give the schema quality_range={QUALITY_RANGE}."
        )
    reading = reading or CaseReading.of(store)
    by = f"{scorer.signature}, log p(answer | question)"
    cases = [case for case in store.all() if case.quality is None or case.quality_by != by]
    # The answers of one question share what is computed of it.
    together: dict[str, dict[str, str]] = {}
    for case in cases:
        shown = reading.demonstration(case)
        together.setdefault(shown.question, {})[case.id] = shown.answer
    asked = [Asked(question, tuple(answers.values())) for question, answers in together.items()]
    ids = [tuple(answers) for answers in together.values()]
    changes: dict[str, Change] = {}
    with progress_bar("Measuring the cases' quality", len(cases), show=progress) as advance:
        for index, output in scorer.score(asked):
            for id_, result in zip(ids[index], output, strict=True):
                changes[id_] = Change(quality=result.logprob / result.tokens, quality_by=by)
            if len(changes) >= _WRITTEN:
                store.update(changes)
                changes = {}
            advance(len(output))
    store.update(changes)
    return len(cases)


def can_hold_quality(store: CaseStore) -> bool:
    """Return whether a store's quality can be a log-probability a token."""
    return store.schema.quality_range[0] <= -1
