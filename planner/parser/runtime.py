"""A trained plan parser at work: toolboxes and cases are encoded once and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from casewright.errors import InputError
from casewright.planner.parser.arrays import Case
from casewright.planner.parser.example_cases import PlanCase, example_cases
from casewright.planner.parser.message import Message, read_message
from casewright.planner.parser.options import Options
from casewright.planner.parser.plan_reading import read_plan
from casewright.planner.parser.reading import ArrayNetwork
from casewright.planner.parser.schema import Schema
from casewright.planner.parser.search import PlanSearch, Points, Reading
from casewright.planner.parser.weights import FOLDER, load_network, read_weights, unfit
from casewright.planner.reader import reader_tokenizer
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Toolboxes that are kept encoded, and most tools of one: memory grows with their square.
KEPT, MOST_TOOLS = 16, 512


class Network(Protocol):
    """Reads toolboxes and messages; see ``reading.ArrayNetwork``."""

    def toolbox(self, schema: Schema, cases: Sequence[Case]) -> Any:
        """Return a toolbox with its cases as the network sees them."""

    def join(self, toolbox: Any, message: Message) -> Points:
        """Return what points for a message."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A toolbox and its cases as the network sees them; ``given`` are the cases as they came."""

    given: Sequence[PlanCase]
    schema: Schema
    options: Options
    read: Any


class ParserRuntime:
    """Runs a plan parser. Thread-safe.

    Args:
        network: Trained.
    """

    def __init__(self, network: Network) -> None:
        self._network, self._tokenizer = network, parser_tokenizer()
        self._kept: OrderedDict[tuple[str, int], Prepared] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(self, toolbox: Toolbox, cases: Sequence[PlanCase]) -> Prepared:
        """Return a toolbox encoded with its cases; the last ones are kept.

        Args:
            toolbox: The tools.
            cases: The same object at every call with the same cases.

        Raises:
            InputError: There are too many tools.
        """
        key = (toolbox.fingerprint(), id(cases))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        prepared = self._prepared(toolbox, cases)
        with self._lock:
            self._kept[key] = prepared
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return prepared

    def plans(
        self, prepared: Prepared, question: str, context: Mapping[str, Any], most_steps: int
    ) -> tuple[Message, list[Reading]]:
        """Return a message as it was read, and plans for it, the likeliest first."""
        message = read_message(self._tokenizer, question, context)
        if not message.words:
            return message, []
        points = self._network.join(prepared.read, message)
        search = PlanSearch(points, prepared.options, message, context)
        return message, search.plans(most_steps)

    def _prepared(self, toolbox: Toolbox, cases: Sequence[PlanCase]) -> Prepared:
        if len(toolbox) > MOST_TOOLS:
            raise InputError(
                f"The plan parser reads at most {MOST_TOOLS} tools at once, and there are "
                f"{len(toolbox)}. Narrow them: casewright.planner.narrowing(planner, toolbox)."
            )
        schema = Schema.of(toolbox, self._tokenizer)
        read: list[Case] = []
        for case in (*example_cases(toolbox), *cases):
            message = read_message(self._tokenizer, case.question, case.context)
            steps = read_plan(case.plan, schema, message)
            if steps is not None and message.words:
                read.append((message, steps))
        if not read:
            # Arrays of no cases have no shape to compute with: one that nothing is near to.
            read = [(read_message(self._tokenizer, "-", {}), [])]
        return Prepared(cases, schema, Options(schema), self._network.toolbox(schema, read))


def open_runtime(folder: Path = FOLDER, *, torch: bool = False) -> ParserRuntime:
    """Return a trained plan parser, ready to plan.

    Args:
        folder: Where ``casewright finetune parser`` wrote it.
        torch: Run the network as it is trained.

    Raises:
        InputError: Its weights do not fit.
    """
    if torch:
        from casewright.planner.parser.eager_network import EagerNetwork

        return ParserRuntime(EagerNetwork(load_network(folder)))
    try:
        return ParserRuntime(ArrayNetwork(read_weights(folder)))
    except KeyError as error:
        raise unfit(folder, error) from error


def parser_tokenizer() -> Tokenizer:
    """Return the encoder's tokenizer; what is too long is cut word by word."""
    tokenizer = reader_tokenizer()
    tokenizer.no_truncation()
    return tokenizer
