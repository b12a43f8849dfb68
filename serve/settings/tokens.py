"""Reads the bearer tokens of the service from the settings and a file of tokens."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from casewright.errors import InputError
from casewright.serve.settings.file import read_toml
from casewright.serve.settings.settings import Settings, Token

log = logging.getLogger("casewright.service")


class _TokensTable(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission to send requests as a tenant, until ``expires`` if an end is given."""

    tenant: str
    expires: datetime | None = None


class TokensFile:
    """Reads all tokens again if ``tokens_file`` has changed, also the tokens in the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._last_file_stamp = self._file_stamp()

    def reread(self) -> dict[str, Grant] | None:
        """Return each token's grant; ``None`` if the file is unchanged or cannot be read.

        A file that is missing, incomplete or damaged revokes no tokens; the error is logged.
        """
        if (stamp := self._file_stamp()) == self._last_file_stamp:
            return None
        self._last_file_stamp = stamp
        try:
            return read_tokens(self._settings)
        except InputError as error:
            log.error("The tokens stay as they were: %s", error)
            return None

    def _file_stamp(self) -> tuple[int, ...]:
        """Return numbers that change if the file does; empty if no file can be found."""
        if self._settings.tokens_file is None:
            return ()
        try:
            status = os.stat(self._settings.tokens_file)
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_size


def read_tokens(settings: Settings) -> dict[str, Grant]:
    """Return the grant of each bearer token in the settings and in ``tokens_file``."""
    grants: dict[str, Grant] = {}
    for entry in (*settings.tokens, *_read_tokens_file(settings.tokens_file)):
        token = entry.token.get_secret_value()
        if token in grants:
            raise InputError(
                f"A token of the tenant {entry.tenant!r} is also given for "
                f"{grants[token].tenant!r}. Give each token once, in tokens or in tokens_file."
            )
        grants[token] = Grant(entry.tenant, entry.expires)
    return grants


def _read_tokens_file(file: Path | None) -> tuple[Token, ...]:
    if file is None:
        return ()
    values = read_toml(file)
    try:
        return _TokensTable.model_validate(values).tokens
    except ValidationError as error:
        # The message names the position of the entry, and never the token.
        indices = [part for part in error.errors()[0]["loc"] if isinstance(part, int)]
        entry = f"entry {indices[0] + 1} of [[tokens]]" if indices else "its content"
        raise InputError(
            f"tokens_file {file}: {entry} cannot be read as a token. "
            f"Give {Settings.model_fields['tokens'].description}."
        ) from None
