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

VALUES = {
    "DOMAIN": "documents",
    "PLANNER": "local:some-model",
    "ENCODER": "some-encoder",
    "FEEDBACK": "offline",
    "ADAPTER": "some-adapter",
    "DEVICE": "cpu",
    "DTYPE": "float32",
}


def load_studio(home: Path) -> None:
    with pytest.raises(InputError):
        asyncio.run(make_graph())


def run_chat(home: Path) -> subprocess.CompletedProcess[str]:
    return run(home, "chat")


def run_serve(home: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    return run(home, "serve", "--port", "0", "--without-tokens")


@pytest.mark.parametrize("start", [run_chat, run_serve, load_studio])
def test_chat_serve_and_studio_pass_every_setting_to_the_session(
    start: Callable[[Path], object], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in VALUES.items():
        monkeypatch.setenv(f"CASEWRIGHT_{name}", value)
    refused = InputError("Enough is known.")
    with patch("casewright.serve.session.session.open_session", side_effect=refused) as opening:
        start(home)
    (domain, planner, _), options = opening.call_args
    assert (domain.name, planner) == (VALUES["DOMAIN"], VALUES["PLANNER"])
    assert (options["encoder_name"], options["feedback"]) == (VALUES["ENCODER"], VALUES["FEEDBACK"])
    assert options["model"] == ModelSettings(VALUES["ADAPTER"], VALUES["DEVICE"], VALUES["DTYPE"])
