"""`chat`, `serve` and the Studio graph open a domain with all settings."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from casewright.errors import InputError
from casewright.planner.named import ModelSettings
from casewright.serve.session.studio import make_graph
from tests.serve.helpers import run

CHOSEN = {
    "DOMAIN": "documents",
    "PLANNER": "local:some-model",
    "ENCODER": "some-encoder",
    "FEEDBACK": "offline",
    "ADAPTER": "some-adapter",
    "DEVICE": "cpu",
    "DTYPE": "float32",
}


def studio(home: Path) -> None:
    with pytest.raises(InputError):
        asyncio.run(make_graph())


def chat(home: Path) -> subprocess.CompletedProcess[str]:
    return run(home, "chat")


def serve(home: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    return run(home, "serve", "--port", "0", "--without-tokens")


@pytest.mark.parametrize("begin", [chat, serve, studio])
def test_chat_serve_and_studio_pass_every_setting_to_the_session(
    begin: Callable[[Path], object], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CHOSEN.items():
        monkeypatch.setenv(f"CASEWRIGHT_{name}", value)
    refused = InputError("Enough is known.")
    with patch("casewright.serve.session.session.open_session", side_effect=refused) as opening:
        begin(home)
    (domain, planner, _), more = opening.call_args
    assert (domain.name, planner) == (CHOSEN["DOMAIN"], CHOSEN["PLANNER"])
    assert (more["encoder_name"], more["feedback"]) == (CHOSEN["ENCODER"], CHOSEN["FEEDBACK"])
    assert more["model"] == ModelSettings(CHOSEN["ADAPTER"], CHOSEN["DEVICE"], CHOSEN["DTYPE"])
