"""Documents are split without loss into chunks that have their lines, pages and headings."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.stores.documents.file_walk import kind_of
from casewright.stores.documents.reader import read_document
from casewright.stores.documents.splitter import Chunk, split
from casewright.stores.documents.text_size import (
    FENCE_TOKENS,
    GROUP_TOKENS,
    MAX_CHUNK_TOKENS,
    text_sizes,
)
from tests.stores.document_files import paragraph, pdf
from tests.support.examples import at_most


def split_text(text: str | bytes, name: str) -> list[Chunk]:
    kind = kind_of(name)
    assert kind is not None
    data = text.encode() if isinstance(text, str) else text
    return split(read_document(data, kind))


def letters_of(texts: Sequence[str]) -> str:
    """Return the texts joined, without white space."""
    return "".join("".join(text.split()) for text in texts)


def check_lines(text: str, chunks: Sequence[Chunk]) -> None:
    """Check that each chunk is on the lines that it names, and that chunks are in order."""
    lines = text.split("\n")
    last = 1
    for chunk in chunks:
        assert chunk.first_line is not None
        assert chunk.last_line is not None
        assert last <= chunk.first_line <= chunk.last_line
        source = "\n".join(lines[chunk.first_line - 1 : chunk.last_line])
        # Each part of a split code block has fences of its own.
        part = chunk.text.removesuffix("\n```")
        assert chunk.text in source or part in source or part.partition("\n")[2] in source
        last = chunk.last_line


LINE = st.one_of(
    st.just(""),
    st.sampled_from(
        ["# One", "## Two", "### Three", "#\tTab", "```", "- item", "  - inner", "| a |"]
    ),
    st.sampled_from(["def f(x):", "    return 1", "class A:", "@decorated", "}", '"""', "# note"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=30),
    st.integers(1, 400).map(lambda words: "word, and. " * words),
)
TEXT = st.lists(LINE, max_size=40).map("\n".join)


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.py", "a.go"])
@settings(max_examples=at_most(30), deadline=None)
@given(text=TEXT)
def test_chunks_contain_every_letter_once_with_correct_line_numbers(name: str, text: str) -> None:
    chunks = split_text(text, name)
    assert letters_of([chunk.text for chunk in chunks]) == letters_of([text])
    check_lines(text, chunks)


@settings(max_examples=at_most(50), deadline=None)
@given(text=TEXT)
def test_markdown_chunks_leave_out_only_headings(text: str) -> None:
    chunks = split_text(text, "a.md")
    check_lines(text.replace("#\tTab", "# Tab"), chunks)
    letters = letters_of([chunk.text for chunk in chunks]).replace("```", "")
    headings = letters_of([" ".join(chunk.headings) for chunk in chunks])
    for line in text.split("\n"):
        heading = re.match(r"#+\s(.*)", line)
        assert letters_of([line]).replace("```", "") in letters or (
            heading and letters_of([heading[1].rstrip("# ")]) in headings
        )


@settings(max_examples=at_most(30), deadline=None)
@given(text=TEXT, name=st.sampled_from(["a.txt", "a.md", "a.py", "a.csv"]))
def test_no_chunk_is_longer_than_the_encoder_limit(name: str, text: str) -> None:
    for chunk in split_text(text, name):
        # Each part of a split code block has fences of its own.
        assert text_sizes([chunk.text])[0] <= MAX_CHUNK_TOKENS + FENCE_TOKENS


def test_short_paragraphs_are_joined_into_chunks_of_sufficient_size() -> None:
    text = "\n\n".join(f"Sentence {number} is not long." for number in range(60))
    sizes = [sum(text_sizes([chunk.text])) for chunk in split_text(text, "a.txt")]
    assert len(sizes) > 2
    assert min(sizes) > 60


@settings(max_examples=at_most(30), deadline=None)
@given(
    sizes=st.lists(st.integers(4, 220), min_size=2, max_size=30),
    inserted=st.integers(4, 220),
    index=st.integers(0, 30),
)
def test_inserted_paragraph_changes_no_chunk_after_the_next_long_paragraph(
    sizes: list[int], inserted: int, index: int
) -> None:
    parts = [paragraph(f"p{number}", size) for number, size in enumerate(sizes)]
    index = min(index, len(parts))
    changed_parts = [*parts[:index], paragraph("fresh", inserted), *parts[index:]]
    long_parts = (n for n in range(index, len(parts)) if text_sizes([parts[n]])[0] >= GROUP_TOKENS)
    first_stable = next(long_parts, len(parts)) + 1
    before, after = (
        {
            chunk.text
            for chunk in split_text("\n\n".join(texts), "a.txt")
            if any(chunk.text.startswith(part) for part in parts[first_stable:])
        }
        for texts in (parts, changed_parts)
    )
    # A short last paragraph may be in the chunk of the one before it, if that has room.
    assert len(before ^ after) <= 1


def test_long_paragraph_is_split_between_sentences() -> None:
    sentences = [f"Sentence number {n} tells a little of what is to be told." for n in range(60)]
    chunks = split_text(" ".join(sentences), "a.txt")
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.text.startswith("Sentence number")
        assert chunk.text.endswith("told.")


def test_long_list_is_split_between_items() -> None:
    items = [f"- Item {n} has\n  a second line, with: commas; and, so on." for n in range(60)]
    chunks = split_text("# List\n\n" + "\n".join(items), "a.md")
    assert len(chunks) > 2
    assert all(re.match(r"- Item|# List", chunk.text) for chunk in chunks)


def test_heading_is_in_the_chunk_of_the_text_below_it() -> None:
    text = "# Guide\n\n## Use\n\n" + "\n".join(f"- Item {n} has a few words." for n in range(60))
    chunks = split_text(text, "a.md")
    assert chunks[0].text.startswith("## Use\n\n- Item 0")
    assert {chunk.headings for chunk in chunks} == {("Guide", "Use")}


def test_chunk_has_the_title_and_headings_above_it() -> None:
    text = (
        "Before.\n\n# Guide\n\n## Install ##\n\n### On `Linux`/Mac\n\nUnpack it.\n\n"
        "```\n# no heading\n```\n\n## Use\n\nRun it.\n"
    )
    chunks = split_text(text, "a.md")
    assert [chunk.headings for chunk in chunks] == [
        (),
        ("Guide", "Install", "On `Linux`/Mac"),
        ("Guide", "Use"),
    ]
    assert {chunk.title for chunk in chunks} == {"Guide"}
    assert [(chunk.first_line, chunk.last_line) for chunk in chunks] == [(1, 1), (7, 13), (15, 17)]
    assert "# no heading" in chunks[1].text


def test_section_with_a_repeated_heading_text_has_its_own_line_numbers() -> None:
    text = "# A\n\n```\n## B\n```\n\n## B\n\nwords\n"
    assert [chunk.first_line for chunk in split_text(text, "a.md")] == [1, 7]


def test_file_with_headings_only_gives_a_chunk_for_each_heading() -> None:
    assert [chunk.text for chunk in split_text("# One\n\n# Two\n", "a.md")] == ["# One", "# Two"]


def test_pdf_chunks_have_their_page_number() -> None:
    chunks = split_text(pdf(["Red apples.", "", "Green\npears."]), "a.pdf")
    assert [(chunk.page, chunk.text) for chunk in chunks] == [
        (1, "Red apples."),
        (3, "Green\npears."),
    ]
    assert {chunk.first_line for chunk in chunks} == {None}


def test_html_page_is_split_by_headings_with_its_title() -> None:
    page = (
        "<title>Shop\n help</title><script>no()</script><h1>Help</h1><p>Ask <b>us</b> here.</p>"
        "<h2>Returns</h2><div>Send it<br>back.</div><pre>a = 1\n  b</pre>"
        "<table><tr><th>Day<th>Open<tr><td>Mon<td>9</table><ul><li>one<li><p>two</ul>"
    )
    chunks = split_text(page, "a.html")
    assert [(chunk.title, chunk.headings) for chunk in chunks] == [
        ("Shop help", ("Help",)),
        ("Shop help", ("Help", "Returns")),
    ]
    assert chunks[0].text == "# Help\n\nAsk us here."
    assert chunks[1].text == (
        "## Returns\n\nSend it\nback.\n\n```\na = 1\n  b\n```\n\n"
        "Day | Open\nMon | 9\n\n- one\n- two"
    )
    assert {chunk.first_line for chunk in chunks} == {None}


@settings(max_examples=at_most(30), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["<p>", "</p>", "<li>", "<h2>", "</h2>", "<pre>", "</pre>", "<td>", "<br>"]
            ),
            st.text(st.characters(codec="utf-8", exclude_characters="<>&\0\r"), max_size=12),
        ),
        max_size=30,
    )
)
def test_html_chunks_contain_every_word_of_the_page(pieces: list[str]) -> None:
    letters = letters_of([chunk.text for chunk in split_text("".join(pieces), "a.html")])
    for piece in pieces:
        if not piece.startswith("<") and piece.isalnum():
            assert piece in letters


def test_prose_is_split_without_the_data_files_of_nltk(monkeypatch: pytest.MonkeyPatch) -> None:
    from llama_index.core.utils import GlobalsHelper

    def refuse(self: GlobalsHelper) -> None:
        raise PermissionError("NLTK refuses hard links, as uv installs the lists.")

    monkeypatch.setattr(GlobalsHelper, "wait_for_nltk_check", refuse)
    monkeypatch.setattr(GlobalsHelper, "_punkt_tokenizer", None)
    text = "The mill is oiled on Monday. " * 200
    assert letters_of([chunk.text for chunk in split_text(text, "a.txt")]) == letters_of([text])


def test_mdx_is_split_at_its_headings_like_markdown() -> None:
    chunks = split_text("# Mill\n\nIt turns.\n\n## Oil\n\n<Note>Red oil.</Note>\n", "mill.mdx")
    assert [chunk.headings for chunk in chunks] == [("Mill",), ("Mill", "Oil")]
