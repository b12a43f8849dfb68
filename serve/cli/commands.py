"""All commands by their names. Each is imported when it is called; so are heavy packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from casewright import __version__
from casewright.errors import CasewrightError, InputError
from casewright.serve.settings.file import find_settings_file

#: Each command, and the module below this folder whose ``app`` has it.
COMMANDS = {
    "ask": "ask",
    "plan": "plan",
    "domains": "domains",
    "ingest": "ingest",
    "calibrate": "calibrate",
    "chat": "chat",
    "config": "config",
    "show": "show",
    "new": "new",
    "draft": "draft",
    "correct": "correct",
    "eval": "evaluate",
    "check": "upkeep",
    "repair": "upkeep",
    "serve": "serve",
    "bench": "bench.commands",
    "finetune": "finetune.commands",
}


class _Commands(Mapping[str, Any]):
    """The commands by name; each is made when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            app = import_module(f"casewright.serve.cli.{COMMANDS[name]}").app
            command = typer.main.get_command(app)
            # A group is a command itself, but where it has one of this name.
            self._made[name] = getattr(command, "commands", {}).get(name, command)
            self._made[name].name = name
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Program(TyperGroup):
    """The command line, whose commands are imported one by one."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]


app = typer.Typer(
    name="casewright",
    cls=_Program,
    help="Plan look-ups in one call, run them over case stores and tools, answer with citations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"casewright {__version__}")
        raise typer.Exit


#: These read the settings themselves, with the file and the flags that they are given.
_READ_SETTINGS = ("ask", "chat", "config", "plan", "serve")


@app.callback()
def casewright(
    command: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Plan look-ups in one call, run them over case stores and tools, answer with citations."""
    if command.invoked_subcommand not in _READ_SETTINGS and find_settings_file() is not None:
        from casewright.serve.settings.settings import choose_folders, load_settings

        # Every command finds the stores where the file says that they are.
        choose_folders(load_settings())


def main() -> None:
    """Run the command line; a user's error becomes one line and exit code 2."""
    try:
        # Not standalone: Typer would print its errors as a box, and not as JSON.
        code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        if not message:
            # Nothing was asked for, and the help was shown.
            sys.exit(2)
        _fail(InputError(f"{message.rstrip('.')}. See casewright --help."), 2)
    except CasewrightError as error:
        _fail(error, 2)
    except typer.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has stopped; so do we, without the interpreter's own complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        if os.environ.get("CASEWRIGHT_DEBUG"):
            raise
        from casewright.errors import told
        from casewright.extensions import missing_package
        from casewright.stores.room import as_disk_error

        if isinstance(error, ImportError) and (missing := missing_package(error)):
            _fail(missing, 2)
        if full := as_disk_error(error):
            _fail(full, 2)
        _fail(f"{told(error)}. This is a defect; CASEWRIGHT_DEBUG=1 shows where.", 1)


def _fail(error: object, code: int) -> NoReturn:
    if "--json" in sys.argv:
        from casewright.serve.cli.output import print_json

        kind = type(error).__name__ if isinstance(error, CasewrightError) else "Defect"
        print_json({"error": {"kind": kind, "message": str(error)}})
    print(f"error: {error}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
