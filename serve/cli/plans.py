"""The command `casewright plans`, which pins, lists, runs and compares plans."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli import options
from casewright.serve.cli.domain_options import ConversationCommand, DomainValues
from casewright.serve.cli.options import AsJson, Flags, PlansFolder, with_flags
from casewright.serve.cli.output import check_new_file, print_json, print_rows, print_run, visible

if TYPE_CHECKING:
    from casewright.domains import Domain
    from casewright.graph.plan_files import SavedPlan
    from casewright.serve.session.choice import ChosenParts

app = Typer(add_completion=False, help="Pin plans under a name, run them, compare two.")
DEFAULT_FOLDER = Path("plans")
PlanName = Annotated[str, Argument(help="The plan's name; the plan's file is NAME.toml.")]


@app.command("pin", cls=ConversationCommand)
@with_flags("domain", "planner", "adapter", "device", "dtype", "encoder", "plans_folder")
def pin(
    command: Context,
    flags: Flags,
    name: PlanName,
    question: Annotated[
        str | None, Argument(help="The question; by default that in the file of --plan.")
    ] = None,
    plan: Annotated[
        Path | None,
        Option(
            help="A file with a plan, or a run of ask --save; by default a planner plans.",
            metavar="FILE",
        ),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        Option(help="A parameter and its value in the plan; repeatable.", metavar="NAME=VALUE"),
    ] = None,
    context: options.ContextText = None,
    replace: Annotated[bool, Option("--replace", help="Replace a plan of this name.")] = False,
    config: options.ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Save a plan, with named parameters, to a file that people can review.

    The file also records the tools' declarations. After a declaration changes, the plan is refused.
    """
    from casewright.graph.plan_files import read_plan_file
    from casewright.planner import PlanRequest, pin_plan
    from casewright.planner.fallback import FallbackPlanner
    from casewright.planner.request import check_question
    from casewright.serve.session import option_values
    from casewright.serve.session.session import open_chosen

    context_fields, domain_values = option_values.read_context(context), command.obj
    value_texts = option_values.read_pairs("--parameter", parameter)
    given_plan = None if plan is None else read_plan_file(plan)
    question = question or (given_plan.question if given_plan else "")
    if not question:
        raise InputError("Give the question too: casewright plans pin NAME QUESTION.")
    check_question(question)
    chosen, folder = _read_parts_and_folder(config, domain_values.domain, flags)
    # For a given plan, ``FallbackPlanner`` replaces the chosen planner, which need not load.
    planner = None if given_plan is None else FallbackPlanner()
    with closing(open_chosen(chosen, opening=domain_values.opening, planner=planner)) as session:
        request = PlanRequest(question, session.opened.toolbox, context_fields)
        if given_plan is None:
            result = session.planner.plan(request)
            if result.fallback:
                raise InputError(f"No plan was found to pin: {result.fallback} Give --plan FILE.")
            plan_to_pin = result.plan
        else:
            plan_to_pin = given_plan.plan
        request.validate(plan_to_pin)
        parameters = {key: option_values.json_or_text(text) for key, text in value_texts.items()}
        pinned = pin_plan(name, question, plan_to_pin, request.toolbox, parameters)
        file = pinned.save(folder, replace=replace)
    if as_json:
        print_json({"file": str(file), **pinned.to_json()})
        return
    echo(visible(f"{pinned.plan}\n{file}: pinned."))


@app.command("run", cls=ConversationCommand)
@with_flags("domain", "generator", "encoder", "feedback", "plans_folder")
def run(
    command: Context,
    flags: Flags,
    name: PlanName,
    with_: Annotated[
        list[str] | None,
        Option(
            "--with",
            help="A parameter's value; by default its value at pinning; repeatable.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    scope: options.Scope = None,
    tenant: options.Tenant = None,
    context: options.ContextText = None,
    budget: options.Budget = None,
    approve: options.Approve = False,
    dry_run: options.DryRun = False,
    save: options.SaveRun = None,
    config: options.ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Answer with a pinned plan; checks, price, budget and citations are as in casewright ask."""
    from langgraph.checkpoint.memory import InMemorySaver

    from casewright.planner import read_pinned
    from casewright.planner.fallback import FallbackPlanner
    from casewright.planner.request import check_question
    from casewright.serve.cli.waiting import ask_user, print_dry_run
    from casewright.serve.session import option_values
    from casewright.serve.session.dialogue import Dialogue
    from casewright.serve.session.session import open_chosen

    check_new_file("--save", save)
    if dry_run and (save is not None or approve):
        raise InputError("--dry-run runs nothing. Leave out --save and --approve.")
    domain_values: DomainValues = command.obj
    domain, opening = domain_values.domain, domain_values.opening
    context_fields = option_values.read_context(context)
    limits = option_values.read_budget("--budget", budget)
    chosen, folder = _read_parts_and_folder(config, domain, flags)
    pinned = read_pinned(folder, name)
    user_scope = option_values.command_scope(domain.scopes, scope, domain_values.scope, tenant)
    # The session opens with a placeholder, since the pinned plan's planner needs the open toolbox.
    with closing(open_chosen(chosen, opening=opening, planner=FallbackPlanner())) as session:
        toolbox = session.opened.toolbox
        question, session.planner = pinned.filled(toolbox, option_values.read_values(pinned, with_))
        check_question(question)
        if dry_run:
            print_dry_run(session, question, context_fields, (), limits, as_json=as_json)
            return
        graph = session.graph(chosen.generator, InMemorySaver())
        policy: Any = "always" if approve else "declared"
        dialogue = Dialogue(graph, user_scope, get_replies=ask_user, limits=limits, approve=policy)
        result = dialogue.ask(question, context_fields)
    print_run(result, question, save, as_json=as_json)


@app.command("list")
def list_plans(
    plans_folder: PlansFolder = None, config: options.ConfigFile = None, as_json: AsJson = False
) -> None:
    """List the pinned plans, with their parameters and tools."""
    from casewright.planner import read_pinned
    from casewright.planner.pinned import pinned_names

    folder = _plans_folder(config, plans_folder)
    plans = []
    for name in pinned_names(folder):
        try:
            plans.append(read_pinned(folder, name).to_json())
        except InputError as error:
            # A damaged plan must not hide the other plans.
            echo(visible(f"error: {error}"), err=True)
    if as_json:
        print_json({"folder": str(folder), "plans": plans})
        return
    if not plans:
        message = f"No plans are pinned in {folder}. Pin one: casewright plans pin NAME QUESTION."
        echo(message, err=True)
        return
    rows = [
        {
            "name": plan["name"],
            "question": visible(plan["question"]),
            "parameters": visible(", ".join(f"{n}={v}" for n, v in plan["parameters"].items())),
            "tools": ", ".join(plan["tools"]),
        }
        for plan in plans
    ]
    print_rows(rows)


@app.command("diff", cls=ConversationCommand)
@with_flags("domain", "adapter", "device", "dtype", "encoder")
def diff(
    command: Context,
    flags: Flags,
    sources: Annotated[
        list[str],
        Argument(
            help="Two plans, each a file or a pinned plan's name; or a question, with --planner "
            "twice.",
            metavar="A B | QUESTION",
        ),
    ],
    planner: Annotated[
        list[str] | None, Option(help="A planner for the question; give two.", metavar="NAME")
    ] = None,
    context: options.ContextText = None,
    plans_folder: PlansFolder = None,
    config: options.ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare two plans step by step; show their planners' confidences with the reasons.

    A file contains a plan's text, a run of ask --save, or a pinned plan.
    """
    from casewright.planner import diff_plans
    from casewright.serve.session import option_values

    planners, context_fields = planner or [], option_values.read_context(context)
    if (len(sources), len(planners)) not in ((2, 0), (1, 2)):
        raise InputError("Give two plans, or one question and --planner NAME twice.")
    if planners:
        domain_values: DomainValues = command.obj
        plan_with = partial(_plan_question, config, domain_values, sources[0], context_fields)
        first, second = (plan_with({**flags, "planner": name}) for name in planners)
    else:
        folder = _plans_folder(config, plans_folder)
        first, second = (_find_plan(source, folder) for source in sources)
    steps = diff_plans(first.plan, second.plan)
    if as_json:
        details = ("planner", "confidence", "because")
        sides = {
            side: {name: getattr(saved, name) for name in details} | {"plan": str(saved.plan)}
            for side, saved in (("first", first), ("second", second))
        }
        same = all(step.change == "same" for step in steps)
        print_json({**sides, "same": same, "steps": [step.to_json() for step in steps]})
        return
    for prefix, saved in (("---", first), ("+++", second)):
        confidence = "unknown" if saved.confidence is None else f"{saved.confidence:.2f}"
        because = f": {saved.because}" if saved.because else ""
        echo(visible(f"{prefix} {saved.planner}, confidence {confidence}{because}"))
    for step in steps:
        if step.change == "same":
            echo(visible(f"  {step.second}"))
            continue
        for prefix, text in (("-", step.first), ("+", step.second)):
            if text is not None:
                echo(visible(f"{prefix} {text}"))


def _plan_question(
    config: Path | None, values: DomainValues, question: str, context: dict[str, Any], flags: Flags
) -> SavedPlan:
    """Plan a question, and return the plan in the form in which files are read."""
    from casewright.graph.plan_files import SavedPlan
    from casewright.planner import PlanRequest
    from casewright.serve.session.choice import read_chosen_parts
    from casewright.serve.session.session import open_chosen

    chosen = read_chosen_parts(config, values.domain, **flags)
    with closing(open_chosen(chosen, opening=values.opening)) as session:
        result = session.planner.plan(PlanRequest(question, session.opened.toolbox, context))
    name = result.planner + (" (fallback)" if result.fallback else "")
    because = result.fallback or result.because
    return SavedPlan(result.plan, question, name, result.doubt()["confidence"], because)


def _find_plan(source: str, folder: Path) -> SavedPlan:
    """Read a plan from a file, or else find the pinned plan of this name in the folder."""
    from casewright.graph.plan_files import read_plan_file
    from casewright.planner.pinned import pinned_names

    is_name = not Path(source).is_file() and source in pinned_names(folder)
    return read_plan_file(folder / f"{source}.toml" if is_name else Path(source))


def _read_parts_and_folder(
    config: Path | None, domain: Domain, flags: Flags
) -> tuple[ChosenParts, Path]:
    """Return the parts that settings and flags choose, and the folder of pinned plans."""
    from casewright.serve.session.choice import chosen_parts
    from casewright.serve.settings.settings import load_settings

    loaded = load_settings(config, **flags)
    return chosen_parts(loaded, domain), loaded.settings.plans_folder or DEFAULT_FOLDER


def _plans_folder(config: Path | None, folder: Path | None) -> Path:
    from casewright.serve.settings.settings import load_settings

    return load_settings(config, plans_folder=folder).settings.plans_folder or DEFAULT_FOLDER
