"""Tests of the documents domain with its real encoder and planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.domains.documents.domain import looping
from casewright.domains.store_opening import open_waiting
from casewright.errors import InputError
from casewright.graph import Answer, build_graph
from casewright.planner import CasePlanner
from casewright.planner.request import PlanRequest
from casewright.stores import CaseStore, Hit, default_encoder, document_schema
from casewright.stores.documents.ingest import ingest
from casewright.stores.passages.search import PassageSearch
from casewright.tools import Search
from tests.domains.helpers import call
from tests.stores.document_files import pdf, write

DOMAIN = find_domain("documents")
SCHEMA = document_schema(default_encoder())
FILES = {
    "coffee.md": (
        "# Coffee machine\n\n## Descaling\n\nDescale the machine every three months with citric "
        "acid.\n\n## Warranty\n\nThe warranty lasts two years from the day of purchase.\n"
    ),
    "report.pdf": pdf(["Staff grew to 140 people.", "The harbour office moved to Oslo in May."]),
    "pump.py": (
        "class Pump:\n    def prime(self, seconds):\n"
        '        """Fill the pump with water before its first use."""\n        self.run(seconds)\n'
    ),
    "page.html": "<title>Bikes</title><h1>Brakes</h1><p>Replace brake pads thinner than 1 mm.</p>",
}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    with open_waiting(SCHEMA, folder / "store") as store:
        assert ingest(store, write(folder / "manuals", FILES)).files == len(FILES)
    return folder / "store"


@pytest.fixture(scope="module")
def opened(location: Path) -> Iterator[OpenDomain]:
    domain = DOMAIN.open(location, default_encoder(), False)
    yield domain
    domain.close()


@pytest.mark.parametrize(
    ("question", "source", "text"),
    [
        (
            "How often must I descale the coffee machine?",
            "manuals/coffee.md, lines 3-5 (Coffee machine › Descaling)",
            "every three months",
        ),
        ("Where did the harbour office move?", "manuals/report.pdf, page 2", "Oslo"),
        ("How is the pump filled with water?", "manuals/pump.py, lines 1-4 (Pump.prime)", "prime"),
        ("When are brake pads to be replaced?", "manuals/page.html (Brakes)", "1 mm"),
    ],
)
def test_passage_is_found_with_its_file_and_its_location_in_it(
    opened: OpenDomain, question: str, source: str, text: str
) -> None:
    rows = call(opened, "document_search", question)
    assert rows[0]["source"] == source
    assert text in rows[0]["evidence"]
    assert all(set(row) == {"evidence", "source"} for row in rows)


def test_rare_name_finds_its_passage_among_many_nearer_passages(tmp_path: Path) -> None:
    files = {
        f"{n}.md": f"# Option {n}\n\nThis option sets the colour of part {n}." for n in range(40)
    }
    harbour = "Ships wait in the harbour until the pilot is on board and the tide has turned. " * 8
    files["cache.md"] = f"# Harbour\n\n{harbour}QZ17 sets the option of haste. {harbour}"
    with open_waiting(SCHEMA, tmp_path / "store") as store:
        ingest(store, write(tmp_path / "docs", files))
        near = store.search("Which option does QZ17 set?", 5)
        assert "cache.md" not in {hit.case.metadata["source"] for hit in near}
    domain = DOMAIN.open(tmp_path / "store", default_encoder(), False)
    try:
        rows = call(domain, "document_search", "Which option does QZ17 set?")
    finally:
        domain.close()
    assert "docs/cache.md" in rows[0]["source"]


def test_passage_with_the_answer_in_one_sentence_precedes_passages_on_its_subject(
    tmp_path: Path,
) -> None:
    files = {
        f"{part}.md": f"# Connections\n\nConnections of the {part} are counted and logged. " * 4
        for part in ("server", "client", "proxy", "database")
    }
    filler = "The pool is created at the start, and its size is set by the owner of the mill. " * 5
    unused = "A session that nobody has used overnight is thrown away after eight hours."
    files["pool.md"] = f"# Pool\n\n{filler}{unused} {filler}"
    with open_waiting(SCHEMA, tmp_path / "store") as store:
        ingest(store, write(tmp_path / "docs", files))
        question = "When are connections that idle through the night dropped?"
        assert store.search(question, 1)[0].case.metadata["source"] != "pool.md"
        best = PassageSearch(store).best(question)[0]
    assert best.case.metadata["source"] == "pool.md"
    assert "answer" in best.facet_scores


def test_passage_beside_the_best_candidate_is_read_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    firing = "The Zorba kiln is fired with beech wood. After its firing, let the Zorba kiln rest. "
    pots = "Pots are taken out one after the other with long gloves. "
    text = f"{firing * 12}Forty minutes are enough, then the door is opened. {pots * 20}"
    question = "How long must the Zorba kiln rest after its firing?"
    monkeypatch.setattr("casewright.stores.passages.search.MAX_READ", 1)
    with open_waiting(SCHEMA, tmp_path / "store") as store:
        ingest(store, write(tmp_path / "docs", {"kiln.txt": text}))
        search = PassageSearch(store)
        [candidate], _ = search.candidates(question, 1)
        assert "Forty minutes" not in candidate.case.solution
        assert "Forty minutes" in search.best(question)[0].case.solution


def test_store_without_an_index_of_words_answers_and_refuses(
    location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casewright.stores.passages.search.MAX_INDEXED", 0)
    with open_waiting(SCHEMA, location) as store:
        search = PassageSearch(store)
        for question, answered in (
            ("Where did the harbour office move?", True),
            ("Who won the world cup in 1998?", False),
        ):
            assert search.are_sufficient(question, search.best(question)) == answered


def test_hit_that_a_feedback_loop_confirms_keeps_its_logit(
    opened: OpenDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits: list[tuple[float, ...]] = []
    features = PassageSearch.features

    def spy(search: PassageSearch, query: str, hits: Sequence[Hit]) -> tuple[float, ...]:
        logits.append(features(search, query, hits))
        return logits[-1]

    def confirm_all(store: CaseStore, *_: object) -> Search:
        return lambda query, count, *_: store.search(query, count)

    monkeypatch.setattr(PassageSearch, "features", spy)
    question = "How often must I descale the coffee machine?"
    call(opened, "document_search", question)
    call(looping(opened, confirm_all), "document_search", question)
    assert len(logits[0]) == 3
    # The loop's own hits have logits too.
    assert logits[1] == pytest.approx(logits[0], abs=0.1)


def test_files_of_roots_with_the_same_name_have_different_sources(tmp_path: Path) -> None:
    with open_waiting(SCHEMA, tmp_path / "store") as store:
        for name, text in (("a/docs", "Tea is at four."), ("b/docs", "Tea is at five.")):
            ingest(store, write(tmp_path / name, {"x.md": text}))
        ingest(store, write(tmp_path / "c" / "notes", {"x.md": "Tea is at six."}))
    domain = DOMAIN.open(tmp_path / "store", default_encoder(), False)
    try:
        rows = call(domain, "document_search", "When is tea?")
    finally:
        domain.close()
    assert {row["evidence"]: row["source"] for row in rows} == {
        "Tea is at four.": f"{tmp_path}/a/docs/x.md, line 1",
        "Tea is at five.": f"{tmp_path}/b/docs/x.md, line 1",
        "Tea is at six.": "notes/x.md, line 1",
    }


def test_question_about_nothing_that_was_ingested_finds_nothing(opened: OpenDomain) -> None:
    assert call(opened, "document_search", "Who won the world cup in 1998?") == []


def test_question_without_an_answer_is_refused_with_the_nearest_titles(opened: OpenDomain) -> None:
    graph = build_graph(opened.toolbox, CasePlanner(opened.plan_cases))
    question = "How many litres of milk does the coffee machine hold?"
    answer = Answer.from_state(graph.invoke({"question": question}))
    assert (answer.refused, answer.citations, answer.evidence) == (True, [], [])
    assert answer.text.startswith(f"Nothing found about “{question}”. Nearest: ")
    assert "Coffee machine" in answer.text


def test_code_is_quoted_whole_in_a_fence_below_its_symbol(opened: OpenDomain) -> None:
    rows = call(opened, "document_search", "How is the pump filled with water?")
    assert rows[0]["evidence"] == f"# Pump.prime\n\n```python\n{FILES['pump.py'].strip()}\n```"


@pytest.mark.parametrize(
    "question",
    [
        "How long is the warranty?",
        "prime",
        "compare the brakes with the pump, and tell me who wrote the report and when",
        "Was ist mit dem Büro am Hafen?",
        "What does Pump.prime(seconds) return?",
    ],
)
def test_every_question_is_planned_as_one_document_search(
    opened: OpenDomain, question: str
) -> None:
    result = CasePlanner(opened.plan_cases).plan(PlanRequest(question, opened.toolbox))
    assert str(result.plan) == "s1 = document_search(query=question)"
    assert result.fallback == ""


def test_annotated_queries_can_be_run_with_the_domains_tools(opened: OpenDomain) -> None:
    queries = DOMAIN.queries()
    assert len(queries) >= 5
    assert opened.plan_cases.count() == len(queries)
    for query in queries:
        query.record.request(opened.toolbox).validate(query.plan)


def test_documents_store_has_six_cases(opened: OpenDomain) -> None:
    assert opened.stores["documents"].count() == 6


def test_documents_domain_without_documents_is_refused_with_the_ingest_command(
    tmp_path: Path,
) -> None:
    path = tmp_path / "nothing"
    with pytest.raises(InputError, match="casewright ingest PATH"):
        DOMAIN.open(path, default_encoder(), False)
    assert not path.exists()
    open_waiting(SCHEMA, path).close()
    with pytest.raises(InputError, match="casewright ingest PATH"):
        DOMAIN.open(path, default_encoder(), True)
    # The refused calls hold no lock.
    open_waiting(SCHEMA, path).close()


def test_documents_domain_opens_the_given_store_folder(location: Path) -> None:
    domain = DOMAIN.openers["store"](location, default_encoder(), str(location))
    try:
        assert call(domain, "document_search", "brake pads")
    finally:
        domain.close()
