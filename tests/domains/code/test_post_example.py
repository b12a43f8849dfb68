"""The example of RepoGPT's post (2023): a method that a chunker cut in two is found whole.

The question and the package are the post's. Labels replace its language model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from casewright.graph.feedback import FeedbackLimits, FeedbackResult, build_feedback
from casewright.stores import Case, CaseSchema, CaseStore, default_encoder, text_facet
from casewright.stores.feedback import JudgeRequest, TextStrategy, Verdicts

#: The package org.apache.commons.math4.legacy.ml.clustering of github.com/apache/commons-math.
FOLDER = Path(os.environ.get("CASEWRIGHT_DATA", ".")) / "commons_math_clustering" / "clustering"
QUESTION = (
    "show the full seed method in the ElkanKMeansPlusPlusClusterer class containing all the lines "
    "in the method"
)
#: The chunks that the post fetches in a round, and the most characters of a chunk.
FETCHED, LONGEST = 20, 1000
#: The end of the first half, and a text of the second half.
CUT, REST = "double sumSqDist = 0;", "cdf += minDistances[next];"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER.is_dir(),
        reason="set CASEWRIGHT_DATA to a folder with commons_math_clustering/clustering: the Java "
        "files of that package of Apache Commons Math, at d9fd832",
    ),
]


@dataclass(frozen=True)
class Labels:
    """A judge that knows the two halves."""

    relevant: frozenset[str]
    name: str = "labels"

    def judge(self, request: JudgeRequest) -> Verdicts:
        return Verdicts(frozenset(item.id for item in request.candidates) & self.relevant)


def chunks(text: str, longest: int = LONGEST) -> list[str]:
    """Cut a file at blank lines, before each comment of a definition and where a chunk is full."""
    pieces: list[str] = []
    for part in re.split(r"\n\s*\n", text):
        begins = part.lstrip().startswith("/**")
        if begins or not pieces or len(pieces[-1]) + len(part) > longest:
            pieces.append(part)
        else:
            pieces[-1] += f"\n\n{part}"
    return pieces


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with CaseStore(CaseSchema("java", (text_facet("text", default_encoder()),))) as java_store:
        java_store.add(
            Case({"text": f"{file.name}\n{chunk}"})
            for file in sorted(FOLDER.rglob("*.java"))
            for chunk in chunks(file.read_text(encoding="utf-8"))
        )
        yield java_store


def find_half(store: CaseStore, words: str, name: str = "ElkanKMeansPlusPlusClusterer.java") -> str:
    """Return the id of the chunk of a file that has these words."""
    texts = {case.id: str(case.problem["text"]) for case in store.all()}
    (case_id,) = [id_ for id_, text in texts.items() if text.startswith(name) and words in text]
    return case_id


def check_two_rounds(
    store: CaseStore, question: str, first: str, second: str, fetched: int
) -> None:
    """Check that a search finds only the first half, and the loop both before it stops."""
    assert first != second
    single = [hit.case.id for hit in store.search(question, fetched)]
    assert first in single
    assert second not in single
    limits = FeedbackLimits(first=fetched, more=fetched, candidates=100, seconds=60)
    loop = build_feedback(store, Labels(frozenset({first, second})), TextStrategy(), limits=limits)
    result = FeedbackResult.from_state(loop.invoke({"question": question}))
    assert [hit["id"] for hit in result.hits] == [first, second]
    assert [summary["relevant"] for summary in result.rounds] == [1, 1, 0]
    assert result.reason == "settled"


def test_the_loop_finds_the_second_half_by_the_first_in_two_rounds_and_stops(
    store: CaseStore,
) -> None:
    first, second = find_half(store, CUT), find_half(store, REST)
    assert store.get([first])[0].problem["text"].endswith(CUT)
    check_two_rounds(store, QUESTION, first, second, FETCHED)
