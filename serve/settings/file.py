"""The TOML file of settings: where it lies, and what it says."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError, cleaned

#: The file's name, in the folder that a command is run in and in the user's settings folder.
NAME = "casewright.toml"
#: The environment's way to name the file.
VARIABLE = "CASEWRIGHT_CONFIG"
#: Settings that are a model's name, or a folder that holds one.
MODELS = ("encoder", "adapter", "planner")


def find_settings_file(given: Path | None = None) -> Path | None:
    """Return the file to read, if there is one.

    Args:
        given: The file that ``--config`` names.

    Raises:
        InputError: The one that is named is no file.
    """
    named = os.environ.get(VARIABLE)
    if given is None and not named:
        import platformdirs

        places = (Path(NAME), platformdirs.user_config_path("casewright") / NAME)
        return next((place for place in places if place.is_file()), None)
    file = given or Path(str(named))
    if not file.is_file():
        raise InputError(
            f"{'--config' if given else VARIABLE}: {file} is no file. Give a TOML file of settings."
        )
    return file


def read_settings_file(
    file: Path, known: Collection[str], places: Collection[str] = ()
) -> dict[str, Any]:
    """Return what a file says, by the settings' names.

    Args:
        file: The file.
        known: The settings' names.
        places: Those of them that are files or folders; they are named from the file's own folder.

    Raises:
        InputError: It cannot be read, is no TOML, or names what is no setting.
    """
    said = read_toml(file)
    for name in said:
        if name not in known:
            meant = nearest(name, known)
            raise InputError(
                f"{file}: {cleaned(repr(name), 80)} is no setting. "
                + (f"Write {meant!r}." if meant else "casewright config lists the settings.")
            )
    for name in places:
        if isinstance(said.get(name), str):
            said[name] = file.parent / Path(said[name]).expanduser()
    return said


def check_found(file: Path, said: Mapping[str, Any], places: Collection[str]) -> None:
    """Look whether a file of the working directory leads to no other file.

    Whoever made that folder wrote it: what lies where it leads would be read as the user's own.

    Args:
        file: The file, which nobody named.
        said: What it says.
        places: The settings that are files, folders or databases.

    Raises:
        InputError: A setting names a place.
    """
    for name, value in said.items():
        if name in places or (name in MODELS and _is_path(str(value))):
            raise InputError(
                f"{name} in {file} names a place, and the file was found in the working directory, "
                f"not named. Where you trust it, name it: --config {file}, or {VARIABLE}={file}."
            )


def _is_path(text: str) -> bool:
    # A folder may stand after any colon: parser:FOLDER, agent:local:FOLDER, NAME:FOLDER of others.
    while text and not (text.startswith(("~", ".", os.sep)) or os.path.exists(text)):
        text = text.partition(":")[2]
    return bool(text)


def read_toml(file: Path) -> dict[str, Any]:
    """Return what a TOML file of settings says.

    Raises:
        InputError: It cannot be read, or is no TOML.
    """
    import tomllib

    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except OSError as error:
        raise InputError(
            f"The settings in {file} cannot be read: {error.strerror}. Make the file readable, or "
            "name another one by --config."
        ) from error
    except (ValueError, RecursionError) as error:
        # What is no UTF-8 is a ValueError too. None of them quotes a value.
        raise InputError(
            f"The settings in {file} are not TOML: {error}. Write one a line, such as "
            'domain = "shopping".'
        ) from error


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name that a name was probably meant to be."""
    found = difflib.get_close_matches(name, sorted(known), n=1)
    return found[0] if found else None
