"""`casewright config`: every value with its origin, and no secret."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from casewright.extensions import extensions
from casewright.serve.settings.settings import OTHER_VARIABLES, Settings
from tests.layout.sources import ROOM_FILES
from tests.serve.helpers import one_line_error, result, run

TOKEN = "a-token-that-nobody-guesses"
TOKENS = f'port = 9000\n[[tokens]]\ntoken = "{TOKEN}"\ntenant = "acme"\n'


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        if name != "home":
            monkeypatch.delenv(f"CASEWRIGHT_{name.upper()}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "own.toml"
    made.write_text(TOKENS, encoding="utf-8")
    return made


def test_config_prints_value_and_origin_of_every_setting(tmp_path: Path) -> None:
    done = run(tmp_path, "config")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(Settings.model_fields)
    assert ["port", "8000", "default"] in [line.split() for line in done.stdout.splitlines()]
    assert ["home", str(tmp_path), "CASEWRIGHT_HOME"] in [
        line.split() for line in done.stdout.splitlines()
    ]


def test_config_json_lists_every_setting_with_value_origin_and_description(
    tmp_path: Path, file: Path
) -> None:
    told = result(run(tmp_path, "config", "--config", file, "--json"))
    assert told["file"] == str(file)
    assert told["settings"].keys() == Settings.model_fields.keys()
    port = told["settings"]["port"]
    assert (port["value"], port["origin"], port["where"]) == (9000, "file", f"port in {file}")
    assert "65535" in port["about"]
    assert told["settings"]["host"]["origin"] == "default"


def test_every_setting_has_a_description(tmp_path: Path) -> None:
    told = result(run(tmp_path, "config", "--json"))["settings"]
    assert all(one["about"] for one in told.values())


def test_config_masks_tokens_in_text_and_json(tmp_path: Path, file: Path) -> None:
    for more in ((), ("--json",)):
        done = run(tmp_path, "config", "--config", file, *more)
        assert done.returncode == 0
        assert TOKEN not in done.stdout + done.stderr
        assert "**********" in done.stdout
        assert "acme" in done.stdout


def test_invalid_setting_prints_one_line_and_exits_with_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_PORT", "x")
    assert one_line_error(run(tmp_path, "config")).startswith("CASEWRIGHT_PORT: 'x' cannot be")
    told = json.loads(run(tmp_path, "config", "--json").stdout)
    assert told["error"]["kind"] == "InputError"


def test_misspelt_variable_of_a_setting_gets_a_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_PLANER", "case")
    done = run(tmp_path, "config", "--json")
    assert "CASEWRIGHT_PLANER is unknown. Did you mean CASEWRIGHT_PLANNER?" in done.stderr
    assert result(done)["settings"]["planner"]["value"] is None


def test_domain_variables_and_unrelated_variables_give_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    monkeypatch.setenv("CASEWRIGHT_CONFIG", str(file))
    monkeypatch.setenv("CASEWRIGHT_DEBUG", "1")
    for name in ("ALQA", "GNUBG", "LEGAL_CONTEXT", "LEGAL_EXTRACTOR", "QDRANT_URL"):
        monkeypatch.setenv(f"CASEWRIGHT_{name}", "x")
    assert run(tmp_path, "config").stderr == ""
    monkeypatch.setenv("CASEWRIGHT_LEGAL_CONTEX", "full")
    assert "Did you mean CASEWRIGHT_LEGAL_CONTEXT?" in run(tmp_path, "config").stderr


def test_every_variable_named_in_the_source_is_a_known_variable() -> None:
    known = {f"CASEWRIGHT_{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES
    known |= extensions("variable").keys()
    for file in ROOM_FILES:
        named = set(re.findall(r"CASEWRIGHT_[A-Z_]*[A-Z]", file.read_text(encoding="utf-8")))
        assert named <= known, file


def test_config_prints_no_control_characters_of_a_value(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('adapter = "\\u001b[2Jgone"', encoding="utf-8")
    for more in ((), ("--json",)):
        shown = run(tmp_path, "config", "--config", file, *more).stdout
        assert "\x1b" not in shown
        assert "[2Jgone" in shown
