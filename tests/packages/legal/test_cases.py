from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores import CaseStore
from casewright_legal.cases import QA_COMPONENTS, context_text, qa_case, qa_schema
from tests.support.encoders import HashingEncoder

BOND = qa_case(
    "Why was the bond kept?",
    "The carpet was burnt through.",
    ["Rourke", "Castellan Estates Pty Ltd"],
    "For the burnt carpet.",
    key="bond",
)
COURIER = qa_case(
    "Was the courier an employee?",
    "He wore the uniform, and could refuse no parcel.",
    ["Lindholm", "Corrigan Freight Pty Ltd"],
    "Yes.",
    key="courier",
)
WILL = qa_case(
    "Is a note a will?", "The note was never signed.", ["Tobias Wren"], "It is.", key="will"
)


class CuedEncoder(HashingEncoder):
    cue = "Represent this sentence: "


@pytest.fixture
def store() -> CaseStore:
    case_store = CaseStore(qa_schema(HashingEncoder(256)))
    case_store.add([BOND, COURIER, WILL])
    return case_store


def test_qa_case_has_components_solution_metadata_and_quality() -> None:
    assert tuple(BOND.problem) == QA_COMPONENTS
    assert BOND.problem["entities"] == ["Rourke", "Castellan Estates Pty Ltd"]
    assert BOND.solution == "For the burnt carpet."
    assert BOND.metadata == {"key": "bond"}
    assert qa_case("q", "s", [], "a", quality=0.5).quality == 0.5


def test_case_without_entities_lacks_the_component_and_scores_0_by_it() -> None:
    bare = qa_case("Why was the bond kept?", "The carpet was burnt.", [], "It was.")
    assert "entities" not in bare.problem
    store = CaseStore(qa_schema(HashingEncoder(256)))
    store.add([bare])
    hit = store.search("Why was the bond kept?", 1)[0]
    assert hit.facet_scores["entities"] == 0
    assert hit.facet_scores["question"] == pytest.approx(1)


def test_text_query_is_used_for_all_three_components() -> None:
    assert qa_schema(HashingEncoder()).query("bond") == dict.fromkeys(QA_COMPONENTS, "bond")


def test_default_weights_are_the_hybrid_weights_of_the_paper() -> None:
    assert qa_schema(HashingEncoder()).weights().tolist() == pytest.approx([0.25, 0.40, 0.35])
    equal = qa_schema(HashingEncoder(), weights=(1, 1, 2))
    assert equal.weights().tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize(
    ("facet", "query", "first"),
    [
        ("question", "Is a note a will?", "will"),
        ("support", "carpet burnt through", "bond"),
        ("entities", "Corrigan Freight Pty Ltd", "courier"),
    ],
)
def test_weight_on_one_facet_ranks_by_that_facet_alone(
    store: CaseStore, facet: str, query: str, first: str
) -> None:
    hits = store.search(query, 3, weights={facet: 1.0})
    assert hits[0].case.metadata["key"] == first
    for hit in hits:
        assert hit.relevance == pytest.approx(hit.facet_scores[facet], abs=1e-6)


def test_hybrid_score_is_the_weighted_sum_of_the_three_cosines(store: CaseStore) -> None:
    for hit in store.search("Why was the bond of Rourke kept?", 3):
        parts = hit.facet_scores
        weighted_sum = 0.25 * parts["question"] + 0.40 * parts["support"] + 0.35 * parts["entities"]
        assert hit.score == pytest.approx(weighted_sum, abs=1e-5)


def test_cue_precedes_queries_of_inter_facets_but_no_case() -> None:
    encoder = CuedEncoder()
    store = CaseStore(qa_schema(encoder))
    store.add([BOND])
    cued_texts = [text for call in encoder.calls for text in call if text.startswith(encoder.cue)]
    assert cued_texts == []
    encoder.calls.clear()
    store.search("Why was the bond kept?", 1)
    assert [text for call in encoder.calls for text in call] == [
        "Why was the bond kept?",
        "Represent this sentence: Why was the bond kept?",
        "Represent this sentence: Why was the bond kept?",
    ]


def test_entities_are_embedded_as_their_names_and_not_as_json() -> None:
    encoder = HashingEncoder()
    CaseStore(qa_schema(encoder)).add([BOND])
    texts = [text for call in encoder.calls for text in call]
    assert "Rourke, Castellan Estates Pty Ltd" in texts


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("support", "The carpet was burnt through."),
        (
            "full",
            "question: Why was the bond kept?\nsupport: The carpet was burnt through.\n"
            "entities: Rourke, Castellan Estates Pty Ltd\nanswer: For the burnt carpet.",
        ),
        (
            "qsa",
            "question: Why was the bond kept?\nsupport: The carpet was burnt through.\n"
            "answer: For the burnt carpet.",
        ),
    ],
)
def test_context_text_has_the_three_formats_of_the_paper(form: str, text: str) -> None:
    assert context_text(BOND, form) == text
    schema = qa_schema(HashingEncoder(), context=form)
    assert schema.support(BOND) == text
    assert schema.full(BOND) == context_text(BOND, "full")


def test_unknown_context_format_is_refused() -> None:
    with pytest.raises(InputError, match=r"'whole'.*full, qsa, support"):
        qa_schema(HashingEncoder(), context="whole")
    with pytest.raises(InputError, match="no context form ''"):
        context_text(BOND, "")


def test_full_format_omits_missing_entities() -> None:
    bare = qa_case("q?", "s", [], "a")
    assert context_text(bare, "full") == "question: q?\nsupport: s\nanswer: a"


def test_context_texts_are_equal_after_a_case_was_stored(store: CaseStore) -> None:
    stored = store.search("bond", 1, weights={"question": 1.0})[0].case
    for form in ("support", "full", "qsa"):
        assert context_text(stored, form) == context_text(BOND, form)


class Constant:
    """An encoder with the same vector for every text."""

    name, dimension = "constant", 4

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 4), dtype=np.float32)


def test_schema_accepts_a_custom_encoder() -> None:
    store = CaseStore(qa_schema(Constant(), "small"))
    store.add([BOND])
    assert store.search("?", 1)[0].score == pytest.approx(1)
