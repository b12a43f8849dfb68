"""Drills: invented tools and questions, to learn reading a prompt where nothing can be known.

A tool of a drill has a name, key words and a place in plans that were drawn at random, and its
examples show them; a question has the key words of the tools that it needs, the words to search
for, and words that mean nothing. So the plan can only be copied together from what stands in the
prompt: names from the list, the shape from an example, arguments from the question. The words are
those of annotated questions, and nothing of their plans is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from casewright.errors import InputError
from casewright.finetune.examples.example import PLAN_TASK, TrainingExample
from casewright.finetune.recipe.section import Section
from casewright.planner import PlanRequest, parse_plan, render_prompt
from casewright.tools import NO_EVIDENCE, Parameter, Source, Toolbox, ToolExample, ToolSpec

#: Where a drill comes from, before its toolbox's number.
DRILL = "drill"
_WORD = re.compile(r"[a-z]{3,12}")
_FINDS = frozenset({Source.SPAN, Source.LITERAL})
_TAKES = frozenset({Source.CONTEXT, Source.STEP})
_ASKS = frozenset({Source.QUESTION, Source.LITERAL})
#: Words that a toolbox's names and key words are drawn from at once.
_DRAWN = 80
#: What stands for something else in a plan.
_RESERVED = frozenset({"question", "context", "true", "false"})
#: A question without any key word needs no look-up.
_IDLE = 0.1


class DrillSettings(Section):
    """``[data.drills]``: how many.

    Attributes:
        toolboxes: Invented toolboxes.
        questions: Questions of each, which share its prompt's head.
        shots: At most how many plan cases a prompt shows; how many is drawn.
    """

    toolboxes: int = Field(default=0, ge=0, le=1_000_000)
    questions: int = Field(default=16, ge=1, le=1024)
    shots: int = Field(default=4, ge=0, le=64)


@dataclass(frozen=True, slots=True)
class _Invented:
    """A tool: what it is called, the words of questions that need it, how it is called.

    Attributes:
        kind: ``find`` words and return an id, ``ask`` of an id, or answer ``alone``.
        after: Of a finding tool: the words to find stand after its key words, not before.
        length: How many these are.
    """

    spec: ToolSpec
    keys: tuple[str, ...]
    kind: str
    after: bool = True
    length: int = 1


def question_words(questions: Iterable[str]) -> list[str]:
    """Return the plain words of questions, each once, in order."""
    return sorted({word for text in questions for word in _WORD.findall(text.lower())})


def drills(settings: DrillSettings, words: Sequence[str], seed: int) -> list[TrainingExample]:
    """Return the drills, the same for the same arguments; every plan is valid for its prompt.

    Args:
        settings: How many.
        words: What questions and names are made of: some hundreds at least.
        seed: Of all that is drawn.

    Raises:
        InputError: There are too few words.
    """
    words = [word for word in words if word not in _RESERVED]
    if settings.toolboxes and len(set(words)) < _DRAWN:
        raise InputError(
            f"Drills are made of the words of questions, and there are {len(set(words))} different "
            f"ones; {_DRAWN} are needed. Give more queries, or set data.drills.toolboxes = 0."
        )
    made = []
    for number in range(1, settings.toolboxes + 1):
        rng = random.Random(f"{seed}:drill:{number}")
        made += _toolbox(settings, words, number, rng)
    return made


def _toolbox(
    settings: DrillSettings, words: Sequence[str], number: int, rng: random.Random
) -> list[TrainingExample]:
    tools = _invent(words, rng)
    shown = []
    for tool in tools:
        query, plan, _ = _question([tool], tools, words, rng)
        # An example that needs a tool beside its own is shown too: it says how they go together.
        example = ToolExample(query, plan) if rng.random() < 0.9 else None
        shown.append(replace(tool.spec, example=example))
    toolbox = Toolbox([*shown, NO_EVIDENCE])
    plan_cases = [_drawn(tools, words, rng) for _ in range(settings.questions)]
    made = []
    for place in range(settings.questions):
        query, plan, context = _drawn(tools, words, rng)
        request = PlanRequest(query, context=context, toolbox=toolbox)
        request.validate(parse_plan(plan))
        cases = rng.sample(plan_cases, rng.randint(0, min(settings.shots, len(plan_cases))))
        cases = [case for case in cases if set(case[2]) <= set(context)]
        prompt = render_prompt(request, [ToolExample(case[0], case[1]) for case in cases])
        name = f"{DRILL}:{number}"
        made.append(TrainingExample(f"{name}#{place}", PLAN_TASK, name, prompt, plan))
    return made


def _invent(words: Sequence[str], rng: random.Random) -> list[_Invented]:
    drawn = iter(rng.sample(words, _DRAWN))
    finders = [_finder(drawn, rng) for _ in range(rng.randint(1, 2))]
    askers = [_asker(drawn, finders, rng) for _ in range(rng.randint(1, 3))]
    alone = [_alone(drawn, rng) for _ in range(rng.randint(0, 2))]
    tools = [*finders, *askers, *alone]
    rng.shuffle(tools)
    return tools


def _named(drawn: Iterable[str], rng: random.Random) -> tuple[str, tuple[str, ...], str]:
    """Return a tool's name, its key words and its description."""
    drawn = iter(drawn)
    keys = tuple(next(drawn) for _ in range(rng.randint(1, 2)))
    said = keys if rng.random() < 0.5 else (next(drawn),)
    name = "_".join((*said, next(drawn)) if rng.random() < 0.5 else (next(drawn), *said))
    return name, keys, f"{next(drawn).capitalize()} {' '.join(keys)} {next(drawn)}."


def _finder(drawn: Iterable[str], rng: random.Random) -> _Invented:
    drawn = iter(drawn)
    name, keys, description = _named(drawn, rng)
    parameter = Parameter(next(drawn), kind="string", sources=_FINDS)
    spec = ToolSpec(name, description, (parameter,), (f"{next(drawn)}_id", next(drawn)))
    return _Invented(spec, keys, "find", rng.random() < 0.5, rng.randint(1, 2))


def _asker(drawn: Iterable[str], finders: Sequence[_Invented], rng: random.Random) -> _Invented:
    drawn = iter(drawn)
    name, keys, description = _named(drawn, rng)
    of = rng.choice(finders).spec.results[0]
    parameters = [Parameter(of, kind="string", sources=_TAKES)]
    if rng.random() < 0.7:
        parameters.append(Parameter(next(drawn), kind="string", sources=_ASKS))
    return _Invented(ToolSpec(name, description, tuple(parameters)), keys, "ask")


def _alone(drawn: Iterable[str], rng: random.Random) -> _Invented:
    drawn = iter(drawn)
    name, keys, description = _named(drawn, rng)
    parameter = Parameter(next(drawn), kind="string", sources=_ASKS)
    return _Invented(ToolSpec(name, description, (parameter,)), keys, "alone")


_Question = tuple[str, str, dict[str, str]]


def _drawn(tools: Sequence[_Invented], words: Sequence[str], rng: random.Random) -> _Question:
    if rng.random() < _IDLE:
        return " ".join(rng.sample(words, rng.randint(2, 6))), "s1 = no_evidence()", {}
    several = len(tools) > 1 and rng.random() < 0.25
    return _question(rng.sample(list(tools), 2 if several else 1), tools, words, rng)


def _question(
    asked: Sequence[_Invented],
    tools: Sequence[_Invented],
    words: Sequence[str],
    rng: random.Random,
) -> _Question:
    """Return a question that needs these tools, its plan, and its context."""
    parts: list[list[str]] = []
    lines: list[str] = []
    context: dict[str, str] = {}
    for tool in asked:
        other = rng.sample(words, rng.randint(0, 3))
        parts.append([*other, *_step(tool, tools, words, lines, context, rng)])
    text = " ".join(word for part in parts for word in part)
    last = rng.sample(words, rng.randint(0, 2))
    return " ".join([text, *last]), "\n".join(lines), context


def _step(
    tool: _Invented,
    tools: Sequence[_Invented],
    words: Sequence[str],
    lines: list[str],
    context: dict[str, str],
    rng: random.Random,
) -> list[str]:
    """Add the lines that call a tool; return the words that ask for it."""
    if tool.kind == "find":
        found = rng.sample(words, tool.length)
        lines.append(_call(lines, tool.spec, {0: f'"{" ".join(found)}"'}))
        return [*tool.keys, *found] if tool.after else [*found, *tool.keys]
    if tool.kind == "alone":
        lines.append(_call(lines, tool.spec, {}))
        return list(tool.keys)
    field = tool.spec.parameters[0].name
    finder = next(one for one in tools if one.kind == "find" and one.spec.results[0] == field)
    if rng.random() < 0.4:
        context[field] = f"{rng.choice(words)[0].upper()}{rng.randint(100, 999)}"
        lines.append(_call(lines, tool.spec, {0: f"context.{field}"}))
        return list(tool.keys)
    asked = _step(finder, tools, words, lines, context, rng)
    lines.append(_call(lines, tool.spec, {0: f"s{len(lines)}.{field}"}))
    return [*tool.keys, *asked] if rng.random() < 0.5 else [*asked, *tool.keys]


def _call(lines: Sequence[str], spec: ToolSpec, given: Mapping[int, str]) -> str:
    """Return the next step's line; what is not given is the question."""
    arguments = ", ".join(
        f"{parameter.name}={given.get(place, 'question')}"
        for place, parameter in enumerate(spec.parameters)
    )
    return f"s{len(lines) + 1} = {spec.name}({arguments})"
