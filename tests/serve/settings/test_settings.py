"""Settings: which source wins, what is refused, and what commands do with them."""

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
    """An empty folder, an environment without settings, and no file of the user's own."""
    for name in Settings.model_fields:
        if name != "home":
            monkeypatch.delenv(f"CASEWRIGHT_{name.upper()}", raising=False)
    monkeypatch.delenv("CASEWRIGHT_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    yield
    paths.choose_folders()


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def port_and_origin(file: Path | None = None, **flags: Any) -> tuple[Any, str, str]:
    """The port, and where it came from: the setting that stands for all."""
    found = load_settings(file, **flags)
    origin = found.origins["port"]
    return found.settings.port, origin.kind, origin.where


def error_of(file: Path | None = None, **flags: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_settings(file, **flags)
    return str(caught.value)


def test_every_setting_has_its_default_without_any_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CASEWRIGHT_HOME")
    found = load_settings()
    assert {str(origin) for origin in found.origins.values()} == {"default"}
    assert found.origins.keys() == Settings.model_fields.keys()
    assert found.settings.host == "127.0.0.1"
    assert found.settings.without_tokens is False


def test_flag_beats_environment_beats_file_beats_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = written(tmp_path / "own.toml", "port = 1")
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
    written(tmp_path / "user" / "casewright" / "casewright.toml", "port = 1")
    assert port_and_origin()[0] == 1
    written(tmp_path / "casewright.toml", "port = 2")
    assert port_and_origin()[0] == 2
    monkeypatch.setenv("CASEWRIGHT_CONFIG", str(written(tmp_path / "variable.toml", "port = 3")))
    assert port_and_origin()[0] == 3
    assert port_and_origin(written(tmp_path / "flag.toml", "port = 4"))[0] == 4


def test_relative_paths_are_relative_to_the_folder_of_the_settings_file(tmp_path: Path) -> None:
    file = written(tmp_path / "far" / "away.toml", 'tokens_file = "here"\nthreads_file = "~/t.db"')
    settings = load_settings(file).settings
    assert settings.tokens_file == tmp_path / "far" / "here"
    assert settings.threads_file == Path.home() / "t.db"


@pytest.mark.parametrize(
    "text",
    [
        *(f'{name} = "here"' for name in ("home", "cache_folder", "tokens_file", "threads_file")),
        *(f'encoder = "{place}"' for place in ("here", "./gone", "~/gone", "/gone")),
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
    file = written(tmp_path / "casewright.toml", text)
    said = error_of()
    assert said.startswith(f"{text.partition(' ')[0]} in casewright.toml names a path")
    assert "--config casewright.toml" in said
    assert load_settings(Path("casewright.toml")).file == Path("casewright.toml")
    monkeypatch.setenv("CASEWRIGHT_CONFIG", "casewright.toml")
    assert load_settings().file == Path("casewright.toml")
    monkeypatch.delenv("CASEWRIGHT_CONFIG")
    # The user's own settings folder is the user's own.
    written(tmp_path / "user" / "casewright" / "casewright.toml", text)
    file.unlink()
    assert load_settings().file is not None


def test_settings_file_found_in_the_working_folder_may_name_models() -> None:
    written(Path("casewright.toml"), 'encoder = "org/name"\nplanner = "local:org/name"\nport = 2')
    assert load_settings().settings.port == 2


def test_settings_cannot_be_changed() -> None:
    settings = load_settings().settings
    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1  # type: ignore[misc]


#: A file, and what its error must say.
BAD_FILES = {
    "unknown key": ("prot = 1", "'prot' is not a setting. Write 'port'."),
    "unknown key like no other": ("xyzzy = 1", "casewright config lists the settings"),
    "table": ("[service]\nport = 1", "'service' is not a setting"),
    "no TOML": ("port 1", "FILE is not TOML"),
    "port": ("port = 65536", "port in FILE: 65536 cannot be the setting port. Give a port up to"),
    "no number": ('max_concurrency = "many"', "'many' cannot be the setting max_concurrency"),
    "seconds without end": ("request_seconds = inf", "Give seconds a request may take, above 0."),
    "no choice": ('retain = "all"', "Give answers kept as cases: off, verified or"),
    "unknown planner": ('planner = "nope"', "planner in FILE: There is no planner 'nope'."),
    "unknown generator": ('generator = "nope"', "generator in FILE: There is no generator 'nope'."),
    "unknown domain": ('domain = "nope"', "domain in FILE: There is no domain 'nope'."),
    "unknown judge": ('feedback = "nope"', "feedback in FILE: There is no judge 'nope'."),
    "unknown numbers": ('dtype = "int4"', "Give a local model's numbers: float32"),
    "no address": ("threads_url = 1", "conversations: postgresql://USER@HOST/NAME."),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_error_of_an_invalid_settings_file_names_file_key_and_valid_values(
    name: str, tmp_path: Path
) -> None:
    text, said = BAD_FILES[name]
    file = written(tmp_path / "bad.toml", text)
    message = error_of(file)
    assert said.replace("FILE", str(file)) in message
    assert str(file) in message


def test_error_of_an_invalid_domain_setting_shows_the_form_file_py_name(tmp_path: Path) -> None:
    file = written(tmp_path / "bad.toml", "domain = 1")
    assert "or, except in a settings file, FILE.py:NAME." in error_of(file)


def test_settings_file_that_is_binary_or_missing_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(b"\xff\xfe")
    assert "is not TOML" in error_of(file)
    assert "--config: none.toml is not a file" in error_of(Path("none.toml"))


def test_missing_settings_file_of_the_variable_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CASEWRIGHT_CONFIG", "none.toml")
    assert error_of().startswith("CASEWRIGHT_CONFIG: none.toml is not a file")


def test_error_of_an_invalid_variable_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEWRIGHT_PORT", "http")
    assert error_of() == (
        "CASEWRIGHT_PORT: 'http' cannot be the setting port. "
        "Give a port up to 65535; 0 takes a free one."
    )
    assert port_and_origin(port=1)[0] == 1


def test_error_of_an_invalid_flag_names_the_flag() -> None:
    assert error_of(max_body_bytes=0).startswith("--max-body-bytes: 0 cannot be")


def test_every_number_format_of_a_local_model_can_be_set() -> None:
    assert [load_settings(dtype=name).settings.dtype for name in DTYPES] == [*DTYPES]


def test_variables_of_domains_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEWRIGHT_LEGAL_CONTEXT", "full")
    assert "legal_context" not in load_settings().origins


#: Bad tokens, none of which may be told.
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
    message = error_of()
    assert message.startswith("CASEWRIGHT_TOKENS: the value cannot be the setting tokens.")
    assert TOKEN not in message
    assert "hunter2" not in message


def test_tokens_of_variable_and_file_are_read_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CASEWRIGHT_TOKENS", json.dumps([{"token": TOKEN, "tenant": "acme"}]))
    written(tmp_path / "tokens.toml", f'[[tokens]]\ntoken = "{OTHER}"\ntenant = "else"\n')
    found = load_settings(tokens_file="tokens.toml")
    assert read_tokens(found.settings) == {TOKEN: Grant("acme"), OTHER: Grant("else")}
    assert TOKEN not in repr(found)
    assert TOKEN not in found.settings.model_dump_json()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'[[tokens]]\ntoken = "{TOKEN}"\ntenant = "else"', "also given for 'acme'"),
        ('[[tokens]]\ntoken = "short"\ntenant = "else"', "entry 1 of [[tokens]]"),
        (f'"{OTHER}" = "acme"', "tokens_file"),
        ("tokens = 3", "tokens_file"),
    ],
)
def test_error_of_an_invalid_tokens_file_contains_no_token(
    text: str, said: str, tmp_path: Path
) -> None:
    written(tmp_path / "tokens.toml", text)
    tokens = [{"token": TOKEN, "tenant": "acme"}]
    settings = load_settings(tokens=tokens, tokens_file="tokens.toml").settings
    with pytest.raises(InputError) as caught:
        read_tokens(settings)
    assert said in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert OTHER not in str(caught.value)


def test_error_of_a_missing_tokens_file_asks_for_another_toml_file() -> None:
    with pytest.raises(InputError, match=r"^none\.toml cannot be read: .* give another TOML file"):
        read_tokens(load_settings(tokens_file="none.toml").settings)


def test_settings_file_and_variables_set_the_folders_of_stores_and_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CASEWRIGHT_HOME")
    file = written(tmp_path / "own.toml", 'home = "h"\ncache_folder = "c"')

    def folders(found: Loaded) -> tuple[Path, Path]:
        choose_folders(found)
        return paths.data_folder(), paths.cache_folder()

    assert folders(load_settings(file)) == (tmp_path / "h" / "data", tmp_path / "c")
    monkeypatch.setenv("CASEWRIGHT_HOME", "/elsewhere")
    assert folders(load_settings(file))[0] == Path("/elsewhere/data")
    monkeypatch.setenv("CASEWRIGHT_CACHE_FOLDER", "/fast")
    assert folders(load_settings(file))[1] == Path("/fast")


def test_flags_override_domain_and_planner_of_the_settings_file(home: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "own.toml", 'domain = "legal"\nplanner = "nope:model"')
    shop = ("--config", file, "--domain", "shopping", "--json")
    assert "nope:model" in run(home, "plan", REFUNDS, *shop).stderr
    assert result(run(home, "plan", REFUNDS, *shop, "--planner", "case"))["planner"] == "case"
    answer = result(run(home, "ask", REFUNDS, *shop, "--planner", "case"))
    assert answer["plan"] == "s1 = customer_support(query=question)"
    told = one_line_error(run(home, "plan", "--config", written(file, 'domain = "no"'), REFUNDS))
    assert told.startswith(f"domain in {file}: There is no domain 'no'.")


def test_variable_chooses_planner_and_generator(
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
    file = written(tmp_path / "own.toml", 'device = "cpu"\nadapter = "a"\nfeedback = "offline"')
    answer = result(run(home, "ask", REFUNDS, "--config", file, "--json"))
    assert answer["planner"]["name"] == "case"
    assert "--device" in one_line_error(run(home, "plan", REFUNDS, "--device", "cpu"))
    once = ("--domain", "math24", "--feedback", "offline")
    assert "--feedback" in one_line_error(run(home, "ask", REFUNDS, *once))


def test_domains_command_uses_the_home_of_a_named_settings_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_home(tmp_path / "other")
    place = copied_home(home, tmp_path / "copy")
    file = written(other / "casewright.toml", f'home = "{place}"')
    # The environment would beat the file, which says where code may lie: it has to be named.
    monkeypatch.setattr(
        "tests.serve.helpers.environment", lambda _: {"CASEWRIGHT_HOME": "", "COLUMNS": "200"}
    )
    assert "home in casewright.toml" in one_line_error(run(other, "domains"))
    monkeypatch.setenv("CASEWRIGHT_CONFIG", str(file))
    shop = next(one for one in result(run(other, "domains", "--json")) if one["name"] == "shopping")
    assert shop["folder"] == str(place / "data" / "shopping")
    assert shop["built"]
    written(other / "casewright.toml", "nope = 1")
    assert "'nope' is not a setting" in one_line_error(run(other, "domains"))
