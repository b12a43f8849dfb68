"""The readers of tool-use sets, and the licences of the sets."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.errors import InputError, PlanError
from casewright.finetune.tool_sets import bfcl, sealtools, toolalpaca
from casewright.finetune.tool_sets.calls import NO_PLAN, Conversion, Query, Unfit

#: A function that yields a conversion for each record in a file or folder; ``InputError`` if the
#: file or folder is unusable.
ReadFunction = Callable[[Path], Iterator[Conversion]]
_READ_FUNCTIONS: Mapping[str, ReadFunction] = {
    "toolalpaca": toolalpaca.read_toolalpaca,
    "bfcl": bfcl.read_bfcl,
    "sealtools": sealtools.read_sealtools,
}
_READERS_FILE = Path(__file__).with_name("tool_sets.toml")


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of one set, with the set's entry in ``tool_sets.toml``.

    ``files`` describes the folder to read, and ``origin`` says where to get it. ``terms`` is the
    data's licence. ``contaminates`` are the benchmarks whose test items are in the data.
    """

    read: ReadFunction
    files: str
    origin: str
    terms: str
    contaminates: Sequence[str]

    @property
    def licence(self) -> str:
        """The licence, with the benchmark that training on the set makes useless as a test."""
        return (
            f"{self.terms}; test items of {self.contaminates[0]}: no score on it may be reported "
            "after training on them"
        )


READERS: Mapping[str, Reader] = {
    name: Reader(_READ_FUNCTIONS[name], **entry)
    for name, entry in tomllib.loads(_READERS_FILE.read_text(encoding="utf-8")).items()
}


def reader(name: str) -> Reader:
    """Return the reader of a set by its name; ``InputError`` if there is none."""
    if name not in READERS:
        listed = "; ".join(f"{key}: {item.files} ({item.origin})" for key, item in READERS.items())
        raise InputError(f"There is no reader of tool-use sets {name!r}. There are {listed}.")
    return READERS[name]


def tool_queries(name: str, path: Path, refused: Counter[str] | None = None) -> list[Query]:
    """Return the queries of a set, with their gold plans and toolboxes.

    ``name`` is a key of ``READERS``; the refused records are counted in ``refused``, by reason.
    ``InputError`` if the reader is unknown, or the data cannot be read.
    """
    counts = Counter() if refused is None else refused
    queries = []
    for convert in reader(name).read(path):
        try:
            queries.append(convert())
        except (Unfit, PlanError) as error:
            counts[f"{name}: {error if isinstance(error, Unfit) else NO_PLAN}"] += 1
    return queries
