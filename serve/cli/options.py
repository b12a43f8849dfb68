"""Options that several commands share, and options that override settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Option

from casewright.errors import InputError

DomainName = Annotated[str, Option("--domain", "-d", help="The domain's name.")]
DomainOrFile = Annotated[
    str, Option("--domain", "-d", help="The domain of the tools: FILE.py:NAME, or a name.")
]
Scope = Annotated[
    list[str] | None,
    Option(
        help="A field of the user; repeatable; default: its first value.", metavar="FIELD=VALUE"
    ),
]
Tenant = Annotated[str | None, Option(help="A tenant; tools read only its cases.", metavar="NAME")]
ConfigFile = Annotated[
    Path | None, Option(help="A TOML file of settings; see casewright config.", metavar="FILE")
]
_PLANNER_HELP = (
    "case; ensemble (parser and mistral together, for tools of your own); parser (the plan parser; "
    "it replaces case if there is no reader); mistral (the packaged tuned language model); smollm2 "
    "(the base of mistral); classifiers; local:FOLDER (another model in this process: the folder "
    "of a model, or of an adapter that names its model); agent:local:FOLDER (a model that plans "
    "step by step); or provider:model (a chat model)."
)
PlannerName = Annotated[str, Option(help=_PLANNER_HELP, metavar="NAME")]
Adapter = Annotated[
    str | None,
    Option(
        help="A plan parser or a language model's PEFT adapter; without --planner, this one plans.",
        metavar="FOLDER",
    ),
]
Device = Annotated[
    str | None, Option(help="A local model's device: cpu, cuda, cuda:1 or mps.", metavar="NAME")
]
DType = Annotated[
    str | None,
    Option(
        help="A local language model's number type: float32, bfloat16 (the default on a GPU), "
        "float16, or int8 (CPU only; the default for adapters that Casewright trained).",
        metavar="TYPE",
    ),
]
Examples = Annotated[
    int | None,
    Option(min=0, help="Plan cases in a language model's prompt; default: 4, or as in training."),
]
Grammar = Annotated[
    bool,
    Option("--grammar/--no-grammar", help="Let a local language model write valid plans only."),
]
ContextText = Annotated[str | None, Option(help="Known facts, such as the open page, as JSON.")]
HistoryFile = Annotated[
    Path | None, Option(help="Earlier turns, a JSON file, the earliest first.", metavar="FILE")
]
PlansFolder = Annotated[
    Path | None,
    Option(help="The folder of pinned plans; default: ./plans, or none for serve.", metavar="DIR"),
]
Budget = Annotated[
    list[str] | None,
    Option(
        help="A limit of the plan; NAME is calls, seconds, cost, tokens or a tool (for its calls); "
        "repeatable.",
        metavar="NAME=NUMBER",
    ),
]
Approve = Annotated[
    bool, Option("--approve", help="Show the plan and its price, and wait for yes or no.")
]
DryRun = Annotated[
    bool, Option("--dry-run", help="Show the plan and its price without running it.")
]
SaveRun = Annotated[
    Path | None, Option(help="Also save the run; casewright show opens it.", metavar="FILE")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON for machines.")]
Seed = Annotated[int, Option(min=0, help="The seed of random choices.")]


def _check_plot(file: Path | None) -> Path | None:
    if file is not None and file.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"--plot {file} is not a picture. End its name in .png, .svg or .pdf.")
    if file is not None and not file.absolute().parent.is_dir():
        raise InputError(f"--plot {file} cannot be written: its folder does not exist.")
    return file


Plot = Annotated[
    Path | None,
    Option(help="Also draw the result into this PNG, SVG or PDF file.", callback=_check_plot),
]
EncoderName = Annotated[
    str | None,
    Option(help="A sentence-transformers model; the packaged one by default.", metavar="NAME"),
]
#: Values of options by the name of the setting; ``None`` if an option is not given.
Flags = Mapping[str, Any]
#: The option for each setting, by the setting's name.
OPTIONS = {
    "domain": Annotated[
        str | None,
        Option(
            *("--domain", "-d"),
            help="The domain of the question: a name or FILE.py:NAME; shopping by default.",
            metavar="NAME",
        ),
    ],
    "planner": Annotated[
        str | None, Option(help=f"{_PLANNER_HELP} By default the domain's.", metavar="NAME")
    ],
    "adapter": Adapter,
    "device": Device,
    "dtype": DType,
    "generator": Annotated[
        str | None, Option(help="extractive, or a chat model as provider:model.", metavar="NAME")
    ],
    "encoder": EncoderName,
    "feedback": Annotated[
        str | None,
        Option(
            help="The judge of relevance feedback in searches: offline, provider:model, or off.",
            metavar="JUDGE",
        ),
    ],
    "plans_folder": PlansFolder,
}


def with_flags(*names: str, **options: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces a command's parameter ``flags`` by options for settings.

    ``names`` are keys of ``OPTIONS``; ``options`` are for settings that only this command has.
    """
    options = {name: OPTIONS[name] for name in names} | options

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapper(**values: Any) -> None:
            flags = {name: values.pop(name) for name in options}
            command(flags=flags, **values)

        hints = get_type_hints(command, include_extras=True)
        parameters = signature(command).parameters
        annotations: dict[str, Any] = {}
        for name in parameters:
            annotations |= options if name == "flags" else {name: hints[name]}
        defaults = {name: parameter.default for name, parameter in parameters.items()}
        set_options(wrapper, annotations, defaults)
        return wrapper

    return decorate


def set_options(
    command: Callable[..., None], annotations: dict[str, Any], defaults: Mapping[str, Any]
) -> None:
    """Set a function's signature, from which Typer makes options; missing defaults are ``None``."""
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=hint)
            for name, hint in annotations.items()
        ]
    )
    command.__annotations__ = annotations
