"""A trained plan parser at work: toolboxes and cases are encoded once and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from casewright.planner.parser.arrays import (
    card_arrays,
    message_arrays,
    name_likeness,
    pair_arrays,
)
from casewright.planner.parser.case_network import CaseArrays
from casewright.planner.parser.example_cases import PlanCase, example_cases
from casewright.planner.parser.message import Message, read_message
from casewright.planner.parser.options import Options
from casewright.planner.parser.parser_network import ParserNetwork
from casewright.planner.parser.plan_reading import ReadStep, read_plan
from casewright.planner.parser.schema import Schema
from casewright.planner.parser.search_network import Found, PlanSearch
from casewright.planner.parser.tensors_network import (
    case_tensors,
    sizes_of,
    tensors,
    with_fields,
)
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Toolboxes that are kept encoded.
KEPT = 16


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A toolbox and its cases, encoded; ``given`` are the cases as they came."""

    given: Sequence[PlanCase]
    schema: Schema
    options: Options
    nodes: Tensor
    names: Tensor
    cases: list[tuple[Message, list[ReadStep]]]
    told: CaseArrays


class ParserRuntime:
    """Runs a plan parser. Thread-safe.

    Args:
        network: Trained, in evaluation.
        tokenizer: The encoder's, which cuts nothing.
    """

    def __init__(self, network: ParserNetwork, tokenizer: Tokenizer) -> None:
        self._network, self._tokenizer = network, tokenizer
        self._kept: OrderedDict[tuple[str, int], Prepared] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(self, toolbox: Toolbox, cases: Sequence[PlanCase]) -> Prepared:
        """Return a toolbox encoded with its cases; the last ones are kept.

        Args:
            toolbox: The tools.
            cases: The same object at every call with the same cases.
        """
        key = (toolbox.fingerprint(), id(cases))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with torch.inference_mode():
            made = self._prepared(toolbox, cases)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made

    def plans(
        self, prepared: Prepared, question: str, context: Mapping[str, Any], most_steps: int
    ) -> tuple[Message, list[Found]]:
        """Return a message as it was read, and plans for it, the likeliest first."""
        message = read_message(self._tokenizer, question, context)
        if not message.words:
            return message, []
        network, schema = self._network, prepared.schema
        with torch.inference_mode():
            encoded = network.read(tensors(message_arrays([message])))
            told = with_fields(prepared.told, schema, prepared.cases, [message])
            memory = network.join(
                encoded,
                prepared.nodes,
                sizes_of(schema),
                tensors(pair_arrays(schema, [message])),
                told,
                torch.ones((1, len(prepared.cases)), dtype=torch.bool),
            )
            search = PlanSearch(network, memory, prepared.options, message, context, prepared.names)
            return message, search.plans(most_steps)

    def _prepared(self, toolbox: Toolbox, cases: Sequence[PlanCase]) -> Prepared:
        network, schema = self._network, Schema.of(toolbox, self._tokenizer)
        nodes = network.schema(tensors(card_arrays(schema)), sizes_of(schema))
        read = []
        for case in (*example_cases(toolbox), *cases):
            message = read_message(self._tokenizer, case.question, case.context)
            steps = read_plan(case.plan, schema, message)
            if steps is not None and message.words:
                read.append((message, steps))
        if not read:
            # Arrays of no cases have no shape to compute with: one that nothing is near to.
            read = [(read_message(self._tokenizer, "-", {}), [])]
        encoded = network.read(tensors(message_arrays([message for message, _ in read])))
        return Prepared(
            cases,
            schema,
            Options(schema),
            nodes,
            torch.from_numpy(name_likeness(schema)),
            read,
            case_tensors(schema, read, encoded),
        )


def parser_tokenizer() -> Tokenizer:
    """Return the encoder's tokenizer; what is too long is cut word by word."""
    from casewright.planner.reader import reader_tokenizer

    tokenizer = reader_tokenizer()
    tokenizer.no_truncation()
    return tokenizer
