"""Conversion of training examples to the tokens that the served model reads and writes.

Most tokens of a prompt are in its head (a prefix with the tools), and many examples have the same
head. With shared heads, a packed row has a head once, followed by the tails of its examples; see
``packed_attention_network``. Shared heads do not change the training steps.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.planner.language_model import LanguageModel

if TYPE_CHECKING:
    import torch

#: A plan in a prompt; the newline after the last step is a part of the plan.
_SHOWN_PLAN = re.compile(rb"(?<=\n)Plan:\n((?:s[0-9]+ = [^\n]*(?:\n|$))+)")
#: The label of tokens that are not supervised.
IGNORED = -100


class ShownPlans:
    """Finds the tokens of the plans that prompts show as examples and plan cases."""

    def __init__(self, model: LanguageModel) -> None:
        tokenizer = model.grammar_tokenizer
        self._bytes_of = cache(lambda token: bytes(tokenizer.decode_bytes([token])))
        #: ``mask`` with a cache, for heads that many examples share.
        self.head_mask = cache(self.mask)

    def mask(self, tokens: Sequence[int]) -> list[int]:
        """Return a number for each token: 1 if the token begins inside a plan, else 0."""
        token_bytes = [self._bytes_of(token) for token in tokens]
        # For each byte of the text: 1 if the byte is inside a plan. Empty tokens can be at the end.
        is_inside = bytearray(sum(map(len, token_bytes)) + 1)
        for match in _SHOWN_PLAN.finditer(b"".join(token_bytes)):
            start, end = match.span(1)
            is_inside[start:end] = b"\1" * (end - start)
        starts = [*accumulate(map(len, token_bytes), initial=0)]
        return [is_inside[start] for start in starts[:-1]]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """The tokens of one example, a row of a batch without shared heads.

    Attributes:
        input_ids: The prompt's head and tail within the chat template, the completion, and the end
            token.
        completion_mask: 1 for supervised tokens, else 0. The completion and the end token are
            supervised, and optionally the plans that the prompt shows.
        head_length: Number of tokens of the prompt's head.
    """

    input_ids: list[int]
    completion_mask: list[int]
    head_length: int = 0


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The tokens of the examples that are not too long; ``left_out`` has the ids of the others.

    ``longest`` is the number of tokens of the longest example, even if it is left out.
    """

    rows: Sequence[TokenRow]
    left_out: Sequence[str]
    longest: int

    @property
    def token_count(self) -> int:
        """Number of tokens of all rows."""
        return sum(len(row.input_ids) for row in self.rows)


def token_row(
    example: TrainingExample, model: LanguageModel, shown: ShownPlans | None = None
) -> TokenRow:
    """Return an example's tokens; with ``shown``, the plans in its prompt are also supervised."""
    prompt = model.encode(example.prompt)
    head, tail = prompt.head, prompt.tail
    completion = [*model.encode_plan(example.completion), model.ends[0]]
    mask = [*shown.head_mask(head), *shown.mask(tail)] if shown else [0] * (len(head) + len(tail))
    return TokenRow([*head, *tail, *completion], mask + [1] * len(completion), len(head))


def token_rows(
    examples: Sequence[TrainingExample],
    model: LanguageModel,
    max_length: int,
    *,
    supervise_shown_plans: bool = False,
) -> TokenRows:
    """Return the tokens of the examples that have at most ``max_length`` tokens.

    With ``supervise_shown_plans``, the plans that prompts show are also supervised.
    """
    shown = ShownPlans(model) if supervise_shown_plans else None
    # The model caches the tokens of few heads, so examples with the same head follow each other.
    by_head = sorted(range(len(examples)), key=lambda index: examples[index].prompt.head)
    rows_by_index = {index: token_row(examples[index], model, shown) for index in by_head}
    lengths = [len(rows_by_index[index].input_ids) for index in range(len(examples))]
    rows = [rows_by_index[index] for index, length in enumerate(lengths) if length <= max_length]
    left_out = [e.id for e, length in zip(examples, lengths, strict=True) if length > max_length]
    return TokenRows(rows, left_out, max(lengths, default=0))


def group_by_head(rows: Sequence[TokenRow], max_rows: int) -> list[dict[str, list[Any]]]:
    """Return groups of at most ``max_rows`` rows with the same head; groups of a head are adjacent.

    In a group, ``head`` has the tokens of the head, and ``tails`` the other tokens of each row.
    ``head_labels`` and ``tail_labels`` are their labels. A group's loss counts a head's plans once.
    """
    by_head: dict[tuple[int, ...], list[TokenRow]] = defaultdict(list)
    for row in rows:
        # A tail needs a previous token, so a head has at least one token.
        by_head[tuple(row.input_ids[: max(1, row.head_length)])].append(row)
    groups: list[dict[str, list[Any]]] = []
    for head, members in by_head.items():
        # The groups have similar sizes, since a small group would compute the head for few tails.
        group_count = -(-len(members) // max_rows)
        ends = [len(members) * n // group_count for n in range(group_count + 1)]
        for start, end in pairwise(ends):
            group_rows = members[start:end]
            groups.append(
                {
                    "head": list(head),
                    "head_labels": _labels(group_rows[0])[: len(head)],
                    "tails": [row.input_ids[len(head) :] for row in group_rows],
                    "tail_labels": [_labels(row)[len(head) :] for row in group_rows],
                }
            )
    return groups


def _labels(row: TokenRow) -> list[int]:
    pairs = zip(row.input_ids, row.completion_mask, strict=True)
    return [token if is_supervised else IGNORED for token, is_supervised in pairs]


def fill_rows(groups: Sequence[Mapping[str, Any]], max_tokens: int) -> list[dict[str, Any]]:
    """Return packed rows of at most ``max_tokens`` tokens with the groups of ``group_by_head``.

    A group with more tokens is a row of its own.
    """
    rows: list[dict[str, Any]] = []
    free_tokens = 0
    for group in groups:
        size = len(group["head"]) + sum(map(len, group["tails"]))
        if size > free_tokens:
            rows.append({"groups": []})
            free_tokens = max_tokens
        rows[-1]["groups"].append(group)
        free_tokens -= size
    return rows


def collate_heads(batch: Sequence[Mapping[str, Any]], length: int = 0) -> dict[str, Any]:
    """Return the tensors of a batch with one packed row of ``fill_rows``, for ``summed_loss``.

    The row has L tokens, with padding up to ``length``. No other token attends to padding, since
    ``parts`` (2, L) limits attention. ``parts[0]`` is the index of each token's group, or -1 for
    padding. ``parts[1]`` is 0 for a head's token, or the number of the token's tail in its group,
    from 1. Only supervised tokens get logits. transformers counts the tokens of ``shift_labels``.
    """
    import torch

    tokens: list[int] = []
    positions: list[int] = []
    parts: list[tuple[int, int]] = []
    predecessors: list[int] = []
    labels: list[int] = []
    for group_index, group in enumerate(batch[0]["groups"]):
        head = group["head"]
        last_of_head = len(tokens) + len(head) - 1
        # The predecessor of a token predicts it; a tail's first token follows the head's last.
        # A head's first token has no predecessor, so it has no label.
        labels_by_part = [[IGNORED, *group["head_labels"][1:]], *group["tail_labels"]]
        pairs = zip([head, *group["tails"]], labels_by_part, strict=True)
        for part_number, (part_tokens, part_labels) in enumerate(pairs):
            predecessor, position = (last_of_head, len(head)) if part_number else (-1, 0)
            predecessors += [predecessor, *range(len(tokens), len(tokens) + len(part_tokens) - 1)]
            positions += range(position, position + len(part_tokens))
            parts += [(group_index, part_number)] * len(part_tokens)
            tokens += part_tokens
            labels += part_labels
    padding = max(0, length - len(tokens))
    tokens += [0] * padding
    positions += range(padding)
    parts += [(-1, 0)] * padding
    supervised = [n for n, label in enumerate(labels) if label != IGNORED]
    targets = torch.tensor([labels[n] for n in supervised], dtype=torch.long)
    return {
        "input_ids": torch.tensor([tokens]),
        "position_ids": torch.tensor([positions]),
        "logits_to_keep": torch.tensor([predecessors[n] for n in supervised], dtype=torch.long),
        "parts": torch.tensor(parts).T.contiguous(),
        "labels": targets,
        "shift_labels": targets,
    }


def use_packed_attention(network: Any) -> None:
    """Make a network use packed attention for packed rows; it uses ``sdpa`` for other rows.

    ``InputError`` if the network's attention cannot be replaced.
    """
    from casewright.finetune.training.packed_attention_network import NAME, register

    config = network.config.get_text_config()
    names = ("sliding_window", "attn_logit_softcapping")
    obstacles = [name for name in names if getattr(config, name, None) is not None]
    if not getattr(network, "_supports_attention_backend", False):
        obstacles.append("an attention of their own")
    if obstacles:
        raise InputError(
            f"training.shared_heads does not support networks with {obstacles[0]}. "
            "Set training.shared_heads = false."
        )
    register()
    network.set_attn_implementation(NAME)


def summed_loss(network: Any, inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return the summed cross-entropy of a packed row's labels, in nats."""
    from torch.nn.functional import cross_entropy

    from casewright.finetune.training.packed_attention_network import attention_arguments

    arguments = {n: inputs[n] for n in ("input_ids", "position_ids", "logits_to_keep")}
    attention = attention_arguments(inputs["parts"])
    logits = network(**arguments, **attention, use_cache=False).logits[0]
    return cross_entropy(logits.float(), inputs["labels"], reduction="sum")
