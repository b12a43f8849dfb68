"""The readers by name, with their files, origins and licences."""

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
        read: Yields the instructions of a path.
        files: The file or folder that the path must be.
        terms: The data's licence.
        contaminates: The benchmarks whose test items it reads.
        plans: True if it reads queries with plans, each with its own tools.
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
    name: Reader(_READ[name], **entry)
    for name, entry in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}


def reader(name: str) -> Reader:
    """Return the reader of a name; ``InputError`` lists all readers if there is none."""
    if name not in READERS:
        listed = "; ".join(f"{key}: {item.files} ({item.origin})" for key, item in READERS.items())
        raise InputError(f"There is no reader of instructions {name!r}. There are {listed}.")
    return READERS[name]


def readers_of(sources: Iterable[str]) -> dict[str, Reader]:
    """Return the readers that sources name before a colon."""
    used = {source.partition(":")[0] for source in sources}
    return {name: READERS[name] for name in sorted(used & set(READERS))}


def contaminated(sources: Iterable[str]) -> list[str]:
    """Return the benchmarks on which no score may be reported after training on these sources."""
    return sorted({name for item in readers_of(sources).values() for name in item.contaminates})


def licences(sources: Iterable[str]) -> dict[str, str]:
    """Return the licence of each reader that sources name."""
    return {name: item.licence for name, item in readers_of(sources).items()}
