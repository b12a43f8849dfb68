"""Asks that only an example stands for: those of a tool that no training saw."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from casewright.errors import PlanError
from casewright.planner.asks import OPEN, Ask, asks_of
from casewright.planner.parse import parse_plan
from casewright.planner.plan import ContextRef, Literal, QuestionRef, Step, StepRef, Value
from casewright.planner.reader import Reader
from casewright.planner.reader_limits import SHARPNESS
from casewright.planner.request import PlanRequest
from casewright.tools import Source, ToolSpec

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])")
#: Share of a way to feed a parameter that no trained form uses.
UNSEEN = 1e-3


@dataclass(frozen=True, slots=True)
class ExampleAsk:
    """An ask with what it is recognised by.

    Attributes:
        ask: The steps.
        latent: The example's latent, unit vector (128,).
        bias: Logit beside the likeness.
        feeders: Numbers of the trained forms that are fed in the same way.
        rivals: Numbers of the trained forms that are fed at the same parameter in any way.
    """

    ask: Ask
    latent: NDArray[np.float32]
    bias: float
    feeders: tuple[int, ...] = ()
    rivals: tuple[int, ...] = ()

    def logit(self, scores: NDArray[np.float32], latent: NDArray[np.float32]) -> float:
        """Return the ask's logit, given those of the trained forms and the reading's latent.

        How its tool is fed (by the page, an order, a search) is judged by the trained forms.
        """
        likeness = SHARPNESS * float(self.latent @ latent) + self.bias
        if not self.rivals:
            return likeness
        mass = np.exp(scores - scores.max())
        share = float(mass[list(self.feeders)].sum() / max(mass[list(self.rivals)].sum(), 1e-9))
        return likeness + float(np.log(max(share, UNSEEN)))


def example_asks(reader: Reader, request: PlanRequest, known: Collection[str]) -> list[ExampleAsk]:
    """Return asks for every tool of the request that is not known, in each way to feed it."""
    found = []
    for tool in request.toolbox:
        if tool.name not in known:
            ask, latent = _recognised(reader, tool)
            own = replace(ask, steps=tuple(_numbered(step, request) for step in ask.steps))
            bias = reader.card.example_bias
            for fed, feeders, rivals in _fed(own, reader):
                found.append(ExampleAsk(fed, latent, bias, feeders, rivals))
    return found


def _recognised(reader: Reader, tool: ToolSpec) -> tuple[Ask, NDArray[np.float32]]:
    """Return a tool's ask and its example's latent, or its description's where it has none."""
    question, ask = tool.description or tool.name, _bare(tool)
    if tool.example is not None:
        with suppress(PlanError):
            plan = parse_plan(tool.example.plan)
            asks = [ask for ask, _ in asks_of(plan, tool.example.query) if tool.name in ask.tools]
            if asks:
                question, ask = tool.example.query, asks[0]
    reading = reader.read(question, dict.fromkeys(ask.context_fields(), "given"))
    return ask, reading.next_asks([()]).latents[0]


def _bare(tool: ToolSpec) -> Ask:
    """Return a call of the tool with its required parameters, each from where it may come."""
    arguments: list[tuple[str, Value]] = []
    for parameter in tool.parameters:
        if not parameter.required:
            continue
        if Source.QUESTION in parameter.sources and parameter.name in ("query", "question"):
            arguments.append((parameter.name, QuestionRef()))
        elif parameter.choices:
            arguments.append((parameter.name, Literal(parameter.choices[0])))
        elif {Source.SPAN, Source.LITERAL} & set(parameter.sources):
            arguments.append((parameter.name, OPEN))
        else:
            arguments.append((parameter.name, ContextRef(parameter.name)))
    return Ask((Step(tool.name, tuple(arguments)),))


def _numbered(step: Step, request: PlanRequest) -> Step:
    """Put the question's numbers where the example has its own."""
    said = iter(_NUMBER.findall(request.question))

    def renewed(value: Value) -> Value:
        number = isinstance(value, Literal) and type(value.value) in (int, float)
        text = next(said, None) if number else None
        if text is not None:
            # One that no plan can hold, since it is too large, is none.
            with suppress(ValueError):
                return Literal(float(text) if "." in text else int(text))
        return value

    return Step(step.tool, tuple((name, renewed(value)) for name, value in step.arguments))


def _fed(ask: Ask, reader: Reader) -> Iterator[tuple[Ask, tuple[int, ...], tuple[int, ...]]]:
    """Yield the ask in every way in which trained forms feed the same parameter.

    With each: the numbers of the forms that feed it so, and of all forms that feed it.
    """
    last = ask.steps[-1]
    place = next((n for n, v in last.arguments if isinstance(v, (StepRef, ContextRef))), None)
    ways: dict[tuple[tuple[Step, ...], Value], list[int]] = {}
    for number, form in enumerate(reader.asks, 1):
        value = form.steps[-1].argument(place) if place else None
        if isinstance(value, (StepRef, ContextRef)):
            ways.setdefault((form.steps[:-1], value), []).append(number)
    if not ways or place is None:
        yield ask, (), ()
        return
    rivals = tuple(number for numbers in ways.values() for number in numbers)
    own = last.argument(place)
    assert own is not None
    ways.setdefault((ask.steps[:-1], own), [])
    for (before, value), numbers in ways.items():
        arguments = tuple((n, value if n == place else v) for n, v in last.arguments)
        yield Ask((*before, Step(last.tool, arguments))), tuple(numbers), rivals
