"""Tokens expire, and their file is read again without a restart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from casewright.serve.service import tokens as module
from casewright.serve.service.tokens import Tokens
from casewright.serve.settings.settings import load_settings
from casewright.serve.settings.tokens import Grant, TokensFile, read_tokens

OLD, NEW = "old-token-0123456789", "new-token-0123456789"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of tokens, which is looked at with every request."""
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.0)
    return written(tmp_path / "tokens.toml", OLD)


def written(file: Path, *tokens: str) -> Path:
    file.write_text("".join(f'[[tokens]]\ntoken = "{one}"\ntenant = "acme"\n' for one in tokens))
    return file


def tokens_of(file: Path) -> Tokens:
    settings = load_settings(tokens_file=file).settings
    return Tokens(read_tokens(settings), TokensFile(settings).reread)


def test_expired_token_identifies_no_tenant(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    ends = {OLD: now - timedelta(seconds=1), NEW: now + timedelta(hours=1)}
    tokens = Tokens({token: Grant("acme", end) for token, end in ends.items()})
    assert tokens.tenant(OLD) is None
    assert tokens.tenant(NEW) == "acme"
    file = written(tmp_path / "tokens.toml", OLD)
    file.write_text(file.read_text() + "expires = 2020-01-31T00:00:00+01:00\n")
    assert tokens_of(file).tenant(OLD) is None


def test_added_and_removed_tokens_take_effect_without_a_restart(file: Path) -> None:
    tokens = tokens_of(file)
    assert tokens.tenant(OLD) == "acme"
    written(file, OLD, NEW)
    assert (tokens.tenant(OLD), tokens.tenant(NEW)) == ("acme", "acme")
    written(file.with_name("next"), NEW).replace(file)
    assert (tokens.tenant(OLD), tokens.tenant(NEW)) == (None, "acme")


def test_emptied_tokens_file_refuses_every_token(file: Path) -> None:
    tokens = tokens_of(file)
    file.write_text("tokens = []")
    assert tokens.tenant(OLD) is None
    assert tokens, "tokens are asked for still"


def test_damaged_or_missing_tokens_file_keeps_the_tokens_and_is_logged(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = tokens_of(file)
    file.write_text(f'[[tokens]]\ntoken = "{NEW}')
    assert tokens.tenant(OLD) == "acme"
    file.unlink()
    assert tokens.tenant(OLD) == "acme"
    assert len(caplog.messages) == 2
    assert NEW not in caplog.text
    written(file, NEW)
    assert (tokens.tenant(OLD), tokens.tenant(NEW)) == (None, "acme")
