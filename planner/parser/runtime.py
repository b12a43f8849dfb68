"""Runs a trained plan parser; caches encoded toolboxes with their plan cases."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner.budget import BudgetCheck, unbounded
from casewright.planner.parser.arrays import ReadCase
from casewright.planner.parser.conventions import CaseConventions
from casewright.planner.parser.example_cases import PlanCase, example_cases
from casewright.planner.parser.message import Message, read_message
from casewright.planner.parser.options import OptionMasks
from casewright.planner.parser.plan_reading import read_plan
from casewright.planner.parser.reading import ArrayNetwork, ReadToolbox
from casewright.planner.parser.schema import Schema
from casewright.planner.parser.search import PlanSearch, ScoredSteps
from casewright.planner.parser.weights import FOLDER, read_weights, weights_error
from casewright.planner.reader import reader_tokenizer
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Maximum numbers of cached toolboxes, and of tools in a toolbox. A toolbox's memory grows with the
#: square of its number of tools.
MAX_CACHED_TOOLBOXES, MAX_TOOLS = 16, 512


@dataclass(frozen=True, slots=True, eq=False)
class PreparedToolbox:
    """A toolbox ready for planning; it holds ``cases`` so that their ``id`` is not used again."""

    cases: Sequence[PlanCase]
    schema: Schema
    options: OptionMasks
    encoded: ReadToolbox
    conventions: CaseConventions


class ParserRuntime:
    """Runs a plan parser. Thread-safe."""

    def __init__(self, network: ArrayNetwork) -> None:
        self._network = network
        self._tokenizer = parser_tokenizer()
        self._prepared: OrderedDict[tuple[str, int], PreparedToolbox] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(self, toolbox: Toolbox, cases: Sequence[PlanCase]) -> PreparedToolbox:
        """Return a toolbox encoded with its plan cases, from a cache.

        Raise ``InputError`` if the toolbox has more than ``MAX_TOOLS`` tools.

        Args:
            cases: Pass the same sequence object in every call: the cache compares its ``id``.
        """
        key = (toolbox.fingerprint(), id(cases))
        with self._lock:
            if key in self._prepared:
                self._prepared.move_to_end(key)
                return self._prepared[key]
        prepared = self._prepare_uncached(toolbox, cases)
        with self._lock:
            self._prepared[key] = prepared
            while len(self._prepared) > MAX_CACHED_TOOLBOXES:
                self._prepared.popitem(last=False)
        return prepared

    def plans(
        self,
        prepared: PreparedToolbox,
        question: str,
        context: Mapping[str, Any],
        max_steps: int,
        excess: BudgetCheck = unbounded,
        conventions: CaseConventions | None = None,
    ) -> tuple[Message, list[ScoredSteps]]:
        """Return the tokenized message, and plans within a budget, the most probable first.

        ``conventions`` are used instead of those of the toolbox's plan cases.
        """
        message = read_message(self._tokenizer, question, context)
        if not message.words:
            return message, []
        pointers = self._network.join(prepared.encoded, message)
        search = PlanSearch(pointers, prepared.options, message, context, excess)
        adapt = (conventions or prepared.conventions).apply
        plans = search.plans(max_steps)
        return message, [replace(plan, steps=adapt(plan.steps, message)) for plan in plans]

    def _prepare_uncached(self, toolbox: Toolbox, cases: Sequence[PlanCase]) -> PreparedToolbox:
        if len(toolbox) > MAX_TOOLS:
            raise InputError(
                f"The plan parser reads at most {MAX_TOOLS} tools at once, and there are "
                f"{len(toolbox)}. Narrow them: casewright.planner.narrowing(planner, toolbox)."
            )
        schema = Schema.of(toolbox, self._tokenizer)
        readable: list[ReadCase] = []
        for case in (*example_cases(toolbox), *cases):
            message = read_message(self._tokenizer, case.question, case.context)
            steps = read_plan(case.plan, schema, message)
            if steps is not None and message.words:
                readable.append((message, steps))
        if not readable:
            # The network needs at least one case. This case's message resembles no other message.
            readable = [(read_message(self._tokenizer, "-", {}), [])]
        encoded = self._network.encode_toolbox(schema, readable)
        conventions = CaseConventions(schema, readable)
        return PreparedToolbox(cases, schema, OptionMasks(schema), encoded, conventions)


def open_runtime(folder: Path = FOLDER) -> ParserRuntime:
    """Return the trained plan parser of a folder.

    Args:
        folder: Output folder of ``casewright finetune parser``.

    Raises:
        InputError: The folder's weights do not fit the network.
    """
    try:
        return ParserRuntime(ArrayNetwork(read_weights(folder)))
    except KeyError as error:
        raise weights_error(folder, error) from error


def parser_tokenizer() -> Tokenizer:
    """Return the encoder's tokenizer without truncation; ``read_message`` truncates by words."""
    tokenizer = reader_tokenizer()
    tokenizer.no_truncation()
    return tokenizer
