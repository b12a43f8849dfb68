"""CBR-RAG's answer quality (section 6): do cases in the prompt bring better answers?

For each question an answer is generated without cases, and with the 1 and 3 best cases in each of
three forms; as a control, with the 3 best cases of another question. What counts is the cosine of
the answer's embedding and the reference's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.bench.legal.answerers import Answerer, answerer_of
from casewright.bench.legal.data import QaSet, find_sets
from casewright.bench.legal.measures import Scores, strangers
from casewright.bench.legal.published import PUBLISHED_ANSWERS
from casewright.bench.report import Report
from casewright.domains.legal.cases import context_text, qa_schema
from casewright.stores import CaseStore, Encoder
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: How many cases a prompt holds, and in which forms (see ``context_text``).
COUNTS = (1, 3)
FORMS = {"support": "support only", "full": "full case", "qsa": "question, support, answer"}
#: Cosines that differ by less do so by rounding.
ROUNDING = 1e-9
NO_CASES, THREE_FULL = "no cases", "3 × full case"
OTHERS = "3 × full case, of another question"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a prompt holds beside the question.

    Attributes:
        name: How tables call it.
        count: How many cases.
        form: In which form.
    """

    name: str
    count: int = 0
    form: str = "support"


SETTINGS = (
    Setting(NO_CASES),
    *(
        Setting(f"{count} × {told}", count, form)
        for count in COUNTS
        for form, told in FORMS.items()
    ),
)
#: What tells whether it matters which cases are shown.
CONTROL = Setting(OTHERS, 3, "full")


@dataclass(frozen=True, slots=True)
class Compared:
    """A setting's cosines, and how they compare with those without cases.

    Attributes:
        mean: Of the cosines.
        deviation: Their standard deviation, of a sample.
        difference: Mean difference to no cases.
        t: Of the paired t-test; ``None`` where it cannot be computed.
        p: Its one-tailed p: that cases make answers no better.
    """

    mean: float
    deviation: float
    difference: float
    t: float | None = None
    p: float | None = None


def measure_answers(
    data: Path | None,
    encoder: Encoder,
    model: BaseChatModel | None = None,
    *,
    only: str | None = None,
    limit: int | None = None,
) -> Report:
    """Generate answers with and without cases, and compare them with the references.

    Args:
        data: Where the sets are; see ``find_sets``. ``None`` takes the domain's own.
        encoder: Finds the cases, by the paper's best weighting, and embeds the answers.
        model: Any LangChain chat model; without one, the nearest sentences are quoted.
        only: One set.
        limit: At most so many questions of each set.

    Raises:
        InputError: There is nothing to measure on, or the model fails.
    """
    sets = find_sets(data, only, limit)
    answerer = answerer_of(model, encoder)
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    for found in sets:
        cosines = _cosines(found, encoder, answerer)
        compared = compare(cosines)
        rows += [_row(f"{found.name}: {name}", told) for name, told in compared.items()]
        none, three = compared[NO_CASES].mean, compared[THREE_FULL].mean
        figures |= {
            f"cosine_no_cases_{found.name}": none,
            f"cosine_three_full_cases_{found.name}": three,
        }
        others = compared[OTHERS].mean
        figures[f"cosine_cases_of_another_question_{found.name}"] = others
        if none > 0 and answerer.alone:
            figures[f"ratio_three_full_cases_over_no_cases_{found.name}"] = three / none
        if others > 0:
            figures[f"ratio_three_full_cases_over_anothers_{found.name}"] = three / others
        if (tested := anova([cosines[setting.name] for setting in SETTINGS])) is not None:
            figures[f"anova_f_{found.name}"], figures[f"anova_p_{found.name}"] = tested
    for name, cosine in PUBLISHED_ANSWERS.items():
        difference = cosine - PUBLISHED_ANSWERS[NO_CASES]
        rows.append({"context": f"paper: {name}", "cosine": cosine, "difference": difference})
    return Report(
        bench="legal answers",
        settings={
            "sets": {
                found.name: {"cases": len(found.cases), "questions": len(found.questions)}
                for found in sets
            },
            "encoder": encoder.name,
            "generator": answerer.name,
        },
        figures=figures,
        rows=rows,
        notes=[
            f"Answers by {answerer.name}; cosine to the reference answer by {encoder.name}. "
            "difference, t and p: to no cases, paired, one-tailed; anova: one-way, over all "
            f"contexts but {OTHERS}. paper: CBR-RAG, section 6: Mistral and AnglEBERT on ALQA.",
            *answerer.notes,
        ],
        draw=lambda axes: _draw(axes, rows),
    )


def compare(cosines: Mapping[str, Scores]) -> dict[str, Compared]:
    """Compare every setting with ``"no cases"``: means, deviations, one-tailed paired t-tests.

    Args:
        cosines: Setting to one cosine a question, the questions in one order.
    """
    from scipy.stats import ttest_rel

    none = np.asarray(cosines[NO_CASES])
    compared = {}
    for name, own in cosines.items():
        t = p = None
        difference = np.asarray(own) - none
        # Where all differ alike there is no spread to test against.
        if len(none) > 1 and np.ptp(difference) > ROUNDING:
            found = ttest_rel(own, none, alternative="greater")
            t, p = float(found.statistic), float(found.pvalue)
        spread = float(np.std(own, ddof=1)) if len(none) > 1 else 0.0
        compared[name] = Compared(float(np.mean(own)), spread, float(difference.mean()), t, p)
    return compared


def anova(groups: Sequence[Scores]) -> tuple[float, float] | None:
    """Return F and p of a one-way analysis of variance; ``None`` where no group has a spread."""
    from scipy.stats import f_oneway

    if len(groups[0]) < 2 or all(np.ptp(group) <= ROUNDING for group in groups):
        return None
    found = f_oneway(*groups)
    return float(found.statistic), float(found.pvalue)


def _cosines(found: QaSet, encoder: Encoder, answerer: Answerer) -> dict[str, Scores]:
    """Answer a set's questions in every setting; return cosines to the references."""
    questions = found.questions
    with CaseStore(qa_schema(encoder, "bench_legal")) as store:
        store.add(found.cases)
        best = [[h.case for h in store.search(q.text, max(COUNTS))] for q in questions]
    answers: dict[str, list[str]] = {}
    total = len(questions) * (len(SETTINGS) + 1)
    with progress_bar(f"Answering {found.name}", total, show=None) as advance:
        for setting in (*SETTINGS, CONTROL):
            shown = best
            if setting is CONTROL:
                shown = [best[other] for other in strangers(len(questions))[0]]
            answers[setting.name] = []
            for question, cases in zip(questions, shown, strict=True):
                texts = [context_text(case, setting.form) for case in cases[: setting.count]]
                answers[setting.name].append(answerer.answer(question.text, texts))
                advance(1)
    references = _units(encoder, [question.reference for question in found.questions])
    return {
        name: (_units(encoder, texts) * references).sum(axis=1) for name, texts in answers.items()
    }


def _units(encoder: Encoder, texts: Sequence[str]) -> Scores:
    vectors = np.asarray(encoder.embed(texts), dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Scores = vectors / np.maximum(lengths, np.finfo(np.float64).tiny)
    return units


def _row(name: str, told: Compared) -> dict[str, Any]:
    return {
        "context": name,
        "cosine": told.mean,
        "sd": told.deviation,
        "difference": told.difference,
        "t": told.t,
        "p": told.p,
    }


def _draw(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    shown = list(reversed(rows))
    axes.figure.set_size_inches(8, 0.8 + 0.28 * len(shown))
    axes.barh(
        range(len(shown)),
        [row["cosine"] for row in shown],
        xerr=[row.get("sd", 0) for row in shown],
    )
    axes.set_yticks(range(len(shown)), [row["context"] for row in shown], fontsize=8)
    axes.set(xlabel="cosine of answer and reference; bars: standard deviation")
    axes.set_title("Answers by what the prompt holds")
