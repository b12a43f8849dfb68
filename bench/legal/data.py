"""What the legal bench is run on: cases, and questions that each have two parent cases."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from casewright.errors import InputError
from casewright.stores import Case

#: What stands in place of a path for the cases that the legal domain ships.
SHIPPED = "shipped"
#: The name of the set that is read from ALQA's files.
ALQA = "alqa"
#: Of what is drawn at random: the development half, the shuffled labels, the resamples.
SEED = 0
#: Questions that a set needs at least.
FEWEST = 4


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """A question that two cases are needed for.

    Attributes:
        text: The question.
        parents: The positions of the two cases in their set.
        reference: The answer that an answer is compared with.
    """

    text: str
    parents: tuple[int, int]
    reference: str


@dataclass(frozen=True, slots=True)
class QaSet:
    """Cases ⟨question, support, entities, answer⟩ and the questions to ask of them.

    Attributes:
        name: How the set is called in tables.
        cases: All of them, those that no question needs too.
        questions: Those with exactly two parents.
        left_out: How many others the files hold.
    """

    name: str
    cases: Sequence[Case]
    questions: Sequence[PairQuestion]
    left_out: int = 0

    def halves(self) -> tuple[list[int], list[int]]:
        """Return the positions of the questions of the development half, and of the test half."""
        places = list(range(len(self.questions)))
        random.Random(SEED).shuffle(places)
        middle = len(places) // 2
        return sorted(places[:middle]), sorted(places[middle:])


def find_sets(data: Path | None, only: str | None = None, limit: int | None = None) -> list[QaSet]:
    """Read the sets that a place holds.

    Args:
        data: A folder with the three multi-hop files, with ALQA (``qa.jsonl`` beside
            ``pairs.jsonl``), or with folders ``multihop`` and ``alqa`` that hold these; ``None``
            takes the domain's own cases.
        only: The name of the one set that is wanted.
        limit: At most so many questions of each set.

    Raises:
        InputError: The place holds no such set, or a file of another form.
    """
    from casewright.bench.legal.multihop import FILES, read_multihop
    from casewright.bench.legal.pairs import alqa_set, shipped_set

    there: list[tuple[str, Callable[[], QaSet]]] = []
    if data is None:
        there.append((SHIPPED, shipped_set))
    else:
        if not data.is_dir():
            raise InputError(f"--data {data}: there is no such folder. {_TELL}")
        for name, file_name in FILES.items():
            for folder in (data, data / "multihop"):
                if (file := folder / file_name).is_file():
                    there.append((name, partial(read_multihop, file, name)))
        for folder in (data, data / "alqa"):
            if (folder / "qa.jsonl").is_file():
                there.append((ALQA, partial(alqa_set, folder)))
        if not there:
            raise InputError(
                f"--data {data}: it holds no set of questions with two parent cases. {_TELL}"
            )
    chosen = [read() for name, read in there if only in (None, name)]
    if not chosen:
        raise InputError(
            f"--data {data or SHIPPED}: it holds no set {only!r}. There are: "
            f"{', '.join(name for name, _ in there)}. Sets are: "
            f"{', '.join([*FILES, ALQA, SHIPPED])}."
        )
    for found in chosen:
        if len(found.questions) < FEWEST:
            raise InputError(
                f"Set {found.name} has {len(found.questions)} questions with two parent cases. "
                f"It needs {FEWEST}: two in each half."
            )
    return [replace(found, questions=found.questions[:limit]) for found in chosen]


_TELL = (
    "Give a folder with hotpotqa-dev.jsonl, 2wikimultihop-dev.jsonl or musique-dev.jsonl, with "
    "ALQA's qa.jsonl and a pairs.jsonl, or the word shipped."
)
