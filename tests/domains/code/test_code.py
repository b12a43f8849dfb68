"""Tests of the code domain with its real encoder and planner."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.domains.code.domain import code_toolbox, open_code
from casewright.domains.code.quoting import CodeQuoter
from casewright.domains.code.store import tree_folder
from casewright.domains.code.symbol_index import CodeIndex
from casewright.errors import InputError
from casewright.graph import Answer, GenerationRequest, build_graph
from casewright.graph.evidence import Evidence
from casewright.planner import CasePlanner
from casewright.planner.request import PlanRequest
from casewright.stores import CaseStore, Hit, default_encoder
from casewright.tools import CallContext, Toolbox, tool_from_function
from tests.domains.code.trees import FILES, source_tree
from tests.domains.helpers import call
from tests.stores.document_files import write
from tests.support.encoders import HashingEncoder

DOMAIN = find_domain("code")
SPLIT = "Show me the full split method of class Splitter"


def text_of(source: str, first: str, last: str) -> str:
    """Return the lines of a file from the first with one text to the next with another."""
    lines = FILES[source].split("\n")
    begin = next(number for number, line in enumerate(lines) if first in line)
    end = next(number for number, line in enumerate(lines) if number > begin and last in line)
    return "\n".join(lines[begin : end + 1])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source_tree(tmp_path_factory.mktemp("trees") / "demo")


@pytest.fixture(scope="module")
def opened(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDomain]:
    domain = open_code(tmp_path_factory.mktemp("code"), default_encoder(), tree)
    yield domain
    domain.close()


@pytest.mark.parametrize(
    ("question", "location", "expected"),
    [
        (
            SPLIT,
            ("demo/text/splitter.py", "Splitter.split"),
            text_of("text/splitter.py", "def split(self, given)", "return charlie_1"),
        ),
        (
            "Show me the whole function grouped",
            ("demo/text/splitter.py", "grouped"),
            text_of("text/splitter.py", "def grouped", "return echo_1"),
        ),
        (
            "the add method of the class Store",
            ("demo/web/store.ts", "Store.add"),
            text_of("web/store.ts", "export class Store", "  }"),
        ),
    ],
)
def test_named_definition_is_found_with_all_its_chunks_in_the_files_order(
    opened: OpenDomain, question: str, location: tuple[str, str], expected: str
) -> None:
    rows = call(opened, "code_search", question)
    assert len(rows) >= 2
    assert all(set(row) == {"evidence", "source"} for row in rows)
    assert "\n".join(row["evidence"] for row in rows) == expected
    for row in rows:
        assert row["source"].startswith(f"{location[0]}, lines ")
        assert row["source"].endswith(f" ({location[1]})")


def test_code_search_without_a_symbol_name_finds_code_by_content(opened: OpenDomain) -> None:
    rows = call(opened, "code_search", "Where is a request sent again after it failed?")
    assert rows[0]["source"].endswith("(Store.retry)")


def test_question_about_nothing_in_the_tree_finds_nothing(opened: OpenDomain) -> None:
    assert call(opened, "code_search", "Who won the world cup in 1998?") == []


def test_only_source_code_that_is_not_hidden_nor_installed_is_indexed(opened: OpenDomain) -> None:
    sources = {case.metadata["source"] for case in opened.stores["code"].all()}
    assert sources == {"text/splitter.py", "web/store.ts"}


def test_code_toolbox_uses_the_given_search_with_the_call_context(opened: OpenDomain) -> None:
    store = opened.stores["code"]
    calls: list[tuple[str, CallContext]] = []

    def search(query: str, call: CallContext) -> Sequence[Hit]:
        calls.append((query, call))
        hits = store.search("grouped", 50, where={"symbol": ["grouped", "Lines.split"]})
        # The reverse order of the file.
        return sorted(hits, key=lambda hit: -hit.case.metadata["position"])

    spec = code_toolbox(search, CodeIndex.of(store))["code_search"]
    assert spec.run is not None
    context = CallContext(question="why?", step="s1")
    rows = spec.run({"query": "anything"}, context)
    assert calls == [("anything", context)]
    symbols = [row["source"].rpartition(" ")[2] for row in rows]
    assert symbols == ["(grouped)"] * (len(rows) - 1) + ["(Lines.split)"]
    assert "\n".join(row["evidence"] for row in rows[:-1]).startswith("def grouped(given):")


@pytest.mark.parametrize(
    "question", [SPLIT, "retry", "Why is Store.add so long, and who calls it?"]
)
def test_every_question_is_planned_as_one_code_search(opened: OpenDomain, question: str) -> None:
    result = CasePlanner(opened.plan_cases).plan(PlanRequest(question, opened.toolbox))
    assert str(result.plan) == "s1 = code_search(query=question)"
    assert result.fallback == ""


def test_annotated_queries_can_be_run_with_the_domains_tools(opened: OpenDomain) -> None:
    queries = DOMAIN.queries()
    assert len(queries) >= 8
    for query in queries:
        query.record.request(opened.toolbox).validate(query.plan)


def test_answer_contains_and_cites_every_found_chunk(opened: OpenDomain) -> None:
    graph = build_graph(opened.toolbox, CasePlanner(opened.plan_cases), CodeQuoter())
    answer = Answer.from_state(graph.invoke({"question": SPLIT}))
    rows = call(opened, "code_search", SPLIT)
    assert list(answer.citations) == [f"E{number}" for number in range(1, len(rows) + 1)]
    for row in rows:
        assert f"{row['source']} [E" in answer.text
        assert row["evidence"] in answer.text


class OneItem:
    """A tool that returns one text."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __call__(self, query: str) -> list[dict[str, str]]:
        """Finds code."""
        return [{"evidence": self.code}]


def test_code_is_quoted_unchanged_and_marks_in_it_are_no_citations(
    opened: OpenDomain,
) -> None:
    code = "def of(items: list[E1]) -> None:\n    errors[E404] + list[E1]  # see [E7]"
    item = Evidence("E1", "s1", "code_search", code, "a[E2].py, line 1 (of)", {}, final=True)
    generation = CodeQuoter().generate(GenerationRequest("of?", [item]))
    assert code in generation.text
    assert generation.citations == ["E1"]
    # The graph removes invalid citations from other texts, but leaves code unchanged.
    find = tool_from_function(OneItem(code).__call__, name="code_search")
    toolbox = Toolbox([find])
    graph = build_graph(toolbox, CasePlanner(opened.plan_cases), CodeQuoter())
    answer = Answer.from_state(graph.invoke({"question": SPLIT}))
    assert code in answer.text
    assert list(answer.citations) == ["E1"]


def test_second_opening_encodes_only_what_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, encoder = source_tree(tmp_path / "demo"), HashingEncoder()
    open_code(tmp_path / "data", encoder, tree).close()
    assert "Indexing the source code" in capsys.readouterr().err
    plans = {query.query for query in DOMAIN.queries()}

    def encoded_texts() -> set[str]:
        encoder.calls.clear()
        open_code(tmp_path / "data", encoder, tree).close()
        return {text for texts in encoder.calls for text in texts} - plans

    assert encoded_texts() == set()
    write(tree, {"new.py": "def added(given):\n    return given\n"})
    (tree / "web" / "store.ts").unlink()
    assert encoded_texts() == {"new.py › added", "def added(given):\n    return given"}
    assert capsys.readouterr().err == ""
    opened = open_code(tmp_path / "data", encoder, tree)
    try:
        sources = {case.metadata["source"] for case in opened.stores["code"].all()}
    finally:
        opened.close()
    assert sources == {"new.py", "text/splitter.py"}


def test_source_trees_with_the_same_name_have_separate_stores(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tree = write(
            tmp_path / name / "demo", {f"{name}.py": f"def {name}():\n    return {name}\n"}
        )
        opened = open_code(tmp_path / "data", HashingEncoder(), tree)
        try:
            sources = [case.metadata["source"] for case in opened.stores["code"].all()]
        finally:
            opened.close()
        assert sources == [f"{name}.py"]


def test_code_domain_without_source_opens_the_last_used_tree(tmp_path: Path) -> None:
    data, encoder = tmp_path / "data", HashingEncoder()
    trees = [
        write(tmp_path / name, {f"{name}.py": "def f():\n    return 1\n"}) for name in ("a", "b")
    ]

    def last_source() -> str:
        opened = DOMAIN.open(data, encoder, False)
        try:
            return str(opened.stores["code"].all()[0].metadata["source"])
        finally:
            opened.close()

    with pytest.raises(InputError, match=r"No source code was indexed yet.*--source DIR"):
        last_source()
    assert not data.exists()
    for tree in (*trees, trees[0]):
        open_code(data, encoder, tree).close()
        assert last_source() == f"{tree.name}.py"
    (tree_folder(data, trees[0]) / "source.json").write_text("{half", encoding="utf-8")
    assert last_source() == "b.py"
    for content in ('{"source": 5}', '{"source": null}', "[]", "5"):
        (tree_folder(data, trees[0]) / "source.json").write_text(content, encoding="utf-8")
        assert last_source() == "b.py"
    # Writing leaves no temporary file.
    assert {path.name for path in tree_folder(data, trees[1]).iterdir()} == {"cases", "source.json"}
    shutil.rmtree(trees[1])
    with pytest.raises(InputError, match="does not exist any more"):
        last_source()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "not a readable folder"),
        ("none", "No such file"),
        ("file.py", "not a readable folder"),
        ("docs", "no source code: none of its 1 files"),
        ("empty", "no source code"),
        ("nul\0", "null"),
    ],
)
def test_invalid_source_folder_is_refused_and_nothing_is_created(
    tmp_path: Path, source: str, message: str
) -> None:
    write(tmp_path, {"file.py": "x = 1\n", "docs/a.md": "# A\n"})
    (tmp_path / "empty").mkdir()
    path = str(tmp_path / source) if source else ""
    with pytest.raises(InputError, match=f"{message}.*--source DIR"):
        open_code(tmp_path / "data", HashingEncoder(), path)
    assert not (tmp_path / "data").exists()


def test_unreadable_source_file_is_reported_and_the_domain_opens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = write(tmp_path / "demo", {"good.py": "def f():\n    return 1\n"})
    (tree / "bad.py").symlink_to(tree / "none.py")
    opened = open_code(tmp_path / "data", HashingEncoder(), tree)
    opened.close()
    assert "Left out: bad.py, since it is a broken link." in capsys.readouterr().err


def test_tree_without_text_in_its_code_is_refused(tmp_path: Path) -> None:
    tree = write(tmp_path / "demo", {"blank.py": "\n\n"})
    with pytest.raises(InputError, match=r"None of the source code in .*--source DIR"):
        open_code(tmp_path / "data", HashingEncoder(), tree)
    # The refused call holds no lock.
    write(tree, {"blank.py": "x = 1\n"})
    opened = open_code(tmp_path / "data", HashingEncoder(), tree)
    assert isinstance(opened.stores["code"], CaseStore)
    opened.close()
