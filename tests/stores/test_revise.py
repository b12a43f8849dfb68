from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from casewright.errors import FacetError, InputError
from casewright.stores import Case, CaseStore, revise
from tests.stores.helpers import note, note_schema
from tests.support.encoders import BrokenEncoder, HashingEncoder


def check_unit(case: Case) -> str | None:
    return None if str(case.solution).endswith(" m") else f"{case.solution} has no unit"


METRE_SCHEMA = note_schema(verify=check_unit)


def test_refused_case_is_neither_encoded_nor_written(location: str) -> None:
    encoder = HashingEncoder()
    with CaseStore(note_schema(encoder=encoder, verify=check_unit), location) as store:
        refused = store.retain(note("how tall", "12"))
        assert (refused.outcome, refused.reason) == ("refused", "12 has no unit")
        assert (encoder.calls, store.count(), store.engine.layout("notes")) == ([], 0, None)
        assert store.retain(note("how tall", "12 m")).outcome == "added"
        assert store.retain(note("how tall", "13")).outcome == "refused"
        assert [case.solution for case in store.all()] == ["12 m"]


def test_verifier_sees_the_case_as_it_is_stored() -> None:
    cases: list[Case] = []
    with CaseStore(note_schema(verify=cases.append), tenant="acme") as store:
        store.retain(note("how tall", ("12 m",), quality=7.0))
        assert cases == store.all()
        assert (cases[0].quality, cases[0].solution) == (1.0, ["12 m"])


@pytest.mark.parametrize(
    ("verdict", "reason"), [(True, "True"), (False, "False"), ("", "''"), (0, "0"), (["x"], "x")]
)
def test_retain_refuses_a_case_if_the_verifier_returns_another_type_or_empty_text(
    verdict: Any, reason: str
) -> None:
    with CaseStore(note_schema(verify=lambda case: verdict)) as store:
        refused = store.retain(note("how tall", "12 m"))
        assert refused.outcome == "refused"
        assert reason in refused.reason
        assert store.count() == 0


def test_retain_refuses_a_case_with_the_error_if_the_verifier_raises(location: str) -> None:
    def verify(case: Case) -> str | None:
        raise RuntimeError(f"no judge for {case.solution}")

    with CaseStore(note_schema(verify=verify), location) as store:
        refused = store.retain(note("how tall", "12 m"))
        assert refused.outcome == "refused"
        assert "RuntimeError: no judge for 12 m" in refused.reason
        assert store.count() == 0


def test_revise_does_not_repair_a_case_that_passes() -> None:
    case = note("how tall", "12 m")
    revised = revise(case, METRE_SCHEMA, lambda case, reason: pytest.fail(reason))
    assert (revised.case, revised.passed, revised.reasons) == (case, True, ())
    assert revise(note("q"), note_schema()).passed


def test_revise_gives_repair_the_reason_of_each_failed_attempt() -> None:
    attempts: list[tuple[Any, str]] = []

    def repair(case: Case, reason: str) -> Case:
        attempts.append((case.solution, reason))
        return replace(case, solution={"12": "12 cm", "12 cm": "0.12 m"}[case.solution])

    revised = revise(note("how tall", "12"), METRE_SCHEMA, repair, attempts=3)
    assert (revised.case.solution, revised.passed) == ("0.12 m", True)
    assert attempts == [("12", "12 has no unit"), ("12 cm", "12 cm has no unit")]
    assert list(revised.reasons) == [reason for _, reason in attempts]


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_revise_stops_after_the_given_number_of_attempts(attempts: int) -> None:
    verifications, repairs = [0], [0]

    def verify(case: Case) -> str:
        verifications[0] += 1
        return f"attempt {verifications[0]}"

    def repair(case: Case, reason: str) -> Case:
        repairs[0] += 1
        return replace(case, solution=repairs[0])

    revised = revise(note("q", 0), note_schema(verify=verify), repair, attempts=attempts)
    assert not revised.passed
    assert (verifications[0], repairs[0]) == (attempts, attempts - 1)
    assert revised.case.solution == attempts - 1
    assert revised.reasons == tuple(f"attempt {i + 1}" for i in range(attempts))


def test_revise_stops_if_repair_returns_none() -> None:
    revised = revise(note("q", "12"), METRE_SCHEMA, lambda case, reason: None, attempts=9)
    assert not revised.passed
    assert (revised.case.solution, revised.reasons) == ("12", ("12 has no unit",))
    assert revise(note("q", "12"), METRE_SCHEMA).reasons == ("12 has no unit",)


@pytest.mark.parametrize("attempts", [0, -1])
def test_revise_refuses_attempts_below_one(attempts: int) -> None:
    with pytest.raises(InputError, match=f"attempts={attempts}"):
        revise(note("q", "12 m"), METRE_SCHEMA, attempts=attempts)


def test_revised_case_is_retained(location: str) -> None:
    def repair(case: Case, reason: str) -> Case:
        return replace(case, solution=f"{case.solution} m")

    with CaseStore(METRE_SCHEMA, location) as store:
        revised = revise(note("how tall", "12"), METRE_SCHEMA, repair)
        assert store.retain(revised.case).outcome == "added"
        assert [case.solution for case in store.all()] == ["12 m"]


@pytest.mark.parametrize("outcome", ["added", "unchanged", "updated", "duplicate"])
def test_retain_encodes_the_problem_once(location: str, outcome: str) -> None:
    encoder = HashingEncoder()
    with CaseStore(note_schema(encoder=encoder), location) as store:
        store.add([Case({"question": "how tall", "support": "how tall"}, "12 m")])
        encoder.calls.clear()
        problem = {"question": "how tall", "support": "how tall"}
        case = {
            "added": Case({"question": "how deep", "support": "the lake"}, "9 m"),
            "unchanged": Case(problem, "12 m"),
            "updated": Case(problem, "12 m", quality=0.5),
            "duplicate": Case({"question": "How tall?", "support": "How tall?"}, "12 m"),
        }[outcome]
        assert store.retain(case).outcome == outcome
        assert encoder.calls == [[text] for text in case.problem.values()]


def test_provenance_metadata_is_stored_and_returned(folder: Any) -> None:
    provenance = {"run": "r1", "question": "how tall?", "evidence": ["a", "b"], "at": 3}
    case = note("how tall", "12 m", metadata={"provenance": provenance}, quality_by="judge-1")
    with CaseStore(note_schema(), folder) as store:
        store.retain(case)
        assert store.search("how tall", 1)[0].case.metadata["provenance"] == provenance
    with CaseStore(note_schema(), folder) as store:
        (stored,) = store.all()
        assert (stored.metadata, stored.quality_by) == ({"provenance": provenance}, "judge-1")


def test_retain_distinguishes_true_and_one_in_solution_and_result(store: CaseStore) -> None:
    problem = {"question": "is it open", "support": "is it open"}
    near = {"question": "Is it open?", "support": "Is it open?"}
    assert store.retain(Case(problem, True, result=1)).outcome == "added"
    assert store.retain(Case(near, 1)).outcome == "added"
    assert store.retain(Case(near, True)).outcome == "duplicate"
    assert store.retain(Case(problem, True, result=True)).outcome == "updated"
    assert store.retain(Case(problem, True, result=True)).outcome == "unchanged"


def test_retain_of_a_case_that_cannot_be_embedded_raises_facet_error(location: str) -> None:
    with CaseStore(note_schema(encoder=BrokenEncoder()), location) as store:
        for count in (0, 1):
            with pytest.raises(FacetError, match="NaN") as exc_info:
                store.retain(note("a broken one", 1))
            assert exc_info.value.facet == "question"
            assert store.count() == count
            store.retain(note("a whole one", 2))


@pytest.mark.parametrize("cases", ["same", "near"])
def test_threads_that_retain_the_same_or_near_cases_add_only_one(location: str, cases: str) -> None:
    marks = ["", "?", "!", ".", "?!", "...", " ", "??"] if cases == "near" else [""] * 8
    start = threading.Barrier(len(marks))
    with CaseStore(note_schema(), location) as store:

        def retain(mark: str) -> Any:
            start.wait()
            text = f"how tall{mark}"
            return store.retain(Case({"question": text, "support": text}, "12 m"))

        with ThreadPoolExecutor(len(marks)) as pool:
            results = list(pool.map(retain, marks))
        later_outcome = "unchanged" if cases == "same" else "duplicate"
        assert sorted(result.outcome for result in results) == ["added", *[later_outcome] * 7]
        assert [case.id for case in store.all()] == list({result.id for result in results})


def test_revise_returns_the_error_of_a_repair_that_raises() -> None:
    def repair(case: Case, reason: str) -> Case:
        raise TimeoutError("no answer")

    schema = note_schema(verify=lambda case: "it is wrong")
    revised = revise(note("how tall", "12 m"), schema, repair, attempts=3)
    assert not revised.passed
    assert revised.reasons == ("it is wrong", "It could not be mended: TimeoutError: no answer")
