"""A tiny installed package, for corpora of code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from casewright.finetune.judge_sets.code import CodeCorpus, read_code

#: The name of the distribution, and of the import package.
MILL = ("invented-mill", "invented_mill")


def long_function(name: str, indent: str = "") -> str:
    """Return the source of a function that is long enough for several chunks."""
    lines = [f"{indent}def {name}(grain):"]
    for number in range(60):
        lines.append(
            f'{indent}    step_{number} = grain.turn({number}, "stone {number} of {name}")'
        )
    return "\n".join([*lines, f"{indent}    return step_0", ""])


def install_mill(site: Path) -> Path:
    """Write the package and its metadata like an installer; return the package's folder.

    ``site`` must be in ``sys.path`` for imports.
    """
    folder = site / MILL[1]
    (folder / "tests").mkdir(parents=True)
    head = f"Name: {MILL[0]}\nVersion: 2.5\n"
    (site / "invented_mill-2.5.dist-info").mkdir()
    (site / "invented_mill-2.5.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\n{head}")
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
def mill_corpus(site: Path) -> Iterator[CodeCorpus]:
    """Yield the corpus of this package, and of a second package that is not installed."""
    install_mill(site)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(site), *sys.path])
        yield read_code([MILL, ("invented-kiln", "kiln")])
