"""A toolbox with a tool for every source and type, and checks of calls with it."""

from __future__ import annotations

from typing import Any

from casewright.errors import PlanError
from casewright.tools import Toolbox, ToolSpec
from tests.planner.helpers import errors_of, parameter

ANY = ("span", "literal", "question", "context", "step", "number", "boolean")
TOOLBOX = Toolbox(
    [
        ToolSpec("give", "", (), ("item_id", "title")),
        ToolSpec("words", "", (parameter("x", "span"),)),
        ToolSpec("text", "", (parameter("x", "literal"),)),
        ToolSpec("asked", "", (parameter("x", "question"),)),
        ToolSpec("page", "", (parameter("x", "context"),)),
        ToolSpec("looked_up", "", (parameter("x", "step"),)),
        ToolSpec("count", "", (parameter("x", "number"),)),
        ToolSpec("flag", "", (parameter("x", "boolean"),)),
        ToolSpec("unit", "", (parameter("x", choices=("celsius", "kelvin")),)),
        ToolSpec("unit_or_step", "", (parameter("x", "step", choices=("celsius", "kelvin")),)),
        ToolSpec("optional", "", (parameter("x", "literal", required=False),)),
        ToolSpec("many", "", (parameter("x", "span", "step", kind="array"),)),
        *(
            ToolSpec(f"a_{kind}", "", (parameter("x", *ANY, kind=kind),))
            for kind in ("string", "number", "integer", "boolean", "any")
        ),
    ]
)
CONTEXT = {"page": "p1", "n": 3, "ratio": 1.5, "on": True, "tags": ["a"], "none": None}
FORMS = {
    "span": '"wool socks"',
    "literal": '"boots"',
    "question": "question",
    "context": "context.page",
    "step": "s1.item_id",
    "number": "12",
    "boolean": "true",
}


def only_error(call: str, **more: Any) -> PlanError:
    (error,) = errors_of(f"s1 = give()\ns2 = {call}", TOOLBOX, context=CONTEXT, **more)
    assert error.step == "s2"
    assert error.mend
    return error


def assert_accepted(call: str) -> None:
    assert errors_of(f"s1 = give()\ns2 = {call}", TOOLBOX, context=CONTEXT) == []
