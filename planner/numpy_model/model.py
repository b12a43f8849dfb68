"""A small Mistral and its tokenizer, in memory without torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from casewright.planner.language_model import TokenModel
from casewright.planner.numpy_model.network import NumpyMistral


class NumpyModel(TokenModel):
    """A language model whose network NumPy computes, in float32 on the CPU.

    Attributes:
        network: Computes its logits.

    Args:
        name: Where it comes from.
        network: Computes its logits.
        tokenizer: As for ``TokenModel``.
        named_ends: As for ``TokenModel``.

    Raises:
        InputError: As for ``TokenModel``.
    """

    def __init__(
        self, name: str, network: NumpyMistral, tokenizer: Any, named_ends: Iterable[Any] = ()
    ) -> None:
        form = network.form
        super().__init__(name, tokenizer, form.vocabulary, named_ends, form.positions)
        self.network = network
