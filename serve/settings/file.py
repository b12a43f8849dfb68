"""Finds and reads the TOML file of settings."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError, cleaned

#: The file's name, in the working directory and in the user's settings folder.
FILE_NAME = "casewright.toml"
#: The environment variable that names the settings file.
CONFIG_VARIABLE = "CASEWRIGHT_CONFIG"
#: Settings whose value may contain a path, such as a model's folder.
MODEL_SETTINGS = ("encoder", "adapter", "planner", "generator", "feedback")


def find_settings_file(config: Path | None = None) -> Path | None:
    """Return the file that ``--config`` or the environment names, else a default file, if any."""
    named_file = config or os.environ.get(CONFIG_VARIABLE)
    if not named_file:
        import platformdirs

        default_files = (Path(FILE_NAME), platformdirs.user_config_path("casewright") / FILE_NAME)
        return next((file for file in default_files if file.is_file()), None)
    if not (file := Path(named_file)).is_file():
        source = "--config" if config else CONFIG_VARIABLE
        raise InputError(f"{source}: {file} is not a file. Give a TOML file of settings.")
    return file


def read_settings(
    file: Path, names: Collection[str], path_names: Collection[str]
) -> dict[str, Any]:
    """Return a file's values by setting; relative paths in the file start from its folder."""
    values = read_toml(file)
    if unknown := [name for name in values if name not in names]:
        suggestion = most_similar(unknown[0], names)
        hint = f"Write {suggestion!r}." if suggestion else "casewright config lists the settings."
        raise InputError(f"{file}: {cleaned(repr(unknown[0]), 80)} is not a setting. {hint}")
    for name in path_names:
        if isinstance(values.get(name), str):
            values[name] = file.parent / Path(values[name]).expanduser()
    return values


def check_no_paths(file: Path, values: Mapping[str, Any], path_names: Collection[str]) -> None:
    """Raise ``InputError`` if a file that was found in the working directory names a path.

    Another person may have written the file, and commands trust the paths in settings.
    """
    if file != Path(FILE_NAME):  # not the file in the working directory
        return
    for name, value in values.items():
        if name in path_names or (name in MODEL_SETTINGS and _contains_path(str(value))):
            raise InputError(
                f"{name} in {file} names a path, which a file in the working directory may not do "
                f"by itself. If you trust the file, give --config {file}, or "
                f"{CONFIG_VARIABLE}={file}."
            )


def _contains_path(text: str) -> bool:
    # A folder may follow any colon: parser:FOLDER, agent:local:FOLDER, NAME:FOLDER.
    while text and not (text.startswith(("~", ".", os.sep)) or os.path.exists(text)):
        text = text.partition(":")[2]
    return bool(text)  # empty if no part is a path


def read_toml(file: Path) -> dict[str, Any]:
    """Return the values in a TOML file; raise ``InputError`` if it cannot be read."""
    import tomllib

    try:
        with file.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}. Make it readable, or give another TOML file."
        ) from error
    except (ValueError, RecursionError) as error:
        # Invalid UTF-8 is also a ValueError. The message quotes no value, and so no secret.
        raise InputError(
            f'{file} is not TOML: {error}. Write lines such as domain = "shopping" or [[tokens]].'
        ) from error


def most_similar(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most similar to a misspelled name, if any is similar."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1)), None)
