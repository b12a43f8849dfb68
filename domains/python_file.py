"""Objects of a user's Python file, by ``FILE.py:NAME``."""

from __future__ import annotations

import hashlib
import importlib.util
import os.path
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from casewright.errors import CasewrightError, InputError, told

_PLACE = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)", re.DOTALL)


def is_place(text: str) -> bool:
    """Return whether a text has the form ``FILE.py:NAME``."""
    return _PLACE.fullmatch(text) is not None


def object_of(place: str, option: str, wanted: str) -> Any:
    """Run a Python file, once a process, and return an object in it.

    Args:
        place: ``FILE.py:NAME``; ``InputError`` if the file fails, or has no such name.
        option: The option's name, for errors.
        wanted: The kind of object, for errors: ``a CaseStore``.
    """
    parts = _PLACE.fullmatch(place)
    if parts is None or not os.path.isfile(parts["file"]):
        raise InputError(
            f"{option} {place}: there is no such file. Write FILE.py:NAME, where NAME is {wanted}."
        )
    file = Path(parts["file"]).resolve()
    with own_code(f"{option} {place}"):
        value = vars(_module(file)).get(parts["name"])
    if value is None:
        raise InputError(
            f"{option} {place}: {file.name} has no {parts['name']}. Name {wanted} in it."
        )
    return value


@contextmanager
def own_code(what: str) -> Iterator[None]:
    """Run a user's code: its output goes to stderr, and errors become ``InputError``.

    An error of Casewright's is passed on.
    """
    try:
        # Other programs may parse a command's stdout.
        with redirect_stdout(sys.stderr):
            yield
    except CasewrightError:
        raise
    except SystemExit as error:
        raise InputError(
            f"{what} ends the process by sys.exit({error.code!r:.60}). Leave that out, or put it "
            'under `if __name__ == "__main__":`.'
        ) from error
    except Exception as error:
        raise InputError(f"{what} failed: {told(error).rstrip('.')}. Mend the file.") from error


@cache
def _module(file: Path) -> Any:
    # A unique name: the file may be called like an installed module.
    name = f"casewright_file_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Annotations are looked up by the module's name.
    sys.modules[name] = module
    # It may import modules beside it, as a script does.
    folder = str(file.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    # So may its functions, later: now installed modules come first, for other code's imports.
    if folder not in sys.path:
        sys.path.append(folder)
    return module
