"""The readers by name, with the files, origin and licence of each."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers import bfcl, hugging_face, sealtools, toolalpaca
from casewright.finetune.instructions.readers.calls import Refuse

Read = Callable[[Path, Refuse], Iterator[Instruction]]
#: The reader that takes a name, a split and columns.
HUGGING_FACE = "hugging_face"
_READ: Mapping[str, Read] = {
    "toolalpaca": toolalpaca.read_toolalpaca,
    "bfcl": bfcl.read_bfcl,
    "sealtools": sealtools.read_sealtools,
    HUGGING_FACE: hugging_face.read_hugging_face,
}
_FILE = Path(__file__).parent / "readers.toml"


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader, as ``readers.toml`` describes it.

    Attributes:
        read: Yields the instructions of a path, and gives the reason for each record without one.
        files: The file or folder that the path must be.
        origin: Where its data comes from.
        terms: The data's licence.
        contaminates: The benchmarks whose test items it reads.
        plans: True where it reads queries with plans, each with tools of its own.
    """

    read: Read
    files: str
    origin: str
    terms: str
    contaminates: Sequence[str] = ()
    plans: bool = False

    @property
    def licence(self) -> str:
        """The terms on which the data may be used."""
        if not (self.plans and self.contaminates):
            return self.terms
        name = self.contaminates[0]
        return (
            f"{self.terms}; test items of {name}: no score on it may be reported after training "
            "on them"
        )


READERS: Mapping[str, Reader] = {
    name: Reader(_READ[name], **told)
    for name, told in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}


def reader(name: str) -> Reader:
    """Return the reader of a name.

    Raises:
        InputError: There is none; lists those that there are, and where their data comes from.
    """
    if name not in READERS:
        listed = "; ".join(f"{own}: {item.files} ({item.origin})" for own, item in READERS.items())
        raise InputError(f"There is no reader of instructions {name!r}. There are {listed}.")
    return READERS[name]


def readers_of(sources: Iterable[str]) -> dict[str, Reader]:
    """Return the readers that sources begin with the names of, each name before a colon."""
    used = {source.partition(":")[0] for source in sources}
    return {name: READERS[name] for name in sorted(used & set(READERS))}


def contaminated(sources: Iterable[str]) -> list[str]:
    """Return the benchmarks that no score may be reported on after training on these sources."""
    return sorted(
        {benchmark for own in readers_of(sources).values() for benchmark in own.contaminates}
    )


def licences(sources: Iterable[str]) -> dict[str, str]:
    """Return reader to licence for the readers that these sources name."""
    return {name: own.licence for name, own in readers_of(sources).items()}
