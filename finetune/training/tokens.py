"""Training examples as tokens: exactly those that serving reads and writes.

A prompt's head, the tools above all, is most of its tokens, and the same in many examples. With
shared heads a row holds it once, and the tails of all: see ``packed_attention_network``. Gradients
flow back through it, so that a step is that of computing the head anew for each example.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.planner.language_model import LanguageModel

if TYPE_CHECKING:
    import torch


#: With the line's end after the last step, which says that there is no other.
_SHOWN = re.compile(rb"(?<=\n)Plan:\n((?:s[0-9]+ = [^\n]*(?:\n|$))+)")


class ShownPlans:
    """Finds the plans in the tokens of a model's prompts."""

    def __init__(self, model: LanguageModel) -> None:
        tokenizer = model.grammar_tokenizer
        self._text = lru_cache(None)(lambda token: bytes(tokenizer.decode_bytes([token])))
        #: As ``of``, for a prompt's head; those that many examples share are looked at once.
        self.of_head = lru_cache(None)(self.of)

    def of(self, tokens: Sequence[int]) -> list[int]:
        """Return for each token of a prompt's part 1 where it begins inside a plan, else 0."""
        parts = [self._text(token) for token in tokens]
        inside = bytearray(sum(map(len, parts)) + 1)
        for result in _SHOWN.finditer(b"".join(parts)):
            start, end = result.span(1)
            inside[start:end] = b"\1" * (end - start)
        mask, index = [], 0
        for part in parts:
            mask.append(int(inside[index]))
            index += len(part)
        return mask


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One example.

    Attributes:
        input_ids: The prompt's head and tail within the chat template, the completion, and the
            token that ends it.
        completion_mask: For each of them 1 where the loss is taken: completion and end, and where
            that is asked for the plans that the prompt shows.
        head: How many of them are the prompt's head.
    """

    input_ids: list[int]
    completion_mask: list[int]
    head: int = 0


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Examples as tokens.

    Attributes:
        left_out: Ids of those that are too long; none is cut.
        longest: Tokens of the longest example, left out or not; 0 without any.
    """

    rows: Sequence[TokenRow]
    left_out: Sequence[str]
    longest: int

    @property
    def tokens(self) -> int:
        """Tokens of all rows."""
        return sum(len(row.input_ids) for row in self.rows)

    @property
    def supervised(self) -> int:
        """Tokens that the loss is taken of."""
        return sum(sum(row.completion_mask) for row in self.rows)


def token_row(
    example: TrainingExample, model: LanguageModel, shown: ShownPlans | None = None
) -> TokenRow:
    """Return an example's tokens; ``shown`` where the loss is taken of its prompt's plans, too."""
    prompt = model.encode(example.prompt)
    asked = [*prompt.head, *prompt.tail]
    answer = [*model.encode_plan(example.completion), model.ends[0]]
    mask = [0] * len(asked)
    if shown is not None:
        mask = [*shown.of_head(prompt.head), *shown.of(prompt.tail)]
    return TokenRow([*asked, *answer], mask + [1] * len(answer), len(prompt.head))


def token_rows(
    examples: Sequence[TrainingExample],
    model: LanguageModel,
    max_length: int,
    *,
    shown: bool = False,
) -> TokenRows:
    """Return the tokens of the examples that have at most ``max_length`` of them.

    Args:
        shown: Take the loss of the plans that prompts show, too.
    """
    plans = ShownPlans(model) if shown else None
    # Those of one head one after the other: its tokens are kept for a few heads only.
    order = sorted(range(len(examples)), key=lambda at: examples[at].prompt.head)
    results = {index: token_row(examples[index], model, plans) for index in order}
    sizes = [len(results[index].input_ids) for index in range(len(examples))]
    fitting = [results[index] for index, size in enumerate(sizes) if size <= max_length]
    left_out = [
        example.id for example, size in zip(examples, sizes, strict=True) if size > max_length
    ]
    return TokenRows(fitting, left_out, max(sizes, default=0))


#: No loss is taken of a token with this label.
IGNORED = -100


def head_rows(rows: Sequence[TokenRow], size: int) -> list[dict[str, list[Any]]]:
    """Group rows by their heads.

    Args:
        size: Most examples of a group.

    Returns:
        Groups in the order of their first examples: ``head`` (tokens) and ``head_labels``, each
        (h,); ``tails`` and ``tail_labels``, lists with one list an example. The loss of a head's
        plans counts once.
    """
    alike: dict[tuple[int, ...], list[TokenRow]] = defaultdict(list)
    for row in rows:
        alike[tuple(row.input_ids[: _cut(row)])].append(row)
    groups: list[dict[str, list[Any]]] = []
    for head, members in alike.items():
        # Parts of like size: a part of one or two would pay for a head alone.
        parts = -(-len(members) // size)
        for number in range(parts):
            start, end = (len(members) * at // parts for at in (number, number + 1))
            part = members[start:end]
            first = _labels(part[0])[: len(head)]
            groups.append(
                {
                    "head": list(head),
                    "head_labels": first,
                    "tails": [row.input_ids[len(head) :] for row in part],
                    "tail_labels": [_labels(row)[len(head) :] for row in part],
                }
            )
    return groups


def _cut(row: TokenRow) -> int:
    # Something has to stand before a tail, also where neither head nor chat template does.
    return max(1, row.head)


def _labels(row: TokenRow) -> list[int]:
    pairs = zip(row.input_ids, row.completion_mask, strict=True)
    return [token if counts else IGNORED for token, counts in pairs]


@dataclass(frozen=True, slots=True)
class HeadCollator:
    """Makes tensors of one group of ``head_rows``; a batch is one group.

    Only tokens that are supervised get logits. ``shift_labels`` is there for transformers to count.
    """

    def __call__(self, batch: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return what ``summed_loss`` takes: L tokens in one row, m of them supervised."""
        import torch

        from casewright.finetune.training.packed_attention_network import places_of

        (group,) = batch
        head, tails = group["head"], group["tails"]
        lengths = [len(tail) for tail in tails]
        labels = [*group["head_labels"], *(item for own in group["tail_labels"] for item in own)]
        # The token that predicts another stands before it; for a tail's first, that is the head's.
        before = [*range(-1, len(head) - 1)]
        start = len(head)
        for length in lengths:
            before += [len(head) - 1, *range(start, start + length - 1)]
            start += length
        kept = [at for at, label in enumerate(labels) if label != IGNORED and before[at] >= 0]
        counted = torch.tensor([labels[at] for at in kept], dtype=torch.long)
        padded, places = places_of(lengths)
        own = [torch.arange(len(head)), *(len(head) + torch.arange(n) for n in lengths)]
        return {
            "input_ids": torch.tensor([[*head, *(item for tail in tails for item in tail)]]),
            "position_ids": torch.cat(own)[None],
            "logits_to_keep": torch.tensor([before[at] for at in kept], dtype=torch.long),
            "head_tokens": len(head),
            "padded": padded,
            "places": places,
            "labels": counted,
            "shift_labels": counted,
        }


def pack_heads(network: Any) -> None:
    """Let a network attend to the rows of ``HeadCollator``; other rows it reads as before.

    Raises:
        InputError: The network attends in a way that this does not know.
    """
    from casewright.finetune.training.packed_attention_network import NAME, register

    config = network.config.get_text_config()
    odd = next((n for n in ("sliding_window", "attn_logit_softcapping") if _set(config, n)), None)
    if odd is None and not getattr(network, "_supports_attention_backend", False):
        odd = "an attention of its own"
    if odd:
        raise InputError(
            f"training.shared_heads does not know networks with {odd}. "
            "Set training.shared_heads = false."
        )
    register()
    network.set_attn_implementation(NAME)


def _set(config: Any, name: str) -> bool:
    return getattr(config, name, None) is not None


def summed_loss(network: Any, inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return the summed cross-entropy of a row's labels, in nats."""
    from torch.nn.functional import cross_entropy

    given = {name: part for name, part in inputs.items() if "labels" not in name}
    logits = network(**given, use_cache=False).logits[0]
    return cross_entropy(logits.float(), inputs["labels"], reduction="sum")
