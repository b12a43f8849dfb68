from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from tests.layout.sources import (
    ADDED_FILES,
    PACKAGE_FILES,
    ROOM_FILES,
    ROOMS,
    ROOT,
    source,
)

#: Rooms whose names other code imports; the others are reached by the command line.
EXPORTING = [r for r in ROOMS if hasattr(import_module(f"casewright.{r}"), "__all__")]


def test_library_folders_export_names() -> None:
    assert {"stores", "tools", "planner", "graph", "domains"} <= set(EXPORTING)


@pytest.mark.parametrize("room", EXPORTING)
def test_exported_names_exist_are_public_and_occur_once(room: str) -> None:
    module = import_module(f"casewright.{room}")
    names: list[str] = module.__all__
    assert len(set(names)) == len(names)
    assert all(hasattr(module, name) for name in names)
    assert all(not name.startswith("_") for name in names)


@pytest.mark.parametrize("room", EXPORTING)
def test_exported_names_are_documented(room: str) -> None:
    module = import_module(f"casewright.{room}")
    undocumented = []
    for name in module.__all__:
        member = getattr(module, name)
        if not (inspect.isclass(member) or inspect.isroutine(member)):
            continue
        doc = member.__doc__ or ""
        # A dataclass without a docstring gets its signature as one.
        if len(doc.strip()) < 15 or doc.startswith(f"{name}("):
            undocumented.append(name)
    assert undocumented == []


@pytest.mark.parametrize("room", EXPORTING)
def test_public_methods_of_exported_classes_are_documented(room: str) -> None:
    module = import_module(f"casewright.{room}")
    undocumented = []
    for name in module.__all__:
        member = getattr(module, name)
        if inspect.isclass(member) and member.__module__.startswith("casewright."):
            for method, value in vars(member).items():
                function = inspect.unwrap(getattr(value, "__func__", value))
                if not inspect.isfunction(function) or method.startswith("_"):
                    continue
                # A method may inherit the docstring of its protocol.
                if not inspect.getdoc(getattr(member, method)):
                    undocumented.append(f"{name}.{method}")
    assert undocumented == []


def test_every_module_has_a_docstring() -> None:
    files = [*ROOM_FILES, *PACKAGE_FILES, *ADDED_FILES]
    names = [str(file.relative_to(ROOT)) for file in files if not source(file).docstring]
    assert names == []
