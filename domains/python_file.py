"""Loads an object from a user's Python file, given as ``FILE.py:NAME``."""

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

from casewright.errors import CasewrightError, InputError, one_line

_REFERENCE = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)", re.DOTALL)


def is_file_reference(text: str) -> bool:
    """Return ``True`` if a text has the form ``FILE.py:NAME``."""
    return _REFERENCE.fullmatch(text) is not None


def load_object(reference: str, option: str, expected: str) -> Any:
    """Return the object that ``FILE.py:NAME`` names; the file runs only once in a process.

    Errors name the ``option`` and the ``expected`` kind of object, such as ``a CaseStore``. Raise
    ``InputError`` if the file does not exist, raises an exception, or does not define the name.
    """
    parts = _REFERENCE.fullmatch(reference)
    if parts is None or not os.path.isfile(parts["file"]):
        raise InputError(
            f"{option} {reference}: there is no such file. Write FILE.py:NAME, where NAME is "
            f"{expected}."
        )
    file = Path(parts["file"]).resolve()
    with running_user_code(f"{option} {reference}"):
        value = vars(_run_file(file)).get(parts["name"])
    if value is None:
        raise InputError(
            f"{option} {reference}: {file.name} has no {parts['name']}. Define {expected} there."
        )
    return value


@contextmanager
def running_user_code(source: str) -> Iterator[None]:
    """Send the output of a user's code to stderr, and turn its exceptions into ``InputError``.

    A ``CasewrightError`` is raised unchanged. ``source`` names the code in error messages.
    """
    try:
        # Other programs may parse the stdout of a command.
        with redirect_stdout(sys.stderr):
            yield
    except CasewrightError:
        raise
    except SystemExit as error:
        raise InputError(
            f"{source} ends the process by sys.exit({error.code!r:.60}). Leave that out, or put it "
            'under `if __name__ == "__main__":`.'
        ) from error
    except Exception as error:
        message = f"{source} failed: {one_line(error).rstrip('.')}. Correct the file."
        raise InputError(message) from error


@cache
def _run_file(file: Path) -> Any:
    # The name is unique, since an installed module may have the file's name.
    name = f"casewright_file_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # To evaluate annotations, Python looks the module up by its name.
    sys.modules[name] = module
    # The file may import modules from its folder, as a script does.
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
    # The file's functions may import from its folder later. The folder comes last now, so that it
    # does not hide installed modules from other code.
    if folder not in sys.path:
        sys.path.append(folder)
    return module
