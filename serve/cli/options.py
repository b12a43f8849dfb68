"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DomainName = Annotated[str, typer.Option("--domain", "-d", help="What the question is about.")]
ToolsOf = Annotated[
    str, typer.Option("--domain", "-d", help="Whose tools: FILE.py:NAME, or a domain's name.")
]
DefaultedDomainName = Annotated[
    str | None,
    typer.Option(
        "--domain",
        "-d",
        help="What the question is about; shopping, unless a setting says otherwise. FILE.py:NAME "
        "for one of your own.",
        metavar="NAME",
    ),
]
Scope = Annotated[
    list[str] | None,
    typer.Option(
        help="Who asks, by the domain's scope fields; may be given several times. The domain's "
        "first values by default.",
        metavar="FIELD=VALUE",
    ),
]
Tenant = Annotated[
    str | None,
    typer.Option(
        help="Whose cases the tools look up, as a service takes it from a token.", metavar="NAME"
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file of settings; casewright config shows what they are.",
        metavar="FILE",
    ),
]
_PLANNERS = (
    "case, parser for the plan parser (case without a reader), classifiers, mistral for the tuned "
    "language model that ships, smollm2 for its base, local:FOLDER for another one in this process "
    "(a model's folder, or an adapter's, which names its model), agent:local:FOLDER for one that "
    "is asked for a step at a time, or a chat model as provider:model."
)
PlannerName = Annotated[str, typer.Option(help=_PLANNERS, metavar="NAME")]
DefaultedPlannerName = Annotated[
    str | None,
    typer.Option("--planner", help=f"{_PLANNERS} The domain's own by default.", metavar="NAME"),
]
Adapter = Annotated[
    str | None,
    typer.Option(
        help="A plan parser of casewright finetune adapt, or a PEFT adapter for the local language "
        "model; without --planner it is the planner itself.",
        metavar="FOLDER",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where the local language model runs: cpu, cuda, cuda:1, mps; a GPU if there is one.",
        metavar="NAME",
    ),
]
DType = Annotated[
    str | None,
    typer.Option(
        help="Of the local language model: float32, bfloat16, float16, or int8 (weights alone, on "
        "a CPU). By default bfloat16 on a GPU, elsewhere int8 where the adapter was trained here, "
        "else float32.",
        metavar="TYPE",
    ),
]
Examples = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="With a language model as planner, plan cases in its prompt; 4, or as many as mistral "
        "was trained with.",
    ),
]
Grammar = Annotated[
    bool,
    typer.Option(
        "--grammar/--no-grammar",
        help="Whether the local language model can write valid plans only; without, what is no "
        "plan is told.",
    ),
]
GeneratorName = Annotated[
    str, typer.Option(help="extractive, or a chat model as provider:model.", metavar="NAME")
]
DefaultedGeneratorName = Annotated[
    str | None,
    typer.Option(
        "--generator",
        help="extractive, as by default, or a chat model as provider:model.",
        metavar="NAME",
    ),
]
ContextText = Annotated[
    str | None, typer.Option("--context", help="What is known beside the question, as JSON.")
]
HistoryFile = Annotated[
    Path | None,
    typer.Option(
        "--history",
        help="Earlier turns: a JSON file of questions and answers, the earliest first.",
        metavar="FILE",
    ),
]
FeedbackJudge = Annotated[
    str | None,
    typer.Option(
        "--feedback",
        help="Search again with what this judge calls relevant: offline, or a chat model as "
        "provider:model; off, the default, searches once.",
        metavar="JUDGE",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def _drawable(file: Path | None) -> Path | None:
    """Refuse a place that cannot be drawn to before what takes long."""
    from casewright.errors import InputError

    if file is not None and (file.suffix.lower() not in (".png", ".svg", ".pdf")):
        raise InputError(f"--plot {file} is no picture's name. End it in .png, .svg or .pdf.")
    if file is not None and not file.absolute().parent.is_dir():
        raise InputError(f"--plot {file} cannot be written: its folder is not there.")
    return file


Plot = Annotated[
    Path | None,
    typer.Option(help="Also draw the result into this PNG or SVG file.", callback=_drawable),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        help="Any sentence-transformers model, by name or folder; the packaged MiniLM by default.",
        metavar="NAME",
    ),
]
LocalModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A causal language model's name or folder; else random weights of --size.",
        metavar="NAME",
    ),
]
ModelSize = Annotated[
    str, typer.Option("--size", help="Of random weights: tiny, 100m or 7b.", metavar="SIZE")
]
PromptLengths = Annotated[
    str | None,
    typer.Option(
        "--prompt-tokens",
        help="Bring prompts to so many tokens that never change and so many that do: 700+100.",
        metavar="N+N",
    ),
]
PlanLengths = Annotated[
    str | None,
    typer.Option("--plan-tokens", help="Only plans of so many tokens: 30-60.", metavar="N-N"),
]
