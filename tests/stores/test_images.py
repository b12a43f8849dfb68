from __future__ import annotations

from pathlib import Path

import pytest

from casewright.errors import FacetError, SchemaMismatchError
from casewright.stores import Binary, Case, CaseSchema, CaseStore, Change, text_facet
from tests.stores.images import (
    COLOURS,
    histogram_facet,
    module_facet,
    picture,
    png,
    trained_module,
)
from tests.support.encoders import HashingEncoder

CAPTION = text_facet("caption", HashingEncoder(), weight=1.0)


def schema(kind: str = "histogram") -> CaseSchema:
    facet = histogram_facet() if kind == "histogram" else module_facet(trained_module())
    return CaseSchema("pictures", (facet, CAPTION))


def cases() -> list[Case]:
    """Return three cases for each colour: two with a picture, and one without."""
    image_cases = []
    for number, colour in enumerate(COLOURS):
        problem = {"picture": picture(colour, 50 + number), "caption": f"a {colour} thing"}
        image_cases.append(Case(problem, f"{colour} told"))
        image_cases.append(Case({"picture": picture(colour, 60 + number), "caption": "x"}, colour))
        image_cases.append(Case({"caption": f"a {colour} thing"}, f"{colour} unseen"))
    return image_cases


@pytest.mark.parametrize("kind", ["histogram", "trained module"])
def test_image_case_is_found_by_a_similar_image_and_returned_unchanged(
    folder: Path, kind: str
) -> None:
    image_schema = schema(kind)
    for opening in range(2):
        with CaseStore(image_schema, folder) as store:
            if not opening:
                store.add(cases())
            for number, colour in enumerate(COLOURS):
                hits = store.search({"picture": picture(colour, 99)}, 2)
                assert {hit.case.solution for hit in hits} == {f"{colour} told", colour}
                for hit in hits:
                    assert hit.facet_scores["picture"] > 0.9
                    assert hit.facet_scores["caption"] == 0
                (stored,) = [case for case in store.all() if case.solution == colour]
                image = stored.problem["picture"]
                assert image == picture(colour, 60 + number)
                assert (image.media_type, image.read()) == ("image/png", png(colour, 60 + number))


def test_image_is_described_by_its_facet_in_the_full_text(location: str) -> None:
    with CaseStore(schema(), location) as store:
        store.add(cases())
        hit = store.search({"picture": picture("green", 99), "caption": "a green thing"}, 1)[0]
        assert store.schema.full(hit.case) == (
            "picture: a green picture of 8 by 8 pixels\ncaption: a green thing\n"
            "solution: green told"
        )
        assert store.schema.support(hit.case) == "green told"


def test_absent_image_scores_zero_and_does_not_change_other_facet_scores(location: str) -> None:
    query = {"picture": picture("red", 99), "caption": "a red thing"}
    with CaseStore(schema(), location) as store:
        store.add(cases())
        by_solution = {hit.case.solution: hit for hit in store.search(query, 99)}
        with_image, without_image = by_solution["red told"], by_solution["red unseen"]
        assert without_image.facet_scores["picture"] == 0
        assert without_image.facet_scores["caption"] == with_image.facet_scores["caption"]
        assert with_image.facet_scores["caption"] == pytest.approx(1)
        assert without_image.score == pytest.approx(0.5)
        assert with_image.score == pytest.approx(0.5 + with_image.facet_scores["picture"] / 2)
        # For a query without a picture, cases with and without one have equal scores.
        scores = {h.case.solution: h.score for h in store.search({"caption": "a red thing"}, 99)}
        assert scores["red told"] == scores["red unseen"] == pytest.approx(0.5)


@pytest.mark.parametrize(("facet", "count"), [("picture", 3), ("caption", 3)])
def test_facet_of_weight_zero_changes_neither_scores_nor_redundancy(facet: str, count: int) -> None:
    weights = {"picture": 0.0, "caption": 0.0, facet: 1.0}
    query = {"picture": picture("blue", 2), "caption": "a red thing"}
    with CaseStore(schema()) as store:
        store.add([*cases(), Case(query, "mixed")])
        hits = store.search(query, 99, weights=weights)
        assert [hit.score for hit in hits] == [hit.facet_scores[facet] for hit in hits]
        assert sum(hit.score > 0.9 for hit in hits) == count
        selection = store.select(query, 4, weights=weights, lambda_d=0.5)
        part = store.schema.slices[facet]
        vectors = [hit.vector[part].astype(float) for hit in selection.hits]
        for index, pick in enumerate(selection.picks[1:], start=1):
            similarity = max(float(vectors[index] @ other) for other in vectors[:index])
            assert pick.redundancy == pytest.approx(similarity, abs=1e-6)


def test_image_case_and_query_may_give_the_image_by_path(location: str, tmp_path: Path) -> None:
    file = tmp_path / "seen.png"
    file.write_bytes(png("blue", 7))
    by_path = Binary("image/png", path=str(file))
    with CaseStore(schema(), location) as store:
        store.add(cases())
        store.add([Case({"picture": by_path}, "by path")])
        hit = store.search({"picture": by_path}, 1)[0]
        assert (hit.case.solution, hit.case.problem["picture"]) == ("by path", by_path)
        assert "a blue picture" in store.schema.full(hit.case)
        assert [h.case.id for h in store.search({"picture": picture("blue", 7)}, 1)] == [
            hit.case.id
        ]


def test_unreadable_image_raises_facet_error_or_is_skipped(location: str, tmp_path: Path) -> None:
    broken = Binary("image/png", b"no picture at all")
    missing = Binary("image/png", path=str(tmp_path / "gone.png"))
    failed = []
    with CaseStore(schema(), location) as store:
        damaged = [Case({"picture": broken}, 1), Case({"picture": missing}, 2)]
        for case in damaged:
            with pytest.raises(FacetError, match="'picture'"):
                store.add([case])
        store.add([*cases(), *damaged], on_error=lambda case, error: failed.append(case.solution))
        assert (failed, store.count()) == ([1, 2], len(cases()))


def test_retain_recognises_the_same_and_a_similar_image_case(location: str) -> None:
    with CaseStore(schema(), location) as store:
        problem = {"picture": picture("red"), "caption": "a red thing"}
        first = store.retain(Case(problem, "tomato"))
        assert store.retain(Case(problem, "tomato")).outcome == "unchanged"
        similar = {"picture": picture("red", 5), "caption": "A red thing!"}
        assert store.retain(Case(similar, "tomato")).id == first.id
        assert store.retain(Case(similar, "apple")).outcome == "added"
        store.update({first.id: Change(quality=0.9)})
        assert store.get(first.id)[0].problem == problem


def test_store_of_another_image_encoder_is_refused(folder: Path) -> None:
    with CaseStore(schema(), folder) as store:
        store.add(cases())
    with pytest.raises(SchemaMismatchError, match="histogram-4"):
        CaseStore(schema("trained module"), folder)


def test_text_query_scores_zero_in_the_image_facet(location: str) -> None:
    with CaseStore(schema(), location) as store:
        store.add(cases())
        hits = store.search("a green thing", 2)
        assert {hit.case.solution for hit in hits} == {"green told", "green unseen"}
        assert [hit.facet_scores["picture"] for hit in hits] == [0, 0]
        (document, *_) = store.as_retriever(k=1).invoke("a green thing")
        assert document.id in {hit.case.id for hit in hits}
