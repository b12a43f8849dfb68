"""An object of a Python file of the user's, by ``FILE.py:NAME``."""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from casewright.errors import InputError, told

_PLACE = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)", re.DOTALL)


def is_place(text: str) -> bool:
    """Say whether a text has the form ``FILE.py:NAME``."""
    return _PLACE.fullmatch(text) is not None


def object_of(place: str, option: str, wanted: str) -> Any:
    """Run a Python file, once a process, and return the object of a name in it.

    Args:
        place: ``FILE.py:NAME``.
        option: What it was given as, for errors.
        wanted: What the name has to be, for errors: ``a CaseStore``.

    Raises:
        InputError: There is no such file, it fails, or it has nothing of that name.
    """
    parts = _PLACE.fullmatch(place)
    if parts is None or not Path(parts["file"]).is_file():
        raise InputError(
            f"{option} {place}: there is no such file. Write FILE.py:NAME, where NAME is {wanted}."
        )
    file = Path(parts["file"]).resolve()
    try:
        found = vars(_module(file)).get(parts["name"])
    except Exception as error:
        raise InputError(f"{option} {place} failed: {told(error)}.") from error
    if found is None:
        raise InputError(
            f"{option} {place}: {file.name} has no {parts['name']}. Name {wanted} in it."
        )
    return found


@cache
def _module(file: Path) -> Any:
    # A name that no installed module has: the file's own may be `json`.
    name = f"casewright_file_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Annotations of its functions and dataclasses are looked up by the module's name.
    sys.modules[name] = module
    # It may import what lies beside it, as a script does.
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(file.parent))
    return module
