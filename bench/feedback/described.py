"""A set of code whose questions say what a function does, and never what it is called.

A search mostly finds the part of the function that reads like the question, its head say, and not
the rest of its body; and no filter by names can help. The questions were written by hand for this
bench, from the functions' code, in other words than their docstrings'. They are about the same
chunks as the set ``code``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

from casewright.bench.feedback.code import CodeCorpus
from casewright.bench.feedback.sets import DESCRIBED, FeedbackQuestion, FeedbackSet


def written_questions() -> dict[str, str]:
    """Return the questions that ship, by file and symbol of the function that each describes."""
    file = files("casewright.bench.feedback") / "data" / "described.jsonl"
    records = map(json.loads, filter(None, file.read_text(encoding="utf-8").split("\n")))
    return {record["id"]: record["question"] for record in records}


def described_set(corpus: CodeCorpus, written: Mapping[str, str] | None = None) -> FeedbackSet:
    """Make the set whose questions describe their function.

    A function that the installed version of its package lacks, or that is of one chunk there, is
    left out and counted in the settings. A question has the id, and so is of the half, that a
    question of the set ``code`` about the same function has.

    Args:
        corpus: What is installed.
        written: Questions by file and symbol; ``None`` takes those that ship.

    Raises:
        InputError: None of the functions is there.
    """
    if written is None:
        written = written_questions()
    there = {function.key: function for function in corpus.functions if function.is_cut}
    questions = [
        FeedbackQuestion(key, text, frozenset(there[key].chunks))
        for key, text in written.items()
        if key in there
    ]
    return corpus.feedback_set(
        DESCRIBED,
        questions,
        functions_described=len(questions),
        functions_left_out=len(written) - len(questions),
    )
