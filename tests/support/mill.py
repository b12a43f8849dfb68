"""A tiny installed package, whose functions are asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from casewright.finetune.judge_sets.code import CodeCorpus, read_code

#: The distribution, and the folder that it is imported from.
MILL = ("invented-mill", "invented_mill")


def long_function(name: str, indent: str = "") -> str:
    """A function that is cut into several chunks."""
    lines = [f"{indent}def {name}(grain):"]
    for number in range(60):
        lines.append(
            f'{indent}    step_{number} = grain.turn({number}, "stone {number} of {name}")'
        )
    return "\n".join([*lines, f"{indent}    return step_0", ""])


def install_mill(place: Path) -> Path:
    """Write a package and its metadata as an installer does; ``place`` is to be on the path."""
    folder = place / MILL[1]
    (folder / "tests").mkdir(parents=True)
    head = f"Name: {MILL[0]}\nVersion: 2.5\n"
    (place / "invented_mill-2.5.dist-info").mkdir()
    (place / "invented_mill-2.5.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\n{head}"
    )
    wheel = ["class Wheel:", '    """Turns."""', "", long_function("grind", "    "), ""]
    wheel += ["    def stop(self):", "        self.turning = False", ""]
    sluice = [long_function("open_gate"), "", long_function("grind_all")]
    (folder / "wheel.py").write_text("\n".join([*wheel, long_function("grind_all")]))
    (folder / "sluice.py").write_text("\n".join(sluice))
    (folder / "twice.py").write_text(
        "\n".join(
            ["if True:", long_function("flow", "    "), "else:", long_function("flow", "    ")]
        )
    )
    (folder / "old.py").write_text(f"print 'no Python any more'\n{long_function('old')}")
    (folder / "tests" / "test_wheel.py").write_text(long_function("test_grind"))
    return folder


@contextmanager
def mill_corpus(place: Path) -> Iterator[CodeCorpus]:
    """The chunks of the package; another one is named that is not installed."""
    install_mill(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(place), *sys.path])
        yield read_code([MILL, ("invented-kiln", "kiln")])
