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
SETTINGS = f'port = 9000\n[[tokens]]\ntoken = "{TOKEN}"\ntenant = "acme"\n'


@pytest.fixture(autouse=True)
def delete_setting_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        if name != "home":
            monkeypatch.delenv(f"CASEWRIGHT_{name.upper()}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    return path


def test_config_prints_value_and_origin_of_every_setting(tmp_path: Path) -> None:
    completed = run(tmp_path, "config")
    assert completed.returncode == 0, completed.stderr
    rows = [line.split() for line in completed.stdout.splitlines()]
    assert [row[0] for row in rows] == list(Settings.model_fields)
    assert ["port", "8000", "default"] in rows
    assert ["home", str(tmp_path), "CASEWRIGHT_HOME"] in rows


def test_config_json_lists_every_setting_with_value_origin_and_description(
    tmp_path: Path, settings_file: Path
) -> None:
    report = result(run(tmp_path, "config", "--config", settings_file, "--json"))
    assert report["file"] == str(settings_file)
    assert report["settings"].keys() == Settings.model_fields.keys()
    port = report["settings"]["port"]
    assert (port["value"], port["origin"]) == (9000, "file")
    assert port["where"] == f"port in {settings_file}"
    assert "65535" in port["about"]
    assert report["settings"]["host"]["origin"] == "default"


def test_every_setting_has_a_description(tmp_path: Path) -> None:
    settings = result(run(tmp_path, "config", "--json"))["settings"]
    assert all(setting["about"] for setting in settings.values())


def test_config_masks_tokens_in_text_and_json(tmp_path: Path, settings_file: Path) -> None:
    for options in ((), ("--json",)):
        completed = run(tmp_path, "config", "--config", settings_file, *options)
        assert completed.returncode == 0
        assert TOKEN not in completed.stdout + completed.stderr
        assert "**********" in completed.stdout
        assert "acme" in completed.stdout


def test_invalid_setting_prints_one_line_and_exits_with_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_PORT", "x")
    assert one_line_error(run(tmp_path, "config")).startswith("CASEWRIGHT_PORT: 'x' cannot be")
    report = json.loads(run(tmp_path, "config", "--json").stdout)
    assert report["error"]["kind"] == "InputError"


def test_misspelt_variable_of_a_setting_gets_a_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_PLANER", "case")
    completed = run(tmp_path, "config", "--json")
    assert "CASEWRIGHT_PLANER is unknown. Did you mean CASEWRIGHT_PLANNER?" in completed.stderr
    assert result(completed)["settings"]["planner"]["value"] is None


def test_domain_variables_and_unrelated_variables_give_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings_file: Path
) -> None:
    monkeypatch.setenv("CASEWRIGHT_CONFIG", str(settings_file))
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
        mentioned = set(re.findall(r"CASEWRIGHT_[A-Z_]*[A-Z]", file.read_text(encoding="utf-8")))
        assert mentioned <= known, file


def test_config_prints_no_control_characters_of_a_value(tmp_path: Path) -> None:
    settings_file = tmp_path / "own.toml"
    settings_file.write_text('adapter = "\\u001b[2Jgone"', encoding="utf-8")
    for options in ((), ("--json",)):
        output = run(tmp_path, "config", "--config", settings_file, *options).stdout
        assert "\x1b" not in output
        assert "[2Jgone" in output
