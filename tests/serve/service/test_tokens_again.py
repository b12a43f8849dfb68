"""Tokens expire, and their file is read again without a restart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from casewright.serve.service import tokens as tokens_module
from casewright.serve.service.tokens import Tokens
from casewright.serve.settings.settings import load_settings
from casewright.serve.settings.tokens import Grant, TokensFile, read_tokens

OLD, NEW = "old-token-0123456789", "new-token-0123456789"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of tokens that the service checks at every request."""
    monkeypatch.setattr(tokens_module, "CHECK_SECONDS", 0.0)
    return write_tokens(tmp_path / "tokens.toml", OLD)


def write_tokens(file: Path, *tokens: str) -> Path:
    entries = (f'[[tokens]]\ntoken = "{token}"\ntenant = "acme"\n' for token in tokens)
    file.write_text("".join(entries))
    return file


def load_tokens(file: Path) -> Tokens:
    settings = load_settings(tokens_file=file).settings
    return Tokens(read_tokens(settings), TokensFile(settings).reread)


def test_expired_token_identifies_no_tenant(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    expiries = {OLD: now - timedelta(seconds=1), NEW: now + timedelta(hours=1)}
    tokens = Tokens({token: Grant("acme", expiry) for token, expiry in expiries.items()})
    assert (tokens.tenant(OLD), tokens.tenant(NEW)) == (None, "acme")
    file = write_tokens(tmp_path / "tokens.toml", OLD)
    file.write_text(file.read_text() + "expires = 2020-01-31T00:00:00+01:00\n")
    assert load_tokens(file).tenant(OLD) is None


def test_added_and_removed_tokens_take_effect_without_a_restart(file: Path) -> None:
    tokens = load_tokens(file)
    assert tokens.tenant(OLD) == "acme"
    write_tokens(file, OLD, NEW)
    assert (tokens.tenant(OLD), tokens.tenant(NEW)) == ("acme", "acme")
    write_tokens(file.with_name("next"), NEW).replace(file)
    assert (tokens.tenant(OLD), tokens.tenant(NEW)) == (None, "acme")


def test_emptied_tokens_file_refuses_every_token(file: Path) -> None:
    tokens = load_tokens(file)
    file.write_text("tokens = []")
    assert tokens.tenant(OLD) is None
    assert tokens, "the service still requires a token"


def test_damaged_or_missing_tokens_file_keeps_the_tokens_and_is_logged(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = load_tokens(file)
    file.write_text(f'[[tokens]]\ntoken = "{NEW}')
    assert tokens.tenant(OLD) == "acme"
    file.unlink()
    assert tokens.tenant(OLD) == "acme"
    assert len(caplog.messages) == 2
    assert NEW not in caplog.text
    write_tokens(file, NEW)
    assert (tokens.tenant(OLD), tokens.tenant(NEW)) == (None, "acme")
