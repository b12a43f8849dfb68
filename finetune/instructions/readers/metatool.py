"""MetaTool's questions for one tool each (Huang et al. 2023, arXiv:2310.03128) as plans."""

from __future__ import annotations

import csv
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from casewright.errors import InputError, PlanError
from casewright.finetune.instructions.instruction import Instruction, planned_instruction
from casewright.finetune.instructions.readers.calls import asked_with
from casewright.finetune.instructions.readers.functions import make_toolbox, tool
from casewright.finetune.instructions.readers.records import Refuse
from casewright.finetune.instructions.readers.refusal import Unfit
from casewright.finetune.instructions.words import content_words
from casewright.finetune.queries.query_files import read_text
from casewright.planner.spans import normalized
from casewright.tools import Parameter, Source, ToolSpec

FILE = "all_clean_data.csv"
DESCRIPTIONS = ("plugin_des.json", "big_tool_des.json")
LICENCE = "MIT; test items of MetaTool: no score on it may be reported after training on them"
#: Other tools that are shown beside the one that is right.
OTHERS = 4


def read_metatool(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield each question with the plan that asks its one tool the question.

    The set chooses tools and knows no arguments: every tool is declared with one parameter, which
    takes the question. Beside the tool stand others, drawn by the line's number, none of whose
    descriptions has a word of the question: the set does not say which others would do.

    Raises:
        InputError: A file is missing, cannot be read, or has another form.
    """
    files = (FILE, *DESCRIPTIONS)
    if missing := [name for name in files if not (path / name).is_file()]:
        raise InputError(f"{path} lacks {', '.join(missing)}. Give the folder that holds them.")
    tools = _tools(path, refuse)
    rows = _rows(path / FILE)
    chosen = defaultdict(set)
    for question, name in rows.values():
        chosen[normalized(question)].add(name)
    stems = {name: _stems(f"{name} {spec.description}") for name, spec in tools.items()}
    for number, (question, name) in rows.items():
        id_ = f"metatool:{number}"
        try:
            if name not in tools:
                raise Unfit("a call of a tool that is not declared")
            if len(chosen[normalized(question)]) > 1:
                raise Unfit("a question that several tools are annotated for")
            asked = _stems(question)
            free = [other for other in tools if other != name and not stems[other] & asked]
            rng = random.Random(f"metatool {number}")
            others = [tools[other] for other in rng.sample(free, min(OTHERS, len(free)))]
            shown = rng.sample([tools[name], *others], len(others) + 1)
            query = asked_with(id_, question, make_toolbox(shown), tools[name].name, "metatool")
            yield planned_instruction(id_, f"metatool:{FILE}:{number}", LICENCE, query)
        except Unfit as unfit:
            refuse(str(unfit))
        except PlanError:
            refuse("a plan that breaks a static check")


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
    question = Parameter("query", "the question", "string", frozenset({Source.QUESTION}))
    made = {}
    for name in DESCRIPTIONS:
        text = read_text(folder / name)
        try:
            told = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{folder / name}: {error}. The file must be one object.") from error
        if not isinstance(told, dict) or not all(isinstance(one, str) for one in told.values()):
            raise InputError(f"{folder / name} is no JSON object of descriptions by tool.")
        for own, description in told.items():
            try:
                made[own] = tool(own, description, [question], ())
            except Unfit as unfit:
                refuse(f"toolbox: {unfit}")
    return made


def _stems(text: str) -> set[str]:
    return {word[:5] for word in content_words(text)}
