"""An object of a Python file of the user's, by ``FILE.py:NAME``."""

from __future__ import annotations

import hashlib
import importlib.util
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
    if parts is None or not _is_file(Path(parts["file"])):
        raise InputError(
            f"{option} {place}: there is no such file. Write FILE.py:NAME, where NAME is {wanted}."
        )
    file = Path(parts["file"]).resolve()
    with own_code(f"{option} {place}"):
        found = vars(_module(file)).get(parts["name"])
    if found is None:
        raise InputError(
            f"{option} {place}: {file.name} has no {parts['name']}. Name {wanted} in it."
        )
    return found


@contextmanager
def own_code(what: str) -> Iterator[None]:
    """Run the user's code: what it prints goes to stderr, and its errors are the user's to mend.

    Raises:
        InputError: It fails, or ends the process; an error that Casewright raised stays as it is.
    """
    try:
        # Of what a command prints on stdout, another program may read every line.
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


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # No system has files of such names.
        return False


@cache
def _module(file: Path) -> Any:
    # A name that no installed module has, and no other file: the file's own may be `json`.
    name = f"casewright_file_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Annotations of its functions and dataclasses are looked up by the module's name.
    sys.modules[name] = module
    # It may import what lies beside it, as a script does.
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
    # Its functions may do so too, when they are called: from now on after all that is installed,
    # since other code imports meanwhile.
    if folder not in sys.path:
        sys.path.append(folder)
    return module
