"""The settings of a team's installation: one class, read from flags, environment and a file.

What is more than one command's own stands here. Nearer beats farther: a command's flag, then the
environment (``CASEWRIGHT_PLANNER``), then one TOML file, then the default. The settings of single
domains are theirs (``domains/legal/settings.py``).

Importing this module imports pydantic-settings: commands import it where they use it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextvars import ContextVar
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
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from casewright.errors import InputError, cleaned
from casewright.extensions import check_extension, extensions
from casewright.serve.settings.file import (
    NAME,
    VARIABLE,
    check_found,
    find_settings_file,
    nearest,
    read_settings_file,
)

PREFIX = "CASEWRIGHT_"
#: Variables with the prefix that are no settings: single domains read theirs themselves. Those of
#: installed packages are entry points of the group ``casewright.variables``.
OTHERS = frozenset(
    {
        VARIABLE,
        "CASEWRIGHT_DEBUG",
        "CASEWRIGHT_ALQA",
        "CASEWRIGHT_LEGAL_CONTEXT",
        "CASEWRIGHT_LEGAL_EXTRACTOR",
    }
)
#: Settings that are places; a file names them from its own folder.
PATHS = ("home", "cache_folder", "tokens_file", "threads_file", "corrections_file")
#: Settings that are never shown.
SECRET = ("tokens", "threads_url")
#: The shortest bearer token: what is shorter can be guessed.
TOKEN_CHARACTERS = 16

# What the file says, while a ``Settings`` is made of it.
_file: ContextVar[Mapping[str, Any]] = ContextVar("casewright_settings_file")


def _bearer(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if len(text) < TOKEN_CHARACTERS or not all("!" <= character <= "~" for character in text):
        raise ValueError("unfit for a bearer token")
    return token


def _decoded(value: Any) -> Any:
    """The environment holds lists as JSON."""
    return json.loads(value) if isinstance(value, str) else value


class Token(BaseModel):
    """A bearer token, whose requests come with it, and until when, if there is an end."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    token: Annotated[SecretStr, AfterValidator(_bearer)]
    tenant: str = Field(min_length=1)
    expires: AwareDatetime | None = None


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """Every setting that is more than one command's own. Made by ``load_settings``.

    A field's description says what can be given: errors and ``casewright config`` use it.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    home: Path | None = Field(
        None, description="a folder for stores and caches; the user's own by default"
    )
    cache_folder: Path | None = Field(
        None, description="a folder for what can be made again; in the home by default"
    )
    domain: str = Field(
        "shopping",
        description="a name that casewright domains lists, or, but in a settings file, "
        "FILE.py:NAME of your own",
    )
    planner: str | None = Field(
        None, description="a planner's name as for ask --planner; the domain's own by default"
    )
    generator: str = Field("extractive", description="extractive, or a chat model: provider:model")
    encoder: str | None = Field(
        None, description="a sentence-transformers model; the packaged one by default"
    )
    adapter: str | None = Field(
        None,
        description="a plan parser or a PEFT adapter for a local language model, by folder or name",
    )
    device: str | None = Field(
        None, description="where a local language model runs: cpu, cuda, cuda:1 or mps"
    )
    dtype: Literal["float32", "bfloat16", "float16"] | None = Field(
        None, description="numbers of a local language model: float32, bfloat16 or float16"
    )
    feedback: str | None = Field(
        None, description="who judges what searches find: offline, provider:model, or off"
    )
    host: str = Field("127.0.0.1", min_length=1, description="an address the service listens on")
    port: int = Field(8000, ge=0, le=65535, description="a port up to 65535; 0 takes a free one")
    tokens: Annotated[tuple[Token, ...], NoDecode, BeforeValidator(_decoded)] = Field(
        (),
        description='bearer tokens with their tenants: [{"token": "…", "tenant": "acme"}], each '
        f"token once, of {TOKEN_CHARACTERS} or more visible ASCII characters; an end may stand "
        'beside them: "expires": "2027-01-31T00:00:00Z"',
    )
    tokens_file: Path | None = Field(None, description="a TOML file of [[tokens]]")
    without_tokens: bool = Field(
        False, description="true to serve this machine alone without tokens, or false"
    )
    max_body_bytes: int = Field(
        1_048_576, ge=1, description="the largest request in bytes, from 1 on"
    )
    max_concurrency: int = Field(32, ge=1, description="questions answered at a time, from 1 on")
    max_concurrency_per_tenant: int | None = Field(
        None,
        ge=1,
        description="questions of one tenant answered at a time, from 1 on; half of all by "
        "default, where there are several tenants",
    )
    max_tool_threads: int = Field(
        256, ge=1, description="threads of tools that block, abandoned ones among them, from 1 on"
    )
    max_connections: int = Field(1000, ge=1, description="open connections, from 1 on")
    max_connections_per_address: int = Field(
        256, ge=1, description="open connections of one address, a proxy's too, from 1 on"
    )
    header_seconds: Seconds = Field(
        10.0, description="seconds a connection may be open without a request, above 0"
    )
    request_seconds: Seconds = Field(60.0, description="seconds a request may take, above 0")
    shutdown_seconds: Seconds = Field(
        30.0, description="seconds that open requests have to end in, above 0"
    )
    threads_file: Path | None = Field(
        None, description="a SQLite file for conversations; in memory by default"
    )
    threads_url: SecretStr | None = Field(
        None, description="a PostgreSQL database for conversations: postgresql://USER@HOST/NAME"
    )
    thread_days: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="days after which an answered conversation is deleted, above 0; never by "
        "default",
    )
    share_port: bool = Field(
        False, description="true to let several services listen on one port, or false"
    )
    retain: Literal["off", "verified", "approved"] = Field(
        "off", description="which answers are kept as cases: off, verified or approved"
    )
    corrections_file: Path | None = Field(
        None, description="a JSON Lines file for plans that users put right; none by default"
    )
    langserve: bool = Field(True, description="false to leave LangServe's routes out, or true")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="debug, info, warning or error"
    )

    @field_validator("domain", "planner", "generator", "feedback")
    @classmethod
    def _known(cls, name: str | None, about: ValidationInfo) -> str | None:
        match about.field_name:
            case _ if name is None:
                pass
            case "domain":
                from casewright.domains.registry import check_domain

                check_domain(name)
            case "planner":
                from casewright.planner.named import check_planner

                check_planner(name)
            case "generator":
                check_extension("generator", name)
            case _:
                check_extension("judge", name, "off")
        return name

    @field_validator("tokens")
    @classmethod
    def _each_once(cls, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        if len({one.token.get_secret_value() for one in tokens}) < len(tokens):
            raise ValueError("a token is given twice")
        return tokens

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: what is given, the environment, the file."""
        file = InitSettingsSource(settings_cls, init_kwargs=dict(_file.get({})))
        return init_settings, env_settings, file


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from.

    Attributes:
        kind: ``flag``, ``environment``, ``file`` or ``default``.
        where: The flag's or the variable's name; the file and the key; empty for a default.
    """

    kind: Literal["flag", "environment", "file", "default"]
    where: str = ""

    def __str__(self) -> str:
        return self.where or self.kind


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and where each came from.

    Attributes:
        settings: The settings.
        origins: By name, for every setting.
        file: The TOML file that was read, if any.
    """

    settings: Settings
    origins: Mapping[str, Origin]
    file: Path | None = None


def load_settings(config: Path | None = None, **flags: Any) -> Loaded:
    """Read the settings.

    Args:
        config: The TOML file; by default ``CASEWRIGHT_CONFIG``, else ``casewright.toml`` in this
            folder, else in the user's settings folder, else none.
        flags: What the command was given, by the setting's name; ``None`` where it was not.

    Raises:
        InputError: The file cannot be read, names an unknown setting, or a value cannot be: the
            message names it, where it came from, and what to give. Or the file of this folder,
            which nobody named, names a place.
    """
    if unknown := flags.keys() - Settings.model_fields.keys():
        raise TypeError(f"no settings: {', '.join(sorted(unknown))}")
    file = find_settings_file(config)
    said = {} if file is None else read_settings_file(file, Settings.model_fields, PATHS)
    if file == Path(NAME) and config is None and not os.environ.get(VARIABLE):
        check_found(file, said, (*PATHS, "threads_url"))
    given = {name: value for name, value in flags.items() if value is not None}
    origins = {name: Origin("default") for name in Settings.model_fields}
    origins |= {name: Origin("file", f"{name} in {file}") for name in said}
    environment = EnvSettingsSource(Settings, env_prefix=PREFIX, env_ignore_empty=True)()
    origins |= {name: Origin("environment", PREFIX + name.upper()) for name in environment}
    origins |= {name: Origin("flag", "--" + name.replace("_", "-")) for name in given}
    token = _file.set(said)
    try:
        return Loaded(Settings(**given), origins, file)
    except ValidationError as error:
        raise _told(error, origins, {**said, **environment, **given}) from None
    finally:
        _file.reset(token)


def _told(
    error: ValidationError, origins: Mapping[str, Origin], given: Mapping[str, Any]
) -> InputError:
    """Return the first of pydantic's complaints as one of ours, without a secret."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = str(first["loc"][0])
    own = first.get("ctx", {}).get("error")
    origin = origins[name]
    if isinstance(own, InputError):
        # A flag's mistake is told as by commands without settings.
        return own if origin.kind == "flag" else InputError(f"{origin}: {own}")
    value = "what is given" if name in SECRET else cleaned(repr(given[name]), 80)
    fit = Settings.model_fields[name].description
    return InputError(f"{origin}: {value} cannot be the setting {name}. Give {fit}.")


def unknown_variables() -> dict[str, str]:
    """Return environment variables that look like ours and are none, with the one meant."""
    # Compared without the prefix, which alone would make any two of them alike.
    known = {name.upper() for name in Settings.model_fields}
    known |= {name.removeprefix(PREFIX) for name in OTHERS | extensions("variable").keys()}
    found = {}
    for name in os.environ:
        own = name.removeprefix(PREFIX)
        if own != name and own not in known and (meant := nearest(own, known)):
            found[name] = PREFIX + meant
    return found


def choose_folders(loaded: Loaded) -> None:
    """Keep this process's stores and caches where the settings say."""
    from casewright.stores import paths

    # What the environment says is read there whenever it is asked for.
    own = {
        name: getattr(loaded.settings, name) if origin.kind in ("file", "flag") else None
        for name, origin in loaded.origins.items()
    }
    paths.choose_folders(own["home"], own["cache_folder"])
