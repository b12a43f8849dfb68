"""Settings: precedence of sources, errors of invalid values, and effects on commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.planner.language_model.device import DTYPES
from casewright.serve.settings.settings import Loaded, Settings, choose_folders, load_settings
from casewright.serve.settings.tokens import Grant, read_tokens
from casewright.stores import paths
from tests.serve.helpers import REFUNDS, copied_home, new_home, one_line_error, result, run

TOKEN, OTHER = "a-token-that-nobody-guesses", "another-token-of-some-length"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Provide an empty folder, and no settings in the environment or the user's file."""
    for name in Settings.model_fields:
        if name != "home":
            monkeypatch.delenv(f"CASEWRIGHT_{name.upper()}", raising=False)
    monkeypatch.delenv("CASEWRIGHT_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    yield
    paths.choose_folders()


def add_file(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def port_and_origin(file: Path | None = None, **flags: Any) -> tuple[Any, str, str]:
    """Return the port, as an example of a setting, and its origin."""
    loaded = load_settings(file, **flags)
    origin = loaded.origins["port"]
    return loaded.settings.port, origin.kind, origin.where


def load_error(file: Path | None = None, **flags: Any) -> str:
    with pytest.raises(InputError) as raised:
        load_settings(file, **flags)
    return str(raised.value)


def test_every_setting_has_its_default_without_any_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CASEWRIGHT_HOME")
    loaded = load_settings()
    assert {str(origin) for origin in loaded.origins.values()} == {"default"}
    assert loaded.origins.keys() == Settings.model_fields.keys()
    assert loaded.settings.host == "127.0.0.1"
    assert loaded.settings.without_tokens is False


def test_sources_have_the_precedence_flag_environment_file_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = add_file(tmp_path / "own.toml", "port = 1")
    assert port_and_origin() == (8000, "default", "")
    assert port_and_origin(file) == (1, "file", f"port in {file}")
    monkeypatch.setenv("CASEWRIGHT_PORT", "2")
    assert port_and_origin(file) == (2, "environment", "CASEWRIGHT_PORT")
    assert port_and_origin(file, port=3) == (3, "flag", "--port")


def test_absent_flag_and_empty_variable_leave_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CASEWRIGHT_PORT", "")
    assert port_and_origin(port=None) == (8000, "default", "")


def test_settings_file_is_searched_in_flag_variable_working_folder_and_user_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    add_file(tmp_path / "user" / "casewright" / "casewright.toml", "port = 1")
    assert port_and_origin()[0] == 1
    add_file(tmp_path / "casewright.toml", "port = 2")
    assert port_and_origin()[0] == 2
    monkeypatch.setenv("CASEWRIGHT_CONFIG", str(add_file(tmp_path / "variable.toml", "port = 3")))
    assert port_and_origin()[0] == 3
    assert port_and_origin(add_file(tmp_path / "flag.toml", "port = 4"))[0] == 4


def test_relative_paths_are_relative_to_the_folder_of_the_settings_file(tmp_path: Path) -> None:
    file = add_file(tmp_path / "far" / "away.toml", 'tokens_file = "here"\nthreads_file = "~/t.db"')
    settings = load_settings(file).settings
    assert settings.tokens_file == tmp_path / "far" / "here"
    assert settings.threads_file == Path.home() / "t.db"


@pytest.mark.parametrize(
    "text",
    [
        *(f'{name} = "here"' for name in ("home", "cache_folder", "tokens_file", "threads_file")),
        *(f'encoder = "{path}"' for path in ("here", "./gone", "~/gone", "/gone")),
        'adapter = "here"',
        *(f'planner = "{kind}:here"' for kind in ("local", "agent:local", "parser")),
        *(f'{name} = "huggingface:here"' for name in ("generator", "feedback")),
        'threads_url = "postgresql://evil/threads"',
    ],
)
def test_settings_file_found_in_the_working_folder_may_name_no_path(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    file = add_file(tmp_path / "casewright.toml", text)
    message = load_error()
    assert message.startswith(f"{text.partition(' ')[0]} in casewright.toml names a path")
    assert "--config casewright.toml" in message
    assert load_settings(Path("casewright.toml")).file == Path("casewright.toml")
    monkeypatch.setenv("CASEWRIGHT_CONFIG", "casewright.toml")
    assert load_settings().file == Path("casewright.toml")
    monkeypatch.delenv("CASEWRIGHT_CONFIG")
    # A file in the user's settings folder may name a path.
    user_file = add_file(tmp_path / "user" / "casewright" / "casewright.toml", text)
    file.unlink()
    assert load_settings().file == user_file


def test_settings_file_found_in_the_working_folder_may_name_models() -> None:
    add_file(Path("casewright.toml"), 'encoder = "org/name"\nplanner = "local:org/name"\nport = 2')
    assert load_settings().settings.port == 2


def test_settings_cannot_be_changed() -> None:
    settings = load_settings().settings
    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1  # type: ignore[misc]


#: Invalid settings files, and a part of their error message.
BAD_FILES = {
    "unknown key": ("prot = 1", "'prot' is not a setting. Write 'port'."),
    "unknown key without a similar one": ("xyzzy = 1", "casewright config lists the settings"),
    "table": ("[service]\nport = 1", "'service' is not a setting"),
    "no TOML": ("port 1", "FILE is not TOML"),
    "port": ("port = 65536", "port in FILE: 65536 cannot be the setting port. Give a port up to"),
    "invalid number": ('max_concurrency = "many"', "'many' cannot be the setting max_concurrency"),
    "seconds without end": ("request_seconds = inf", "Give seconds a request may take, above 0."),
    "unknown choice": ('retain = "all"', "Give answers kept as cases: off, verified or"),
    "unknown planner": ('planner = "nope"', "planner in FILE: There is no planner 'nope'."),
    "unknown generator": ('generator = "nope"', "generator in FILE: There is no generator 'nope'."),
    "unknown domain": ('domain = "nope"', "domain in FILE: There is no domain 'nope'."),
    "unknown judge": ('feedback = "nope"', "feedback in FILE: There is no judge 'nope'."),
    "unknown number format": ('dtype = "int4"', "Give a local model's number type: float32"),
    "invalid URL": ("threads_url = 1", "conversations: postgresql://USER@HOST/NAME."),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_error_of_an_invalid_settings_file_names_file_key_and_valid_values(
    name: str, tmp_path: Path
) -> None:
    text, expected = BAD_FILES[name]
    file = add_file(tmp_path / "bad.toml", text)
    message = load_error(file)
    assert expected.replace("FILE", str(file)) in message
    assert str(file) in message


def test_error_of_an_invalid_domain_setting_shows_the_form_file_py_name(tmp_path: Path) -> None:
    file = add_file(tmp_path / "bad.toml", "domain = 1")
    assert "or, except in a settings file, FILE.py:NAME." in load_error(file)


def test_settings_file_that_is_binary_or_missing_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(b"\xff\xfe")
    assert "is not TOML" in load_error(file)
    assert "--config: none.toml is not a file" in load_error(Path("none.toml"))


def test_missing_settings_file_named_by_the_variable_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CASEWRIGHT_CONFIG", "none.toml")
    assert load_error().startswith("CASEWRIGHT_CONFIG: none.toml is not a file")


def test_error_of_an_invalid_variable_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEWRIGHT_PORT", "http")
    assert load_error() == (
        "CASEWRIGHT_PORT: 'http' cannot be the setting port. "
        "Give a port up to 65535; 0 takes a free one."
    )
    assert port_and_origin(port=1)[0] == 1


def test_error_of_an_invalid_flag_names_the_flag() -> None:
    assert load_error(max_body_bytes=0).startswith("--max-body-bytes: 0 cannot be")


def test_every_number_format_of_a_local_model_can_be_set() -> None:
    assert [load_settings(dtype=name).settings.dtype for name in DTYPES] == [*DTYPES]


def test_variables_of_domains_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEWRIGHT_LEGAL_CONTEXT", "full")
    assert "legal_context" not in load_settings().origins


#: Invalid tokens, which no error may contain.
BAD_TOKENS = {
    "no JSON": f'[{{"token": "{TOKEN}"',
    "short": '[{"token": "hunter2", "tenant": "acme"}]',
    "not visible": f'[{{"token": "{TOKEN} {TOKEN}", "tenant": "acme"}}]',
    "no tenant": f'[{{"token": "{TOKEN}"}}]',
    "empty tenant": f'[{{"token": "{TOKEN}", "tenant": ""}}]',
    "end of no zone": f'[{{"token": "{TOKEN}", "tenant": "acme", "expires": "2027-01-31"}}]',
    "more than a token": f'[{{"token": "{TOKEN}", "tenant": "acme", "admin": true}}]',
    "mapping": f'{{"{TOKEN}": "acme"}}',
    "twice": json.dumps([{"token": TOKEN, "tenant": "acme"}, {"token": TOKEN, "tenant": "else"}]),
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_error_of_invalid_tokens_contains_no_token(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_TOKENS", BAD_TOKENS[name])
    message = load_error()
    assert message.startswith("CASEWRIGHT_TOKENS: the value cannot be the setting tokens.")
    assert TOKEN not in message
    assert "hunter2" not in message


def test_tokens_of_variable_and_file_are_read_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CASEWRIGHT_TOKENS", json.dumps([{"token": TOKEN, "tenant": "acme"}]))
    add_file(tmp_path / "tokens.toml", f'[[tokens]]\ntoken = "{OTHER}"\ntenant = "else"\n')
    loaded = load_settings(tokens_file="tokens.toml")
    assert read_tokens(loaded.settings) == {TOKEN: Grant("acme"), OTHER: Grant("else")}
    assert TOKEN not in repr(loaded)
    assert TOKEN not in loaded.settings.model_dump_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'[[tokens]]\ntoken = "{TOKEN}"\ntenant = "else"', "also given for 'acme'"),
        ('[[tokens]]\ntoken = "short"\ntenant = "else"', "entry 1 of [[tokens]]"),
        (f'"{OTHER}" = "acme"', "tokens_file"),
        ("tokens = 3", "tokens_file"),
    ],
)
def test_error_of_an_invalid_tokens_file_contains_no_token(
    text: str, message: str, tmp_path: Path
) -> None:
    add_file(tmp_path / "tokens.toml", text)
    tokens = [{"token": TOKEN, "tenant": "acme"}]
    settings = load_settings(tokens=tokens, tokens_file="tokens.toml").settings
    with pytest.raises(InputError) as raised:
        read_tokens(settings)
    assert message in str(raised.value)
    assert TOKEN not in str(raised.value)
    assert OTHER not in str(raised.value)


def test_error_of_a_missing_tokens_file_asks_for_another_toml_file() -> None:
    with pytest.raises(InputError, match=r"^none\.toml cannot be read: .* give another TOML file"):
        read_tokens(load_settings(tokens_file="none.toml").settings)


def test_settings_file_and_variables_set_the_folders_of_stores_and_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CASEWRIGHT_HOME")
    file = add_file(tmp_path / "own.toml", 'home = "h"\ncache_folder = "c"')

    def folders(loaded: Loaded) -> tuple[Path, Path]:
        choose_folders(loaded)
        return paths.data_folder(), paths.cache_folder()

    assert folders(load_settings(file)) == (tmp_path / "h" / "data", tmp_path / "c")
    monkeypatch.setenv("CASEWRIGHT_HOME", "/elsewhere")
    assert folders(load_settings(file))[0] == Path("/elsewhere/data")
    monkeypatch.setenv("CASEWRIGHT_CACHE_FOLDER", "/fast")
    assert folders(load_settings(file))[1] == Path("/fast")


def test_flags_override_domain_and_planner_of_the_settings_file(home: Path, tmp_path: Path) -> None:
    file = add_file(tmp_path / "own.toml", 'domain = "legal"\nplanner = "nope:model"')
    shop = ("--config", file, "--domain", "shopping", "--json")
    assert "nope:model" in run(home, "plan", REFUNDS, *shop).stderr
    assert result(run(home, "plan", REFUNDS, *shop, "--planner", "case"))["planner"] == "case"
    answer = result(run(home, "ask", REFUNDS, *shop, "--planner", "case"))
    assert answer["plan"] == "s1 = customer_support(query=question)"
    error = one_line_error(run(home, "plan", "--config", add_file(file, 'domain = "no"'), REFUNDS))
    assert error.startswith(f"domain in {file}: There is no domain 'no'.")


def test_environment_variables_select_planner_and_generator(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_PLANNER", "nope:model")
    assert "nope:model" in one_line_error(run(home, "plan", REFUNDS))
    monkeypatch.setenv("CASEWRIGHT_PLANNER", "case")
    monkeypatch.setenv("CASEWRIGHT_GENERATOR", "nope:writer")
    assert "nope:writer" in one_line_error(run(home, "ask", REFUNDS))


def test_unused_setting_of_a_file_is_ignored_and_unused_flag_is_refused(
    home: Path, tmp_path: Path
) -> None:
    file = add_file(tmp_path / "own.toml", 'device = "cpu"\nadapter = "a"\nfeedback = "offline"')
    answer = result(run(home, "ask", REFUNDS, "--config", file, "--json"))
    assert answer["planner"]["name"] == "case"
    assert "--device" in one_line_error(run(home, "plan", REFUNDS, "--device", "cpu"))
    options = ("--domain", "math24", "--feedback", "offline")
    assert "--feedback" in one_line_error(run(home, "ask", REFUNDS, *options))


def test_domains_command_uses_the_home_of_a_named_settings_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_home(tmp_path / "other")
    path = copied_home(home, tmp_path / "copy")
    file = add_file(other / "casewright.toml", f'home = "{path}"')
    # CASEWRIGHT_HOME would override the file. A file may set the home only if it is named.
    monkeypatch.setattr(
        "tests.serve.helpers.environment", lambda _: {"CASEWRIGHT_HOME": "", "COLUMNS": "200"}
    )
    assert "home in casewright.toml" in one_line_error(run(other, "domains"))
    monkeypatch.setenv("CASEWRIGHT_CONFIG", str(file))
    shop = next(row for row in result(run(other, "domains", "--json")) if row["name"] == "shopping")
    assert shop["folder"] == str(path / "data" / "shopping")
    assert shop["built"]
    add_file(other / "casewright.toml", "nope = 1")
    assert "'nope' is not a setting" in one_line_error(run(other, "domains"))
