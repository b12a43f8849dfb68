"""The readers by name: what each reads, where that comes from, and on which terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from casewright.errors import InputError
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers import (
    bfcl,
    glaive,
    hugging_face,
    metatool,
    sealtools,
    self_instruct,
    t0,
    toolalpaca,
    toolformer,
)
from casewright.finetune.instructions.readers.records import Refuse

#: The reader that takes a name, a split and columns.
HUGGING_FACE = "hugging_face"


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader.

    Attributes:
        read: Yields the instructions of a path, and tells why a record makes none.
        files: What the path is: the file's name, or the folder.
        origin: Where it comes from.
        licence: On which terms.
        contaminates: Benchmarks whose test items it reads: no score on them may be reported of a
            model that was trained with it.
        plans: Whether it reads queries with plans, each with tools of its own.
    """

    read: Callable[[Path, Refuse], Iterator[Instruction]]
    files: str
    origin: str
    licence: str
    contaminates: tuple[str, ...] = ()
    plans: bool = False


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "self_instruct": Reader(
            self_instruct.read_seed_tasks,
            self_instruct.SEED_TASKS,
            "github.com/yizhongw/self-instruct, data/seed_tasks.jsonl",
            self_instruct.LICENCE,
        ),
        "user_oriented": Reader(
            self_instruct.read_user_oriented,
            self_instruct.USER_ORIENTED,
            "github.com/yizhongw/self-instruct, human_eval/user_oriented_instructions.jsonl",
            self_instruct.LICENCE,
            ("Self-Instruct user-oriented instructions",),
        ),
        "t0": Reader(
            t0.read_t0,
            t0.FILE,
            "github.com/yizhongw/self-instruct, a sample of data/finetuning/t0",
            t0.LICENCE,
        ),
        "toolformer": Reader(
            toolformer.read_toolformer,
            toolformer.FILE,
            "github.com/teknium1/GPTeacher, Toolformer",
            toolformer.LICENCE,
        ),
        "glaive": Reader(
            glaive.read_glaive,
            glaive.FILE,
            "github.com/hiyouga/LLaMA-Factory, data/glaive_toolcall_en_demo.json",
            glaive.LICENCE,
            plans=True,
        ),
        "toolalpaca": Reader(
            toolalpaca.read_toolalpaca,
            f"a folder with {' or '.join(toolalpaca.FILES)}",
            "github.com/tangqiaoyu/ToolAlpaca, data",
            toolalpaca.LICENCE,
            ("ToolAlpaca",),
            plans=True,
        ),
        "bfcl": Reader(
            bfcl.read_bfcl,
            f"a folder with {bfcl.PREFIX}*.json and {bfcl.GOLD}",
            "github.com/ShishirPatil/gorilla, berkeley-function-call-leaderboard/bfcl_eval/data",
            bfcl.LICENCE,
            ("BFCL",),
            plans=True,
        ),
        "sealtools": Reader(
            sealtools.read_sealtools,
            f"a folder with {sealtools.TOOLS} and {' or '.join(sealtools.FILES)}",
            "github.com/fairyshine/Seal-Tools",
            sealtools.LICENCE,
            ("Seal-Tools",),
            plans=True,
        ),
        "metatool": Reader(
            metatool.read_metatool,
            f"a folder with {metatool.FILE} and {' and '.join(metatool.DESCRIPTIONS)}",
            "github.com/HowieHwong/MetaTool, dataset",
            metatool.LICENCE,
            ("MetaTool",),
            plans=True,
        ),
        HUGGING_FACE: Reader(
            hugging_face.read_hugging_face,
            "a data set's name, or a local folder or file",
            "huggingface.co/datasets, for example tatsu-lab/alpaca",
            "as the data set's page says",
        ),
    }
)


def reader(name: str) -> Reader:
    """Return the reader of a name.

    Raises:
        InputError: There is none; lists those that there are, and where their data comes from.
    """
    if name not in READERS:
        listed = "; ".join(f"{own}: {one.files} ({one.origin})" for own, one in READERS.items())
        raise InputError(f"There is no reader of instructions {name!r}. There are {listed}.")
    return READERS[name]


def contaminated(sources: Iterable[str]) -> list[str]:
    """Return the benchmarks that no score may be reported on after training on these sources.

    Args:
        sources: Where examples come from, each beginning with its reader's name and a colon.
    """
    used = {source.partition(":")[0] for source in sources}
    return sorted({one for name in used & set(READERS) for one in READERS[name].contaminates})


def licences(sources: Iterable[str]) -> dict[str, str]:
    """Return reader to licence for the readers that these sources name."""
    used = {source.partition(":")[0] for source in sources}
    return {name: READERS[name].licence for name in sorted(used & set(READERS))}
