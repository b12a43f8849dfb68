"""All commands by name; a command's module is imported when the command is first used."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from casewright import __version__
from casewright.errors import CasewrightError, InputError
from casewright.serve.cli.extended import LazyCommands
from casewright.serve.settings.file import find_settings_file

#: For each command, the module (in this folder) that defines the command in its ``app``.
COMMANDS = {
    **dict.fromkeys(("ask", "show"), "ask"),
    **{name: name for name in ("plan", "plans", "chat", "ingest", "calibrate", "config")},
    **dict.fromkeys(("domains", "new"), "domains"),
    **dict.fromkeys(("draft", "correct"), "messages"),
    "eval": "evaluate",
    **dict.fromkeys(("check", "repair"), "upkeep"),
    **dict.fromkeys(("serve", "mcp"), "serve"),
    "bench": "bench.commands",
    "finetune": "finetune.commands",
}


def _load_command(name: str) -> Any:
    command = typer.main.get_command(import_module(f"casewright.serve.cli.{COMMANDS[name]}").app)
    # Typer makes a command of an app with a single command, and a group of any other app.
    command = getattr(command, "commands", {}).get(name, command)
    command.name = name
    return command


class _Program(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands(lambda: COMMANDS, _load_command)  # type: ignore[assignment]


app = typer.Typer(
    name="casewright",
    cls=_Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"casewright {__version__}")
        raise typer.Exit


#: Commands that load the settings themselves, from --config and other options. The other commands
#: read only the folders of stores and caches from the settings file.
_SETTINGS_COMMANDS = ("ask", "chat", "config", "mcp", "plan", "plans", "serve")


@app.callback()
def casewright(
    command: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Plan look-ups in one call, run them over case stores and tools, answer with citations."""
    if command.invoked_subcommand not in _SETTINGS_COMMANDS and find_settings_file() is not None:
        from casewright.serve.settings.settings import choose_folders, load_settings

        choose_folders(load_settings())


def main() -> None:
    """Run the command line; after a user's error, print one line and exit with code 2."""
    try:
        # In standalone mode, Typer would print errors itself: as a box, never as JSON.
        code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        if not message:
            # No command was given, and the help was shown.
            sys.exit(2)
        _exit_with_error(InputError(f"{message.rstrip('.')}. See casewright --help."), 2)
    except CasewrightError as error:
        _exit_with_error(error, 2)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # Stdout was closed; Python's flush at exit would raise the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        if os.environ.get("CASEWRIGHT_DEBUG"):
            raise
        from casewright.errors import one_line
        from casewright.extensions import missing_package
        from casewright.stores.room import as_disk_error

        if isinstance(error, ImportError) and (missing_error := missing_package(error)):
            _exit_with_error(missing_error, 2)
        if disk_error := as_disk_error(error):
            _exit_with_error(disk_error, 2)
        _exit_with_error(f"{one_line(error)}. This is a defect; CASEWRIGHT_DEBUG=1 shows where.", 1)


def _exit_with_error(error: object, code: int) -> NoReturn:
    if "--json" in sys.argv:
        from casewright.serve.cli.output import print_json

        kind = type(error).__name__ if isinstance(error, CasewrightError) else "Defect"
        print_json({"error": {"kind": kind, "message": str(error)}})
    print(f"error: {error}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
