"""Converts the arrays of messages, toolboxes and plan cases into tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from casewright.planner.parser.arrays import (
    CaseData,
    ReadCase,
    case_arrays,
    case_fields,
    case_spans,
    number_arrays,
    tool_sequences,
)
from casewright.planner.parser.message import Message
from casewright.planner.parser.parser_network import EncodedMessages
from casewright.planner.parser.schema import Schema


def tensor(array: NDArray[Any]) -> Tensor:
    """Return an array as a tensor on PyTorch's default device; on a CPU both share memory."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(torch.get_default_device())


def tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """Return the arrays as tensors; see ``tensor``."""
    return {name: tensor(array) for name, array in arrays.items()}


def case_tensors(schema: Schema, cases: Sequence[ReadCase], encoded: EncodedMessages) -> CaseData:
    """Return plan cases as tensors, ``context`` left empty; ``encoded`` has the cases' messages."""
    spans = case_spans(cases)
    words = encoded.words
    word_weights = np.zeros((len(spans), words.shape[1]), np.float32)
    for row, (_, _, first, last) in enumerate(spans):
        word_weights[row, first : last + 1] = 1 / (last + 1 - first)
    weights = tensor(word_weights).to(words.dtype)
    span_case = tensor(spans[:, 0])
    return CaseData(
        keys=encoded.keys,
        vectors=encoded.vectors,
        spans=(weights[:, None] @ words[span_case])[:, 0],
        span_case=span_case,
        span_parameter=tensor(spans[:, 1]),
        context=torch.zeros(0),
        sequences=tensor(tool_sequences(cases, len(schema.tools))),
        tool_of=torch.tensor([tool for tool, _ in schema.parameters], dtype=torch.long),
        parameter_of=torch.tensor([parameter for parameter, _ in schema.choices], dtype=torch.long),
        **tensors(case_arrays(schema, cases)),
    )


def with_context(
    case_data: CaseData, schema: Schema, cases: Sequence[ReadCase], messages: Sequence[Message]
) -> CaseData:
    """Return the cases with ``context``, which says how they use the messages' context fields."""
    return replace(case_data, context=tensor(case_fields(schema, cases, messages)))


def number_tensors(messages: Sequence[Message], word_count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``arrays.number_arrays`` as tensors."""
    weights, features, present = map(tensor, number_arrays(messages, word_count))
    return weights, features, present
