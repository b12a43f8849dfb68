"""Loads settings that several commands share, from flags, the environment and a TOML file.

The first source that sets a value counts: a flag, an environment variable such as
``CASEWRIGHT_PLANNER``, the TOML file, the default. Domains may read further environment variables.

Commands import this module only when they use it, since it imports pydantic-settings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, SettingsConfigDict

from casewright.errors import InputError, cleaned
from casewright.extensions import check_extension, extensions
from casewright.serve.settings import file as settings_file

PREFIX = "CASEWRIGHT_"
#: Variables that begin with the prefix and are not settings. Domains and packages declare further
#: ones as entry points of the group ``casewright.variables``.
OTHER_VARIABLES = frozenset({settings_file.CONFIG_VARIABLE, f"{PREFIX}DEBUG"})
#: Settings that are paths. In the settings file, a relative path starts from the file's folder.
PATH_SETTINGS = (
    *("home", "cache_folder", "tokens_file", "threads_file", "corrections_file", "plans_folder"),
)
#: Settings whose values no error message shows.
SECRET_SETTINGS = ("tokens", "threads_url")
#: Minimum length of a bearer token, since shorter tokens can be guessed.
MIN_TOKEN_CHARACTERS = 16


def _check_token(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if len(text) < MIN_TOKEN_CHARACTERS or not all("!" <= character <= "~" for character in text):
        raise ValueError("not valid as a bearer token")
    return token


def _parse_json(value: Any) -> Any:
    # In an environment variable, a list is written as JSON.
    return json.loads(value) if isinstance(value, str) else value


class Token(BaseModel):
    """Bearer token, its tenant, and the time when it expires, if it does."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    token: Annotated[SecretStr, AfterValidator(_check_token)]
    tenant: str = Field(min_length=1)
    expires: AwareDatetime | None = None


Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]  # a positive number
Count = Annotated[int, Field(ge=1)]  # a positive integer


class Settings(BaseSettings):
    """Settings, which ``load_settings`` loads.

    A field's description states the valid values. Errors and ``casewright config`` show it.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    home: Path | None = Field(None, description="a folder for stores and caches")
    cache_folder: Path | None = Field(
        None, description="a folder for caches; by default in the home"
    )
    domain: str = Field(
        "shopping", description="a domain's name, or, except in a settings file, FILE.py:NAME"
    )
    planner: str | None = Field(None, description="a planner's name, as in ask --planner")
    generator: str = Field("extractive", description="extractive, or a chat model: provider:model")
    encoder: str | None = Field(None, description="a sentence-transformers model")
    adapter: str | None = Field(
        None, description="a plan parser or a PEFT adapter, by folder or name"
    )
    device: str | None = Field(None, description="a local model's device: cpu, cuda, cuda:1 or mps")
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = Field(
        None, description="a local model's number type: float32, bfloat16, float16, or int8 on CPU"
    )
    feedback: str | None = Field(
        None, description="a judge of feedback: offline, provider:model, or off"
    )
    host: str = Field("127.0.0.1", min_length=1, description="an address the service listens on")
    port: int = Field(8000, ge=0, le=65535, description="a port up to 65535; 0 takes a free one")
    tokens: Annotated[tuple[Token, ...], NoDecode, BeforeValidator(_parse_json)] = Field(
        (),
        description='bearer tokens with their tenants: [{"token": "…", "tenant": "acme"}], each '
        f"token once, of {MIN_TOKEN_CHARACTERS} or more visible ASCII characters, optionally with "
        '"expires": "2027-01-31T00:00:00Z"',
    )
    tokens_file: Path | None = Field(None, description="a TOML file of [[tokens]]")
    without_tokens: bool = Field(False, description="true for local use without tokens, or false")
    max_body_bytes: Count = Field(1_048_576, description="bytes of the largest request, from 1 on")
    max_concurrency: Count = Field(32, description="questions answered at a time, from 1 on")
    max_concurrency_per_tenant: Count | None = Field(
        None,
        description="questions of one tenant answered at a time, from 1 on; by default, half of "
        "max_concurrency if there are several tenants",
    )
    max_tool_threads: Count = Field(256, description="threads of tools that block, from 1 on")
    max_connections: Count = Field(1000, description="open connections, from 1 on")
    max_connections_per_address: Count = Field(256, description="connections by address, from 1 on")
    max_calls: Count | None = Field(None, description="a run's tool calls, from 1 on")
    max_cost: Amount | None = Field(
        None, description="the cost of a run's tool calls, as the tools declare it, above 0"
    )
    approve: Literal["declared", "always"] = Field(
        "declared", description="plans that wait for approval: declared or always"
    )
    header_seconds: Amount = Field(10.0, description="seconds a connection may be idle, above 0")
    request_seconds: Amount = Field(60.0, description="seconds a request may take, above 0")
    shutdown_seconds: Amount = Field(30.0, description="seconds for open requests to end, above 0")
    threads_file: Path | None = Field(None, description="a SQLite file for conversations")
    threads_url: SecretStr | None = Field(
        None, description="a database for conversations: postgresql://USER@HOST/NAME"
    )
    thread_days: Amount | None = Field(
        None, description="days after which answered conversations are deleted, above 0"
    )
    share_port: bool = Field(
        False, description="true to share the port with other services, or false"
    )
    compute_threads: Count = Field(8, description="threads that plan and quote, from 1 on")
    shared_runs: bool = Field(
        True, description="true to encode texts of concurrent questions together, or false"
    )
    retain: Literal["off", "verified", "approved"] = Field(
        "off", description="answers kept as cases: off, verified or approved"
    )
    corrections_file: Path | None = Field(
        None, description="a JSON Lines file for plans that users correct"
    )
    plans_folder: Path | None = Field(None, description="a folder of pinned plans")
    pin_plans: bool = Field(False, description="true to let users pin plans over HTTP, or false")
    langserve: bool = Field(True, description="true to offer LangServe's routes, or false")
    mcp: bool = Field(False, description="true to offer MCP tools at /mcp, or false")
    otel: bool = Field(False, description="true to export OpenTelemetry spans, or false")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="debug, info, warning or error"
    )

    @field_validator("domain", "planner", "generator", "feedback")
    @classmethod
    def _check_name(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is None:
            return None
        match info.field_name:
            case "domain":
                from casewright.domains.registry import check_domain

                check_domain(name)
            case "planner":
                from casewright.planner.named import check_planner

                check_planner(name)
            case "generator":
                check_extension("generator", name)
            case "feedback":
                check_extension("judge", name, "off")
        return name

    @field_validator("tokens")
    @classmethod
    def _no_repeated_tokens(cls, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        if len({entry.token.get_secret_value() for entry in tokens}) < len(tokens):
            raise ValueError("a token is given twice")
        return tokens


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a value; ``where`` is the flag, the variable, ``KEY in FILE``, or empty."""

    kind: Literal["flag", "environment", "file", "default"]
    where: str = ""

    def __str__(self) -> str:
        return self.where or self.kind


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, the origin of each setting by name, and the TOML file that was read, if any."""

    settings: Settings
    origins: Mapping[str, Origin]
    file: Path | None = None


def load_settings(config: Path | None = None, **flags: Any) -> Loaded:
    """Load the settings.

    Args:
        config: The TOML file; by default the file that ``CASEWRIGHT_CONFIG`` names, else the file
            ``casewright.toml`` in the working directory, else in the user's settings folder.
        flags: Values of the command's flags by setting; ``None`` for a flag that is not given.

    Raises:
        InputError: The file cannot be read or names an unknown setting, a file found in the working
            directory names a path, or a value is invalid. The message states the valid values.
    """
    if unknown := flags.keys() - Settings.model_fields.keys():
        raise TypeError(f"no settings: {', '.join(sorted(unknown))}")
    file = settings_file.find_settings_file(config)
    values: dict[str, Any] = {}
    if file is not None:
        values = settings_file.read_settings(file, Settings.model_fields, PATH_SETTINGS)
        if config is None and not os.environ.get(settings_file.CONFIG_VARIABLE):
            settings_file.check_no_paths(file, values, (*PATH_SETTINGS, "threads_url"))
    set_flags = {name: value for name, value in flags.items() if value is not None}
    origins = {name: Origin("default") for name in Settings.model_fields}
    origins |= {name: Origin("file", f"{name} in {file}") for name in values}
    environment = EnvSettingsSource(Settings, env_prefix=PREFIX, env_ignore_empty=True)()
    origins |= {name: Origin("environment", PREFIX + name.upper()) for name in environment}
    origins |= {name: Origin("flag", "--" + name.replace("_", "-")) for name in set_flags}
    values = {**values, **environment, **set_flags}
    try:
        return Loaded(Settings(**values), origins, file)
    except ValidationError as error:
        raise _as_input_error(error, origins, values) from None


def _as_input_error(
    error: ValidationError, origins: Mapping[str, Origin], values: Mapping[str, Any]
) -> InputError:
    """Return pydantic's first error as an ``InputError``, without secrets."""
    first_error = error.errors(include_url=False, include_input=False)[0]
    name = str(first_error["loc"][0])
    cause = first_error.get("ctx", {}).get("error")
    origin = origins[name]
    if isinstance(cause, InputError):
        # The message for a flag has no origin, as in commands that load no settings.
        return cause if origin.kind == "flag" else InputError(f"{origin}: {cause}")
    value = "the value" if name in SECRET_SETTINGS else cleaned(repr(values[name]), 80)
    expected = Settings.model_fields[name].description
    return InputError(f"{origin}: {value} cannot be the setting {name}. Give {expected}.")


def unknown_variables() -> dict[str, str]:
    """Return misspelled environment variables, each with the most similar valid variable."""
    # Names are compared without their common prefix, which would make all names similar.
    known = {name.upper() for name in Settings.model_fields}
    known |= {n.removeprefix(PREFIX) for n in OTHER_VARIABLES | extensions("variable").keys()}
    names = [name.removeprefix(PREFIX) for name in os.environ if name.startswith(PREFIX)]
    unknown = [name for name in names if name not in known]
    hints = {name: settings_file.most_similar(name, known) for name in unknown}
    return {PREFIX + name: PREFIX + hint for name, hint in hints.items() if hint}


def choose_folders(loaded: Loaded) -> None:
    """Set the folders of stores and caches for this process."""
    from casewright.stores import paths

    # The module ``paths`` reads the environment itself. Only values of flags and a file are passed.
    home, cache_folder = (
        getattr(loaded.settings, name) if loaded.origins[name].kind in ("file", "flag") else None
        for name in ("home", "cache_folder")
    )
    paths.choose_folders(home, cache_folder)
