"""The bearer tokens of the service, from the settings and from their own file."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from casewright.errors import InputError
from casewright.serve.settings.file import read_toml
from casewright.serve.settings.settings import Settings, Token

if TYPE_CHECKING:
    from collections.abc import Iterable


log = logging.getLogger("casewright.service")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token gives.

    Attributes:
        tenant: Whose requests come with it.
        expires: When it is none any more; never without one.
    """

    tenant: str
    expires: datetime | None = None


class TokensFile:
    """Reads the tokens again once their file was changed, replaced or removed.

    Args:
        settings: The settings that the tokens were read from.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen = self._stamp()

    def again(self) -> dict[str, Grant] | None:
        """Return the tokens as they are now; ``None`` where they stay as they were.

        What cannot be read is logged, and changes nothing: a file that is being written withdraws
        no token, and one that is damaged leaves the service to its tenants.
        """
        if (stamp := self._stamp()) == self._seen:
            return None
        self._seen = stamp
        try:
            return read_tokens(self._settings)
        except InputError as error:
            log.error("The tokens stay as they were: %s", error)
            return None

    def _stamp(self) -> tuple[int, ...]:
        if self._settings.tokens_file is None:
            return ()
        try:
            found = os.stat(self._settings.tokens_file)
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size


def read_tokens(settings: Settings) -> dict[str, Grant]:
    """Return what every bearer token gives: those of ``tokens`` and of ``tokens_file``.

    Raises:
        InputError: The file cannot be read or is not of that form, or a token is given twice.
    """
    found: dict[str, Grant] = {}
    for one in (*settings.tokens, *_of_file(settings.tokens_file)):
        token = one.token.get_secret_value()
        if token in found:
            raise InputError(
                f"A token of the tenant {one.tenant!r} is also given for {found[token].tenant!r}. "
                "Give each token once, in tokens or in tokens_file."
            )
        found[token] = Grant(one.tenant, one.expires)
    return found


def _of_file(file: Path | None) -> Iterable[Token]:
    if file is None:
        return ()
    said = read_toml(file)
    try:
        return _File.model_validate(said).tokens
    except ValidationError as error:
        # Which one, never what it is.
        where = [part for part in error.errors()[0]["loc"] if isinstance(part, int)]
        which = f"entry {where[0] + 1} of [[tokens]]" if where else "what it holds"
        raise InputError(
            f"tokens_file {file}: {which} cannot be read as a token. "
            f"Give {Settings.model_fields['tokens'].description}."
        ) from None
