"""Arrays of messages, toolboxes and cases as the network's tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from casewright.planner.parser.arrays import (
    Case,
    case_arrays,
    case_fields,
    case_spans,
    number_arrays,
    tool_sequences,
)
from casewright.planner.parser.case_network import CaseArrays
from casewright.planner.parser.message import Message
from casewright.planner.parser.parser_network import Encoded
from casewright.planner.parser.schema import Schema


def tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """Return the arrays as tensors that share their memory."""
    return {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in arrays.items()}


def case_tensors(
    schema: Schema,
    cases: Sequence[Case],
    encoded: Encoded,
) -> CaseArrays:
    """Return cases as the network weighs them.

    Args:
        schema: The toolbox.
        cases: Messages and their plans.
        encoded: The cases' messages, in order.

    Returns:
        Cases that know of no message's context fields yet; see ``with_fields``.
    """
    told = tensors(case_arrays(schema, cases))
    spans = case_spans(cases)
    words = encoded.words
    weights = torch.zeros((len(spans), words.shape[1]), dtype=words.dtype)
    for row, (_, _, first, last) in enumerate(spans):
        weights[row, first : last + 1] = 1 / (last + 1 - first)
    owner = torch.tensor([one[0] for one in spans], dtype=torch.long)
    return CaseArrays(
        keys=encoded.keys,
        vectors=encoded.vectors,
        spans=(weights[:, None] @ words[owner])[:, 0],
        owner=owner,
        of=torch.tensor([one[1] for one in spans], dtype=torch.long),
        context=torch.zeros(0),
        sequences=torch.from_numpy(tool_sequences(cases, len(schema.tools))),
        tool_of=torch.tensor([tool for tool, _ in schema.parameters], dtype=torch.long),
        parameter_of=torch.tensor([place for place, _ in schema.choices], dtype=torch.long),
        **told,
    )


def with_fields(
    told: CaseArrays, schema: Schema, cases: Sequence[Case], messages: Sequence[Message]
) -> CaseArrays:
    """Return cases that know which of the messages' context fields they took.

    Args:
        told: Of ``case_tensors``.
        schema: The toolbox.
        cases: The same cases.
        messages: Those to plan for.
    """
    return replace(told, context=torch.from_numpy(case_fields(schema, cases, messages)))


def number_tensors(messages: Sequence[Message], words: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the messages' numbers: weights over words, facts, and which there are.

    Returns:
        (n, numbers, words), (n, numbers, 3), (n, numbers).
    """
    weights, facts, there = number_arrays(messages, words)
    return torch.from_numpy(weights), torch.from_numpy(facts), torch.from_numpy(there)
