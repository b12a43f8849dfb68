"""Finds sets of labelled questions in a folder, and makes sets about installed packages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.judge_sets import paragraphs
from casewright.finetune.judge_sets.code import code_set, described_set, read_code
from casewright.finetune.judge_sets.labelled import CASES, QUESTIONS, labelled_set
from casewright.finetune.judge_sets.sets import CODE, DESCRIBED, SCIFACT, FeedbackSet

#: Functions that read the sets, by the sets' names.
SetReaders = dict[str, Callable[[], FeedbackSet]]
_USAGE = (
    "Give a folder with hotpotqa-dev.jsonl, 2wikimultihop-dev.jsonl or musique-dev.jsonl, or with "
    "SciFact's corpus.jsonl and claims, or with these in subfolders multihop and scifact, or with "
    "cases.jsonl and questions.jsonl; without --data only the sets of code are read."
)


def find_sets(
    data: Path | None, only: str | None = None, limit: int | None = None
) -> list[FeedbackSet]:
    """Return the sets of a folder and the sets of code, or the labelled set of a user's folder.

    Args:
        data: A folder with some of the three multi-hop files or the files of SciFact, also in
            subfolders ``multihop`` and ``scifact``; or a user's folder for ``labelled_set``. If
            ``None``, only the sets of code are returned.
        only: The name of the only set to return.
        limit: Maximum number of questions of each set; half of them are training questions.

    Raises:
        InputError: No set is named ``only``, a file is missing or malformed, or a half is empty.
        DependencyError: A set of code is needed, and tree-sitter is not installed.
    """
    if data is not None and any((data / name).is_file() for name in (CASES, QUESTIONS)):
        readers: SetReaders = {data.resolve().name: partial(labelled_set, data)}
    else:
        readers = _readers(data, only)
    sets = [read().limited(limit) for name, read in readers.items() if only in (None, name)]
    if not sets:
        raise InputError(
            f"There is no set {only!r} here, only {', '.join(readers)}. All sets are: "
            f"{', '.join([*paragraphs.FILES, SCIFACT, CODE, DESCRIBED])}; all but the last two are "
            "read from --data."
        )
    for feedback_set in sets:
        size = feedback_set.size()
        training, test = size["questions_training"], size["questions_test"]
        if not (training and test):
            raise InputError(
                f"Set {feedback_set.name} has {training} questions to train with and {test} to "
                "test with. It needs one of each at least: give a larger --limit, or a file with "
                "more questions."
            )
    return sets


def _readers(data: Path | None, only: str | None) -> SetReaders:
    """Return the sets' readers; a folder may lack sets only if ``only`` is a set of code."""
    readers: SetReaders = {}
    if data is not None:
        if not data.is_dir():
            raise InputError(f"--data {data}: there is no such folder. {_USAGE}")
        for name, file_name in paragraphs.FILES.items():
            files = (folder / file_name for folder in (data, data / "multihop"))
            if file := next(filter(Path.is_file, files), None):
                readers[name] = partial(paragraphs.multihop_set, file, name)
        if folder := next(filter(paragraphs.holds_scifact, (data, data / "scifact")), None):
            readers[SCIFACT] = partial(paragraphs.scifact_set, folder)
        if not readers and only not in (CODE, DESCRIBED):
            raise InputError(f"--data {data}: it holds no set of questions. {_USAGE}")
    # The packages are read and split once for both sets, and only if needed.
    corpus = cache(read_code)
    return readers | {CODE: lambda: code_set(corpus()), DESCRIBED: lambda: described_set(corpus())}
