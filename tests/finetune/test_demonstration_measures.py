"""RAGSys's measures, on numbers calculated by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.demonstrations import measure

LOG = math.log


def test_measures_of_a_small_question_match_a_calculation_by_hand() -> None:
    # p(a) 0.4 (best) and 0.1, p(ā) 0.2 and 0.05; without demonstrations 0.1, 0.1, 0.4, 0.05.
    measures = measure(
        [LOG(0.4), LOG(0.1)], [LOG(0.2), LOG(0.05)], [LOG(0.1), LOG(0.1)], [LOG(0.4), LOG(0.05)]
    )
    # The best answer is likelier than both wrong ones; the other right answer, than one of them.
    assert measures.mc1 == 1.0
    assert measures.share_above == 0.5
    assert measures.mass_ratio == pytest.approx(0.5 / 0.25)
    assert measures.mass == pytest.approx(0.5 / 0.75)
    # log 4 − log ½, log 4 − 0; 0 − log ½, 0 − 0.
    expected = [[LOG(8), LOG(4)], [LOG(2), 0.0]]
    assert measures.margins.tolist() == [pytest.approx(row) for row in expected]
    assert measures.margin == pytest.approx(LOG(64) / 4)
    # σ(log x) = x / (1 + x).
    assert measures.preference == pytest.approx(
        (LOG(8 / 9) + LOG(4 / 5) + LOG(2 / 3) + LOG(1 / 2)) / 4
    )


def test_mc1_uses_the_first_right_answer_and_a_tie_does_not_count() -> None:
    scores = ([LOG(0.3), LOG(0.5)], [LOG(0.3)], [0.0, 0.0], [0.0])
    assert measure(*scores).mc1 == 0.0
    assert measure(*scores).share_above == 0.5


def test_margin_without_wrong_answers_is_the_gain_of_the_right_answer() -> None:
    stats = measure([LOG(0.2), LOG(0.3)], [], [LOG(0.1), LOG(0.6)], [])
    assert stats.margins.tolist() == [[pytest.approx(LOG(2))], [pytest.approx(-LOG(2))]]
    assert stats.preferences.tolist() == [[pytest.approx(LOG(2 / 3))], [pytest.approx(LOG(1 / 3))]]
    assert (stats.mc1, stats.share_above, stats.mass_ratio, stats.mass) == (None,) * 4


def test_measures_compare_probabilities_too_small_for_a_float() -> None:
    large = measure([-5000.0], [-6000.0], [-100.0], [-200.0])
    assert large.mass == 1.0
    assert large.mass_ratio == math.inf
    assert large.margin == -900 + 2 * 1000 - 200
    small = measure([-6000.0], [-5000.0], [-100.0], [-100.0])
    assert small.mass == 0.0
    assert small.mass_ratio == 0.0
    # log σ(−1000) is −1000 and not minus infinity.
    assert small.preference == -1000.0


LOGPROBS = st.floats(-900, 0)


@given(st.lists(LOGPROBS, min_size=1, max_size=4), st.lists(LOGPROBS, min_size=1, max_size=4))
def test_margin_is_zero_if_demonstrations_change_no_probability(
    right: list[float], wrong: list[float]
) -> None:
    measures = measure(right, wrong, right, wrong)
    assert measures.margin == 0.0
    assert 0 <= measures.mass <= 1
    assert measures.preference == pytest.approx(-LOG(2))


@given(st.lists(LOGPROBS, min_size=1, max_size=4), st.lists(LOGPROBS, min_size=1, max_size=4))
def test_preference_is_at_most_zero_and_grows_with_its_margin(
    right: list[float], wrong: list[float]
) -> None:
    measures = measure(right, wrong, [0.0] * len(right), [0.0] * len(wrong))
    assert (measures.preferences <= 0).all()
    pairs = sorted(zip(measures.margins.ravel(), measures.preferences.ravel(), strict=True))
    assert [p for _, p in pairs] == sorted(p for _, p in pairs)


@pytest.mark.parametrize(
    "scores",
    [
        ([], [-1.0], [], [-1.0]),
        ([-1.0], [-1.0], [-1.0, -2.0], [-1.0]),
        ([-1.0], [-1.0], [-1.0], []),
        ([math.nan], [], [-1.0], []),
        ([-math.inf], [], [-1.0], []),
    ],
)
def test_measure_refuses_missing_unequal_or_infinite_scores(
    scores: tuple[list[float], list[float], list[float], list[float]],
) -> None:
    with pytest.raises(InputError):
        measure(*scores)
