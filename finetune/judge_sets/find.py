"""Finding the sets of labelled questions that a folder holds, and those that need none."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.judge_sets.code import code_set, described_set, read_code
from casewright.finetune.judge_sets.paragraphs import (
    FILES,
    holds_scifact,
    multihop_set,
    scifact_set,
)
from casewright.finetune.judge_sets.sets import CODE, DESCRIBED, SCIFACT, FeedbackSet

_TELL = (
    "Give a folder with hotpotqa-dev.jsonl, 2wikimultihop-dev.jsonl or musique-dev.jsonl, or with "
    "SciFact's corpus.jsonl and claims, or one with these in multihop and scifact; without --data "
    "the sets of code alone are measured."
)


def find_sets(
    data: Path | None, only: str | None = None, limit: int | None = None
) -> list[FeedbackSet]:
    """Read the sets that a place holds, and make those of code.

    Args:
        data: A folder with some of the three multi-hop files or the files of SciFact, or with
            folders ``multihop`` and ``scifact`` that hold them; ``None`` takes the sets of code
            alone.
        only: The name of the one set that is wanted.
        limit: At most so many questions of each set, of both halves as many.

    Raises:
        InputError: The place holds no such set, or a file of another form; or too few questions
            are left to have one in each half.
        DependencyError: A set of code is wanted, and what splits code is not installed.
    """
    there: dict[str, Callable[[], FeedbackSet]] = {}
    if data is not None:
        if not data.is_dir():
            raise InputError(f"--data {data}: there is no such folder. {_TELL}")
        for name, file_name in FILES.items():
            files = (folder / file_name for folder in (data, data / "multihop"))
            if file := next((file for file in files if file.is_file()), None):
                there[name] = partial(multihop_set, file, name)
        if folder := next((item for item in (data, data / "scifact") if holds_scifact(item)), None):
            there[SCIFACT] = partial(scifact_set, folder)
        if not there and only not in (CODE, DESCRIBED):
            raise InputError(f"--data {data}: it holds no set of questions. {_TELL}")
    # The packages are read and split once for both sets, and not at all for the others.
    corpus = cache(read_code)
    there |= {CODE: lambda: code_set(corpus()), DESCRIBED: lambda: described_set(corpus())}
    chosen = [read().limited(limit) for name, read in there.items() if only in (None, name)]
    if not chosen:
        raise InputError(
            f"There is no set {only!r} here. There are: {', '.join(there)}. "
            f"Sets are: {', '.join([*FILES, SCIFACT, CODE, DESCRIBED])}; all but the last two are "
            "read from --data."
        )
    for result in chosen:
        size = result.size()
        if not (size["questions_training"] and size["questions_test"]):
            raise InputError(
                f"Set {result.name} has {size['questions_training']} questions to train with and "
                f"{size['questions_test']} to test with. It needs one of each at least: give a "
                "larger --limit, or a file with more questions."
            )
    return chosen
