"""The command line. Heavy packages are imported by the commands that need them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from casewright import __version__
from casewright.errors import CasewrightError, InputError
from casewright.serve.bench_commands import bench
from casewright.serve.calibrate_command import calibrate
from casewright.serve.chat_command import chat
from casewright.serve.config_command import config
from casewright.serve.correct_command import register as register_correct
from casewright.serve.draft_command import register as register_draft
from casewright.serve.eval_command import register as register_eval
from casewright.serve.finetune_commands import finetune
from casewright.serve.ingest_commands import ingest
from casewright.serve.new_command import register as register_new
from casewright.serve.options import (
    Adapter,
    AsJson,
    Checkers,
    ConfigFile,
    ContextText,
    Customer,
    DefaultedDomainName,
    DefaultedGeneratorName,
    DefaultedPlannerName,
    Device,
    DType,
    EncoderName,
    Examples,
    FeedbackJudge,
    Grammar,
    HistoryFile,
    Home,
    Move,
    Off,
    Roll,
    Scope,
    SourceTree,
    Tenant,
)
from casewright.serve.serve_command import register as register_serve
from casewright.serve.settings_file import find_settings_file
from casewright.serve.show_command import check_run_file, show
from casewright.serve.upkeep_commands import register as register_upkeep

if TYPE_CHECKING:
    from casewright.serve.session import Session

app = typer.Typer(
    name="casewright",
    help="Plan look-ups in one call, run them over case stores and tools, answer with citations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench, name="bench")
app.add_typer(finetune, name="finetune")


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
        from casewright.serve.settings import choose_folders, load_settings

        # Every command finds the stores where the file says that they are.
        choose_folders(load_settings())


@app.command()
def ask(
    question: Annotated[
        str | None, typer.Argument(help="What you want to know; or give an image.")
    ] = None,
    domain: DefaultedDomainName = None,
    customer: Customer = None,
    scope: Scope = None,
    tenant: Tenant = None,
    context: ContextText = None,
    history: HistoryFile = None,
    image: Annotated[
        Path | None,
        typer.Option(
            help="With --domain math24 or backgammon, an image to ask about.", metavar="FILE"
        ),
    ] = None,
    roll: Roll = None,
    move: Move = None,
    checkers: Checkers = None,
    home: Home = None,
    off: Off = None,
    html: Annotated[
        Path | None,
        typer.Option(help="With --image, also write the answer as a page.", metavar="FILE"),
    ] = None,
    retain: Annotated[
        bool, typer.Option("--retain", help="With --image, keep an answer that is proved.")
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(help="What ingest --into was given: a folder or a URL.", metavar="LOCATION"),
    ] = None,
    source: SourceTree = None,
    feedback: FeedbackJudge = None,
    planner: DefaultedPlannerName = None,
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    examples: Examples = None,
    generator: DefaultedGeneratorName = None,
    encoder: EncoderName = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Also save the run; casewright show opens it.", metavar="FILE"),
    ] = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question: plan, look up, and word an answer that cites its evidence."""
    from casewright.domains import find_domain
    from casewright.planner.request import check_question
    from casewright.serve.chosen import chosen
    from casewright.serve.dialogue import Dialogue, read_history
    from casewright.serve.output import print_answer, print_json
    from casewright.serve.planners import ModelSettings
    from casewright.serve.scopes import asker_of
    from casewright.serve.session import (
        make_generator,
        open_session,
        read_context,
    )

    if save is not None:
        check_run_file(save)
    using = chosen(
        config,
        domain=domain,
        planner=planner,
        generator=generator,
        encoder=encoder,
        adapter=adapter,
        device=device,
        dtype=dtype,
        feedback=feedback,
    )
    if image is not None and question is None and save is None:
        from casewright.serve.image_answer import ask_image

        details = {"roll": roll, "move": move, "checkers": checkers, "home": home, "off": off}
        ask_image(
            find_domain(using.domain),
            image,
            using.generator,
            html,
            details,
            retain=retain,
            as_json=as_json,
        )
        return
    of_image = (image, html, roll, move, checkers, home, off)
    if question is None or retain or any(one is not None for one in of_image):
        raise InputError(
            "Give a question, or --image FILE without one; --html, --retain and what describes a "
            "board go with --image, --save goes with a question."
        )
    check_question(question)
    known, said = read_context(context), read_history(history)
    asker = asker_of(find_domain(using.domain).scopes, scope, customer, tenant)
    model = ModelSettings(using.adapter, using.device, using.dtype, examples)
    session = open_session(
        using.domain,
        using.planner,
        store,
        using.encoder,
        source,
        using.feedback,
        model,
        asker,
    )
    try:
        graph = session.graph(make_generator(using.generator, session.encoder, session.domain))
        result = Dialogue(graph, asker, said).ask(question, known)
    finally:
        session.close()
    if save is not None:
        from casewright.graph import Answer
        from casewright.graph.run_file import save_run

        save_run(save, Answer.from_state(result), question)
    (print_json if as_json else print_answer)(result["answer"])


@app.command()
def plan(
    question: Annotated[str | None, typer.Argument(help="One question to plan for.")] = None,
    source: Annotated[
        Path | None, typer.Option("--input", help="A JSON Lines file of queries to plan for.")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--output", help="Where to write their plans; stdout by default.")
    ] = None,
    domain: DefaultedDomainName = None,
    context: ContextText = None,
    planner: DefaultedPlannerName = None,
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    examples: Examples = None,
    grammar: Grammar = True,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the look-up plan of one question, or of every query of a file; nothing is run."""
    from casewright.planner.request import PlanRequest, check_question
    from casewright.serve.chosen import chosen
    from casewright.serve.output import print_json
    from casewright.serve.planners import ModelSettings
    from casewright.serve.session import open_session, read_context

    if (question is None) == (source is None):
        raise InputError("Give either a question or --input FILE.")
    if question is not None:
        check_question(question)
    elif source is not None and not source.is_file():
        raise InputError(f"{source} is no file. Give a JSON Lines file of queries.")
    if source is None and target is not None:
        raise InputError("--output goes with --input FILE. Give one, or leave --output out.")
    if source is not None and context is not None:
        raise InputError("--context goes with one question; a file's records have their own.")
    if target is not None:
        _check_target(target, source)
    known = read_context(context)
    using = chosen(
        config, domain=domain, planner=planner, adapter=adapter, device=device, dtype=dtype
    )
    model = ModelSettings(using.adapter, using.device, using.dtype, examples, grammar)
    session = open_session(using.domain, using.planner, model=model)
    try:
        if source is not None:
            _plan_file(source, target, session)
            return
        assert question is not None
        result = session.planner.plan(PlanRequest(question, session.opened.toolbox, known))
    finally:
        session.close()
    if as_json:
        print_json(
            {
                "id": None,
                "plan": str(result.plan),
                "milliseconds": round(result.milliseconds, 3),
                "planner": result.planner,
                "attempts": result.attempts,
                "fallback": result.fallback or None,
                "written": result.written or None,
                "error": None,
                **result.doubt(),
            }
        )
        return
    typer.echo(str(result.plan))
    if result.fallback:
        typer.echo(f"A fallback plan: {result.fallback}", err=True)
    if result.asks_back:
        readings = "".join(f"\nOr:\n{plan}" for plan in result.alternatives[:1])
        typer.echo(f"Not sure that this is meant.{readings}", err=True)
    if result.written:
        # A model may write what would move a terminal's cursor.
        shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in result.written)
        typer.echo(f"What was written:\n{shown}", err=True)


def _check_target(target: Path, source: Path | None) -> None:
    if source is not None and target.exists() and target.samefile(source):
        raise InputError("--output is the --input file. Choose another, to lose nothing.")
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise InputError(f"{target} cannot be written. Give a file in a folder that exists.")


def _plan_file(source: Path, target: Path | None, session: Session) -> None:
    from casewright.serve.plan_file import plan_file

    toolbox, planner = session.opened.toolbox, session.planner
    if target is None:
        records, bad = plan_file(source, sys.stdout, toolbox, planner)
    else:
        try:
            with target.open("w", encoding="utf-8", newline="\n") as file:
                records, bad = plan_file(source, file, toolbox, planner)
        except OSError as error:
            raise InputError(f"{target} cannot be written: {error.strerror}.") from error
    if bad:
        # Not raised: with --json its object would stand among the records on stdout.
        typer.echo(
            f"error: {bad} of {records} records could not be planned for; their error says why. "
            "The others are answered.",
            err=True,
        )
        raise typer.Exit(2)


@app.command()
def domains(
    build: Annotated[
        str | None, typer.Option(help="Build this domain's stores anew.", metavar="NAME")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the domains, what they are about, and questions to try."""
    from casewright.domains import domain_names, find_domain
    from casewright.serve.output import print_json
    from casewright.stores.paths import data_folder

    if build is not None:
        from casewright.serve.session import rebuild

        counts = rebuild(build)
        if as_json:
            print_json({"domain": build, "cases": counts})
        else:
            listed = ", ".join(f"{count} {name}" for name, count in counts.items())
            typer.echo(f"{build}: {listed}")
        return
    known = [find_domain(name) for name in domain_names()]
    if as_json:
        print_json(
            [
                {
                    "name": domain.name,
                    "description": domain.description,
                    "questions": list(domain.questions),
                    "scopes": {field: list(values) for field, values in domain.scopes.items()},
                    "folder": str(data_folder() / domain.name),
                    "built": (data_folder() / domain.name / domain.mark).exists(),
                }
                for domain in known
            ]
        )
        return
    for domain in known:
        typer.echo(f"{domain.name}: {domain.description}")
        for question in domain.questions:
            typer.echo(f'  casewright ask --domain {domain.name} "{question}"')
        for field, values in domain.scopes.items():
            typer.echo(f"  --{field} {' | '.join(values)}")


app.command()(ingest)
app.command()(calibrate)
app.command()(chat)
app.command()(config)
app.command()(show)
register_new(app)
register_draft(app)
register_correct(app)
register_eval(app)
register_upkeep(app)
register_serve(app)


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
        from casewright.stores.room import as_disk_error

        if full := as_disk_error(error):
            _fail(full, 2)
        _fail(f"{told(error)}. This is a defect; CASEWRIGHT_DEBUG=1 shows where.", 1)


def _fail(error: object, code: int) -> NoReturn:
    if "--json" in sys.argv:
        from casewright.serve.output import print_json

        kind = type(error).__name__ if isinstance(error, CasewrightError) else "Defect"
        print_json({"error": {"kind": kind, "message": str(error)}})
    print(f"error: {error}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
