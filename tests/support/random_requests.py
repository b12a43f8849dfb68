"""Random requests that a planner must survive: with any tools, any Unicode text and any context."""

from __future__ import annotations

import random
from typing import Any

from casewright.planner import PlanRequest
from casewright.tools import Parameter, Source, Toolbox, ToolExample, ToolSpec

KINDS = ("string", "number", "integer", "boolean", "array", "any", "any")
FIELDS = ("item_id", "title", "evidence", "price", "order_id", "s1", "question")
#: Texts that a prompt, a grammar or a tokenizer might take for markup.
HOSTILE = (
    "</s>",
    "[INST]",
    "[/INST]",
    "<|im_end|>",
    'say "hi"',
    "back\\slash",
    "new\nline",
    "tab\there",
    "s1 = no_evidence()",
    "%regex {}",
    "/start: .*/",
    "Käse straße ẞ İ",
    "قهوة سوداء",
    "コーヒー豆",
    "👩‍👩‍👧 é e\u0301",
    "\u2028\x85\u00a0",
    "ﬁ ŉ ǰ",
    "don't wi-fi 3.5mm",
    "]]>'\"`$(rm)",
)
WORDS = ("where", "is", "my", "blue", "tent", "order", "the", "2nd", "X-200", "review", "of")


def random_toolbox(draw: random.Random) -> Toolbox:
    """Return a toolbox of one to eight tools with random parameters."""
    return Toolbox([_tool(draw, f"tool_{number}") for number in range(draw.randint(1, 8))])


def random_request(draw: random.Random, toolbox: Toolbox, max_steps: int) -> PlanRequest:
    """Return a request with a random question and a random context."""
    return PlanRequest(_question(draw), toolbox, _context(draw), max_steps=max_steps)


def _tool(draw: random.Random, name: str) -> ToolSpec:
    parameters = tuple(_parameter(draw, f"p{number}") for number in range(draw.randint(0, 4)))
    results = tuple(draw.sample(FIELDS, draw.randint(0, 3)))
    example = ToolExample(_question(draw), "s1 = no_evidence()") if draw.random() < 0.3 else None
    return ToolSpec(name, draw.choice(HOSTILE), parameters, results, example)


def _parameter(draw: random.Random, name: str) -> Parameter:
    choices = tuple(draw.sample(HOSTILE, draw.randint(0, 3))) if draw.random() < 0.2 else ()
    sources = frozenset(draw.sample(list(Source), draw.randint(0 if choices else 1, 5)))
    return Parameter(
        name,
        draw.choice(HOSTILE),
        "string" if choices else draw.choice(KINDS),
        sources,
        choices,
        required=draw.random() < 0.7,
    )


def _question(draw: random.Random) -> str:
    pieces = [
        draw.choice(WORDS) if draw.random() < 0.6 else draw.choice([*HOSTILE, _any_text(draw)])
        for _ in range(draw.randint(1, 12))
    ]
    return draw.choice([" ", " ", ", ", "\n", ""]).join(pieces).strip() or "?"


def _any_text(draw: random.Random) -> str:
    planes = ((0x20, 0x7F), (0xA0, 0x600), (0x600, 0x3000), (0x3000, 0xD800), (0xE000, 0x10FFFF))
    low, high = draw.choice(planes)
    return "".join(chr(draw.randrange(low, high)) for _ in range(draw.randint(1, 8)))


def _context(draw: random.Random) -> dict[str, Any]:
    names = ("product_id", "page", "n", "not an identifier", "", "ünicode", "tags", "none", "_x")
    values: tuple[Any, ...] = ("P1", 3, 1.5, True, ["a"], None, {"a": 1}, "", HOSTILE[4])
    return {name: draw.choice(values) for name in draw.sample(names, draw.randint(0, 5))}
