"""The bearer tokens of the service, from the settings and from their own file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from casewright.errors import InputError
from casewright.serve.settings import Settings, Token
from casewright.serve.settings_file import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    tokens: tuple[Token, ...]


def read_tokens(settings: Settings) -> dict[str, str]:
    """Return the tenant of every bearer token: those of ``tokens`` and of ``tokens_file``.

    Raises:
        InputError: The file cannot be read or is not of that form, or a token is given twice.
    """
    found: dict[str, str] = {}
    for one in (*settings.tokens, *_of_file(settings.tokens_file)):
        token = one.token.get_secret_value()
        if token in found:
            raise InputError(
                f"A token of the tenant {one.tenant!r} is also given for {found[token]!r}. Give "
                "each token once, in tokens or in tokens_file."
            )
        found[token] = one.tenant
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
