"""MetaTool's questions for one tool each (Huang et al. 2023, arXiv:2310.03128) as plans."""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from casewright.errors import InputError
from casewright.finetune.instructions.instruction import Instruction, PlannedQuery
from casewright.finetune.instructions.readers.calls import NO_TOOL, instruction_of, planned
from casewright.finetune.instructions.readers.functions import make_toolbox, tool
from casewright.finetune.instructions.readers.records import Refuse, Unfit
from casewright.finetune.instructions.words import stems
from casewright.finetune.queries.query_files import read_text
from casewright.finetune.records import first_problem
from casewright.planner import Plan, QuestionRef, Step
from casewright.planner.spans import normalized
from casewright.tools import Parameter, Source, ToolSpec

FILE = "all_clean_data.csv"
DESCRIPTIONS = ("plugin_des.json", "big_tool_des.json")
#: Other tools that are shown beside the one that is right.
OTHERS = 4
_QUESTION = Parameter("query", "the question", "string", frozenset({Source.QUESTION}))
_DESCRIBED = TypeAdapter(dict[str, str])


def read_metatool(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield each question with the plan that asks its one tool the question.

    The set chooses tools and knows no arguments: every tool is declared with one parameter, which
    takes the question. Beside the tool stand others, drawn by the line's number, none of whose
    descriptions has a word of the question: the set does not say which others would do.

    Raises:
        InputError: A file is missing, cannot be read, or has another form.
    """
    if missing := [name for name in (FILE, *DESCRIPTIONS) if not (path / name).is_file()]:
        raise InputError(f"{path} lacks {', '.join(missing)}. Give the folder that holds them.")
    tools = _tools(path, refuse)
    rows = _rows(path / FILE)
    chosen = defaultdict(set)
    for question, name in rows.values():
        chosen[normalized(question)].add(name)
    own = {name: stems(f"{name} {spec.description}") for name, spec in tools.items()}
    for number, (question, name) in rows.items():
        several = len(chosen[normalized(question)]) > 1
        made = partial(_planned, number, question, name, tools, own, several=several)
        source = f"metatool:{FILE}:{number}"
        yield from instruction_of(f"metatool:{number}", source, made, refuse)


def _planned(
    number: int,
    question: str,
    name: str,
    tools: Mapping[str, ToolSpec],
    own: Mapping[str, Collection[str]],
    *,
    several: bool,
) -> PlannedQuery:
    if name not in tools:
        raise Unfit(NO_TOOL)
    if several:
        raise Unfit("a question that several tools are annotated for")
    asked = stems(question)
    free = [other for other in tools if other != name and asked.isdisjoint(own[other])]
    rng = random.Random(f"metatool {number}")
    others = [tools[other] for other in rng.sample(free, min(OTHERS, len(free)))]
    shown = rng.sample([tools[name], *others], len(others) + 1)
    plan = Plan((Step(tools[name].name, ((_QUESTION.name, QuestionRef()),)),))
    return planned(f"metatool:{number}", question, make_toolbox(shown), plan, "metatool")


def _rows(file: Path) -> Mapping[int, tuple[str, str]]:
    """Return question and tool by the record's number, counting from 1."""
    read = csv.DictReader(read_text(file).splitlines(keepends=True))
    if not {"Query", "Tool"} <= set(read.fieldnames or ()):
        raise InputError(
            f"{file} has the columns {read.fieldnames}, and not Query and Tool: is this the file "
            "that the reader is for?"
        )
    return {
        number: ((row["Query"] or "").strip(), (row["Tool"] or "").strip())
        for number, row in enumerate(read, 1)
    }


def _tools(folder: Path, refuse: Refuse) -> Mapping[str, ToolSpec]:
    made = {}
    for name in DESCRIPTIONS:
        try:
            described = _DESCRIBED.validate_json(read_text(folder / name), strict=True)
        except ValidationError as error:
            raise InputError(
                f"{folder / name}: {first_problem(error)} The file must be one JSON object of "
                "descriptions by tool."
            ) from error
        for own, description in described.items():
            try:
                made[own] = tool(own, description, [_QUESTION], ())
            except Unfit as unfit:
                refuse(f"toolbox: {unfit}")
    return made
