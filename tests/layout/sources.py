"""The project's own Python files and their imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("stores", "tools", "planner", "graph", "finetune", "serve", "domains", "bench")
#: Packages beside the core, which finds them by their entry points.
ADDED = (
    *("casewright_backgammon", "casewright_legal", "casewright_math24", "casewright_mcbr"),
    *("casewright_soak", "casewright_studies"),
)


def _python_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.py") if "__pycache__" not in file.parts)


ROOM_FILES = [file for room in ROOMS for file in _python_files(ROOT / room)]
PACKAGE_FILES = sorted((ROOT / "src" / "casewright").glob("*.py"))
ADDED_FILES = _python_files(ROOT / "packages")


def module_of(file: Path) -> str:
    """Return the name by which a file of this repository is imported."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    full = parts[1:] if parts[0] in ("src", "packages") else ("casewright", *parts)
    return ".".join(parts if parts[0] == "tests" else full).removesuffix(".__init__")


MODULES = {module_of(file): file for file in [*ROOM_FILES, *PACKAGE_FILES, *ADDED_FILES]}
TEST_FILES = _python_files(ROOT / "tests")
OWN_FILES = [*ROOM_FILES, *PACKAGE_FILES, *ADDED_FILES, *TEST_FILES]


@dataclass(frozen=True)
class Import:
    """The import of one module by a file."""

    file: Path
    line: int
    module: str
    relative: bool
    at_once: bool
    """True if it runs with the file's import: not in a function, nor only for type checkers."""

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.module}"

    @property
    def importer(self) -> str:
        """The importing file's room; ``casewright`` or ``packages`` if it is in none."""
        first = self.file.relative_to(ROOT).parts[0]
        return "casewright" if first == "src" else first

    @property
    def room(self) -> str:
        """The room of the imported module; empty if it is in none."""
        parts = self.module.split(".")
        is_room = parts[0] == "casewright" and len(parts) > 1 and parts[1] in ROOMS
        return parts[1] if is_room else ""


@dataclass(frozen=True)
class Source:
    """The parts of one file that tests read; each file is parsed once."""

    docstring: str
    imports: tuple[Import, ...]
    first_lines: tuple[tuple[int, str], ...]
    """The first line of each docstring, with the line number of its definition."""
    classes: tuple[str, ...]
    """The names of classes outside functions and classes."""


@cache
def source(file: Path) -> Source:
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    return Source(
        ast.get_docstring(tree) or "",
        tuple(_walk(file, tree, at_once=True)),
        tuple(_first_lines(tree)),
        tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
    )


def imports_of(file: Path) -> tuple[Import, ...]:
    return source(file).imports


def _walk(file: Path, node: ast.AST, *, at_once: bool) -> Iterator[Import]:
    for child in _statements(node):
        if isinstance(child, ast.Import):
            for name in child.names:
                yield Import(file, child.lineno, name.name, False, at_once)
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            relative = child.level > 0
            # A name that is imported from a package may be one of its modules.
            names = {f"{base}.{name.name}" for name in child.names}
            modules = names & MODULES.keys() or ({base, *names} if base == "casewright" else {base})
            for module in sorted(modules):
                yield Import(file, child.lineno, module, relative, at_once)
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) or (
            isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        ):
            yield from _walk(file, child, at_once=False)
        else:
            yield from _walk(file, child, at_once=at_once)


def _first_lines(node: ast.AST) -> Iterator[tuple[int, str]]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if isinstance(node, kinds) and (text := ast.get_docstring(node)):
        yield getattr(node, "lineno", 1), text.splitlines()[0]
    for child in _statements(node):
        yield from _first_lines(child)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the child nodes that may contain statements, which no expression does."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        yield from getattr(node, part, ())


def lines_of(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())
