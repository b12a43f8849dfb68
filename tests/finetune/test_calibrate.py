"""Calibration of a selector: its best settings, the cases that it shows, and resumption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.finetune.demonstrations import (
    AnswerPrompt,
    Demonstration,
    JudgedQuestion,
    ModelScorer,
    RecordedScorer,
    Sweep,
    calibrate,
    measure_quality,
)
from casewright.finetune.demonstrations.calibrate import prepare, run
from casewright.finetune.demonstrations.cases_file import demonstration_schema
from casewright.finetune.demonstrations.judged import CaseReader
from casewright.finetune.demonstrations.measures import select_by
from casewright.stores import Case, CaseSchema, CaseStore, MarginalSelector, text_facet
from tests.finetune.scoring import CountingScorer, answer_logprob, following_model
from tests.support.encoders import HashingEncoder
from tests.support.tiny_mistral import tiny_mistral

#: Values of λ_d, coarse enough that the selections differ.
GRID = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
K = 4


class PlacedEncoder:
    """An encoder whose vectors depend on the last two words of a text: a kind and a number.

    ``red`` texts are nearest to a question and to each other. ``blue`` texts are a little farther.
    Each ``far`` text is far from all others.
    """

    name = "placed"
    dimension = 16

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension)."""
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> NDArray[np.float32]:
        kind, number = text.split()[-2:]
        vector = np.zeros(self.dimension)
        vector[0] = {"asked": 1.0, "red": 0.95, "blue": 0.85, "far": 0.3}[kind]
        # A unit vector needs a second component.
        axis = {"asked": 1, "red": 2, "blue": 3}.get(kind, 4 + int(number) % 11)
        vector[axis] = np.sqrt(max(0.0, 1 - vector[0] ** 2))
        rng = np.random.default_rng(int(number))
        vector += 0.01 * rng.standard_normal(self.dimension)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def placed_store() -> CaseStore:
    """Return a store whose nearest cases all contain the same half of the right answer."""
    schema = CaseSchema("placed", (text_facet("question", PlacedEncoder(), inter=False),))
    store = CaseStore(schema, ":memory:")
    answers = {"red": "zzzzzz", "blue": "vvvvvv", "far": "qqqqqq"}
    store.add(
        [
            Case({"question": f"some {kind} {number}"}, answer, metadata={"group": kind})
            for kind, answer in answers.items()
            for number in range(8)
        ]
    )
    return store


QUESTIONS = [
    JudgedQuestion(f"what asked {number}", ("zzz vvv",), ("qqq jjj",)) for number in range(5)
]


def enumerate_margins() -> dict[float, float]:
    """Return the mean margin per λ_d, by Algorithm 1 as published and token by token."""
    model, encoder, store = following_model(), PlacedEncoder(), placed_store()
    cases = store.all()
    rows = encoder.embed([case.problem["question"] for case in cases]).astype(np.float64)
    mean_margins = {}
    for lambda_d in GRID:
        margins = []
        for question in QUESTIONS:
            similarities = rows @ encoder.embed([question.question])[0].astype(np.float64)
            selected: list[int] = []
            while len(selected) < K:
                value = lambda_d * similarities
                if selected:
                    value = value - (1 - lambda_d) * (rows @ rows[selected].T).max(axis=1)
                value[selected] = -np.inf
                selected.append(int(value.argmax()) if selected else int(similarities.argmax()))
            demonstrations = tuple(
                Demonstration(cases[p].problem["question"], str(cases[p].solution))
                for p in reversed(selected)
            )
            right, wrong = question.right[0], question.wrong[0]
            with_cases = AnswerPrompt(question.question, (right, wrong), demonstrations)
            without_cases = AnswerPrompt(question.question, (right, wrong))
            margins.append(
                answer_logprob(model, with_cases, right)
                - answer_logprob(model, without_cases, right)
                - answer_logprob(model, with_cases, wrong)
                + answer_logprob(model, without_cases, wrong)
            )
        mean_margins[lambda_d] = float(np.mean(margins))
    return mean_margins


def test_calibration_finds_the_best_lambda_d_of_an_enumeration() -> None:
    expected = enumerate_margins()
    best = max(expected, key=lambda lambda_d: expected[lambda_d])
    assert 0 < best < 1, "the best λ_d is at an end of the grid"
    calibration = calibrate(
        placed_store(), ModelScorer(following_model()), QUESTIONS, Sweep(K, lambdas_d=GRID)
    )
    assert calibration.choice.lambda_d == best
    benefits = {row.lambda_d: row.benefit for row in calibration.rows}
    assert benefits == pytest.approx(expected, abs=0.02)
    assert calibration.selector == MarginalSelector(best, 1.0)
    # Demonstrations become more alike as λ_d grows.
    cosines = [row.cosine or 0.0 for row in calibration.rows]
    assert cosines == sorted(cosines)
    assert calibration.held_out["chosen"][0] > calibration.held_out["nearest"][0]
    assert calibration.held_out["chosen"][0] > calibration.held_out["random"][0]


def toy_store(count: int = 12) -> CaseStore:
    """Return a store with two cases per question and a wrong answer in each case."""
    store = CaseStore(demonstration_schema(HashingEncoder(64)), ":memory:")
    store.add(
        [
            Case(
                {"question": f"what is number {number}"},
                f"it is {number}{suffix}",
                metadata={"group": number, "wrong": [f"it is {number + 1}"]},
            )
            for number in range(count)
            for suffix in ("", ", as all know")
        ]
    )
    return store


def test_calibration_shows_no_question_a_case_of_its_group() -> None:
    scorer = CountingScorer()
    calibrate(toy_store(), scorer, sweep=Sweep(6, lambdas_d=(0.0, 1.0)))
    assert any(prompt.demonstrations for prompt in scorer.prompts)
    for prompt in scorer.prompts:
        assert prompt.question not in {example.question for example in prompt.demonstrations}
        assert len(prompt.answers) == 3


def test_calibration_shows_the_cases_that_the_selector_of_a_planner_selects() -> None:
    store, scorer = toy_store(), CountingScorer()
    calibrate(store, scorer, sweep=Sweep(3, lambdas_d=(0.3,)))
    case_reader = CaseReader("question")
    questions = case_reader.questions(store.all())
    selector = MarginalSelector(0.3, 1.0)
    for question in questions:
        hits = selector.select(store, question.question, 3, question.where).hits
        expected = tuple(case_reader.demonstration(hit.case) for hit in reversed(hits))
        assert any(
            prompt.question == question.question and prompt.demonstrations == expected
            for prompt in scorer.prompts
        )


@pytest.mark.parametrize("limit", [0, 1, 5, 17, 30])
def test_stopped_calibration_resumes_and_scores_nothing_twice(tmp_path: Path, limit: int) -> None:
    file, sweep = tmp_path / "scores.sqlite", Sweep(3, lambdas_d=(0.0, 0.5))
    first = CountingScorer(fails_after=limit)
    recorded = RecordedScorer(first, file)
    with pytest.raises(KeyboardInterrupt):
        calibrate(toy_store(), recorded, sweep=sweep)
    recorded.close()
    second = CountingScorer()
    recorded = RecordedScorer(second, file)
    resumed = calibrate(toy_store(), recorded, sweep=sweep)
    recorded.close()
    prompts = [*first.prompts, *second.prompts]
    assert len(first.prompts) == limit
    assert len(prompts) == len(set(prompts))
    uninterrupted = CountingScorer()
    expected = calibrate(toy_store(), uninterrupted, sweep=sweep)
    assert set(prompts) == set(uninterrupted.prompts)
    assert (resumed.rows, resumed.choice) == (expected.rows, expected.choice)
    third = CountingScorer()
    recorded = RecordedScorer(third, file)
    assert calibrate(toy_store(), recorded, sweep=sweep).rows == resumed.rows
    assert third.prompts == []


def test_predicted_cost_of_a_calibration_equals_what_is_scored(tmp_path: Path) -> None:
    scorer = CountingScorer()
    recorded = RecordedScorer(scorer, tmp_path / "scores.sqlite")
    prepared = prepare(toy_store(), recorded, sweep=Sweep(3, lambdas_d=(0.0, 0.5)))
    timed = len(scorer.prompts)
    assert 0 < timed < prepared.cost.questions
    assert prepared.cost.seconds is not None
    run(prepared, recorded)
    assert len(scorer.prompts) == prepared.cost.questions
    assert sum(len(prompt.answers) for prompt in scorer.prompts) == prepared.cost.answers
    assert sum(len(a) for prompt in scorer.prompts for a in prompt.answers) == prepared.cost.tokens
    cost = prepare(toy_store(), recorded, sweep=Sweep(3, lambdas_d=(0.0, 0.5))).cost
    assert (cost.questions, cost.answers, cost.tokens) == (0, 0, 0)


def test_quality_is_measured_once_and_weighed_by_lambda_b(tmp_path: Path) -> None:
    store, scorer = toy_store(), CountingScorer()
    assert measure_quality(store, scorer) == 24
    for case in store.all():
        assert case.quality == pytest.approx(max(-20, -len(str(case.solution))))
        assert case.quality_by == "counting 1, log p(answer | question)"
    assert measure_quality(store, scorer) == 0
    assert sum(len(prompt.answers) for prompt in scorer.prompts) == 24
    case_reader = CaseReader("question")
    questions = case_reader.questions(store.all())[:1]
    prompt = select_by(store, MarginalSelector(1.0, 0.0), questions, 4, case_reader)[0]
    by_quality = sorted(store.all(), key=lambda case: -(case.quality or 0))
    candidates = [case for case in by_quality if case.metadata["group"] != 0]
    lengths = sorted(len(demonstration.answer) for demonstration in prompt.demonstrations)
    assert lengths == sorted(len(str(case.solution)) for case in candidates[:4])


def test_quality_is_the_mean_log_probability_of_the_answer_given_the_question() -> None:
    store, model = toy_store(), tiny_mistral(1, initializer_range=0.4)
    measure_quality(store, ModelScorer(model))
    for case in store.all():
        prompt = AnswerPrompt(str(case.problem["question"]), (str(case.solution),))
        ((likelihood,),) = dict(ModelScorer(model).score([prompt])).values()
        expected = answer_logprob(model, prompt, str(case.solution)) / likelihood.tokens
        assert case.quality == pytest.approx(expected, abs=1e-3)


def test_lambda_b_above_1_selects_the_least_likely_answers() -> None:
    store = toy_store()
    measure_quality(store, CountingScorer())
    question = CaseReader("question").questions(store.all())[0]
    candidates = [case for case in store.all() if question.may_see(case)]
    longest = sorted((len(str(case.solution)) for case in candidates), reverse=True)[:4]
    reverse = MarginalSelector(1.0, 2.0)
    hits = reverse.select(store, question.question, 4, question.where).hits
    assert sum(len(str(hit.case.solution)) for hit in hits) == sum(longest)


def test_measure_quality_refuses_a_store_with_another_quality_range() -> None:
    with pytest.raises(InputError, match=r"quality from 0 to 1.*quality_range=\(-20"):
        measure_quality(placed_store(), CountingScorer())


@pytest.mark.parametrize(
    ("questions", "sweep", "message"),
    [
        (QUESTIONS[:1], {}, "at least two"),
        ([*QUESTIONS, JudgedQuestion("x asked 1", ("a",))], {}, "cannot be compared"),
        ([JudgedQuestion(f"x asked {n}", ("a",)) for n in range(3)], {"measure": "mc1"}, "wrong"),
    ],
    ids=["one question", "mixed", "no wrong answers"],
)
def test_calibration_refuses_questions_that_cannot_be_compared(
    questions: list[JudgedQuestion], sweep: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(placed_store(), CountingScorer(), questions, Sweep(**sweep))


def test_calibration_refuses_cases_without_a_group() -> None:
    store = CaseStore(demonstration_schema(HashingEncoder(16)), ":memory:")
    store.add([Case({"question": "a"}, "b")])
    with pytest.raises(InputError, match=r"None as 'group'.*CaseStore\.update"):
        calibrate(store, CountingScorer())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lambdas_d": (0.5, 1.5)}, "1.5"),
        ({"lambdas_b": (-0.1,)}, "-0.1"),
        ({"lambdas_b": (2.1,)}, "2.1"),
        ({"lambdas_d": ()}, "at least one value"),
        ({"k": 0}, "at least 1"),
        ({"measure": "joy"}, "margin, dpo, mass, mc1"),
    ],
    ids=str,
)
def test_sweep_with_invalid_settings_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sweep(**settings)


def test_file_that_is_no_score_database_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "scores.sqlite"
    file.write_text("no database, but somebody's notes " * 100, encoding="utf-8")
    with pytest.raises(InputError, match="cannot be read or written"):
        RecordedScorer(CountingScorer(), file)
    assert file.read_text(encoding="utf-8").startswith("no database")
