"""The readers by name: what each reads, where that comes from, and on which terms."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers import (
    bfcl,
    glaive,
    hugging_face,
    metatool,
    sealtools,
    texts,
    toolalpaca,
)
from casewright.finetune.instructions.readers.records import Refuse

Read = Callable[[Path, Refuse], Iterator[Instruction]]
#: The reader that takes a name, a split and columns.
HUGGING_FACE = "hugging_face"
_READ: Mapping[str, Read] = {
    "self_instruct": texts.read_seed_tasks,
    "user_oriented": texts.read_user_oriented,
    "t0": texts.read_t0,
    "toolformer": texts.read_toolformer,
    "glaive": glaive.read_glaive,
    "toolalpaca": toolalpaca.read_toolalpaca,
    "bfcl": bfcl.read_bfcl,
    "sealtools": sealtools.read_sealtools,
    "metatool": metatool.read_metatool,
    HUGGING_FACE: hugging_face.read_hugging_face,
}
_FILE = Path(__file__).parent / "readers.toml"


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader, as ``readers.toml`` tells of it.

    Attributes:
        read: Yields the instructions of a path, and tells why a record makes none.
        files: What the path is: the file's name, or the folder.
        origin: Where it comes from.
        terms: Its licence.
        contaminates: The benchmark whose test items it reads.
        plans: Whether it reads queries with plans, each with tools of its own.
    """

    read: Read
    files: str
    origin: str
    terms: str
    contaminates: Sequence[str] = ()
    plans: bool = False

    @property
    def licence(self) -> str:
        """On which terms it may be used."""
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
        listed = "; ".join(f"{own}: {one.files} ({one.origin})" for own, one in READERS.items())
        raise InputError(f"There is no reader of instructions {name!r}. There are {listed}.")
    return READERS[name]


def readers_of(sources: Iterable[str]) -> dict[str, Reader]:
    """Return the readers that sources begin with the names of, each name before a colon."""
    used = {source.partition(":")[0] for source in sources}
    return {name: READERS[name] for name in sorted(used & set(READERS))}


def contaminated(sources: Iterable[str]) -> list[str]:
    """Return the benchmarks that no score may be reported on after training on these sources."""
    return sorted({one for own in readers_of(sources).values() for one in own.contaminates})


def licences(sources: Iterable[str]) -> dict[str, str]:
    """Return reader to licence for the readers that these sources name."""
    return {name: own.licence for name, own in readers_of(sources).items()}
