"""Groups, the training examples of the cross-encoder: a question and the passages of a search."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.records import Record, Text, read_records
from casewright.stores.documents.quotable import cross_encoder_input, quotables
from casewright.stores.encoders.cross_encoder import windows

QUESTIONS_FILE = "questions.jsonl"
LINE_FORMAT = 'A line is {"tree": "…", "question": "…", "quote": "…"}.'
_MARKDOWN_MARKS = re.compile(r"[`*\\]")


class QuotedQuestion(Record):
    """A question about a folder of documents, the ``tree``; ``quote`` is empty if none answers."""

    tree: Text
    question: Text
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A question and its passages; a passage is a heading, followed by parts.

    Attributes:
        scores: The search's score of each passage.
        gold: The answers, each as a passage's index and a part's index, from 0.
        is_unanswerable: True if the documents do not answer the question. If false, and ``gold`` is
            empty, the search did not find the answer.
    """

    tree: str
    question: str
    passages: Sequence[Sequence[str]]
    scores: Sequence[float]
    gold: frozenset[tuple[int, int]]
    is_unanswerable: bool


def read_questions(data: Path) -> list[QuotedQuestion]:
    """Return the questions of a folder, sorted by tree; ``InputError`` for a missing tree."""
    file, questions = data / QUESTIONS_FILE, []
    for number, question in read_records(file, QuotedQuestion, LINE_FORMAT):
        if not (data / question.tree).is_dir():
            raise InputError(
                f"{file}, line {number}: the tree {question.tree!r} is no folder in {data}. "
                f"Unpack it there, or remove its questions. {LINE_FORMAT}"
            )
        questions.append(question)
    return sorted(questions, key=lambda question: question.tree)


def check_held_out(trees: Collection[str], questions: Sequence[QuotedQuestion | Group]) -> None:
    """Raise ``InputError`` for a held-out tree that no question is about."""
    if unknown := set(trees) - {question.tree for question in questions}:
        raise InputError(f"No question is about the held-out tree {min(unknown)!r}. Correct it.")


def make_groups(
    questions: Sequence[QuotedQuestion], search: Callable[[str], Mapping[str, float]]
) -> Iterator[Group]:
    """Yield a group for each question.

    ``search`` returns a question's passages as Markdown with their scores, the best first. A long
    passage is cut into several passages of the group.
    """
    for question in questions:
        passages: list[Sequence[str]] = []
        scores: list[float] = []
        for text, score in search(question.question).items():
            cut_passages = windows(cross_encoder_input(quotables(text)))
            passages += cut_passages
            scores += [score] * len(cut_passages)
        quote = _plain(question.quote)
        gold = frozenset(
            (number, part)
            for number, passage in enumerate(passages)
            for part, text in enumerate(passage[1:])
            if quote and quote in _plain(text)
        )
        yield Group(question.tree, question.question, passages, scores, gold, not quote)


def _plain(text: str) -> str:
    return " ".join(_MARKDOWN_MARKS.sub(" ", text).lower().split())
