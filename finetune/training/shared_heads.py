"""Examples with one head, which is computed once: rows for the trainer, and the forward pass.

A prompt's head, the tools above all, is most of its tokens, and the same in many examples. Its
keys and values are computed once and read by the tails of all; gradients flow back through them,
so that a step is that of computing the head anew for each example.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.finetune.training.tokens import TokenRow

if TYPE_CHECKING:
    import torch

#: No loss is taken of a token with this label.
IGNORED = -100
#: Tokens of tails that are computed at once; more do not fit a CPU's cache, and a GPU wants more.
_AT_ONCE = {"cpu": 1024}
_AT_ONCE_ELSEWHERE = 32_768
#: Settings by which networks change the numbers that their last layer gives.
_SCALED = (
    "final_logit_softcapping",
    "logit_scale",
    "logits_scaling",
    "lm_head_multiplier",
    "output_multiplier",
)


def head_rows(rows: Sequence[TokenRow], size: int) -> list[dict[str, list[Any]]]:
    """Group rows by their heads.

    Args:
        rows: Examples in their order.
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
        for start in range(0, len(members), size):
            part = members[start : start + size]
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

    Tails of like length stand together, so that little is padded. ``shift_labels`` holds all labels
    for transformers to count.
    """

    pad: int

    def __call__(self, batch: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return ``head`` (1, h), its labels, and ``tails`` and labels, each (n, t)."""
        import torch

        (group,) = batch
        order = sorted(range(len(group["tails"])), key=lambda n: (len(group["tails"][n]), n))
        head_labels = torch.tensor([group["head_labels"]])
        tails = _padded([group["tails"][n] for n in order], self.pad)
        labels = _padded([group["tail_labels"][n] for n in order], IGNORED)
        # What a head's first token is, nothing predicts.
        counted = torch.cat([head_labels[:, 1:].flatten(), labels.flatten()])
        return {
            "head": torch.tensor([group["head"]]),
            "head_labels": head_labels,
            "tails": tails,
            "tail_labels": labels,
            "lengths": torch.tensor([len(group["tails"][n]) for n in order]),
            "labels": counted,
            "shift_labels": counted,
        }


def _padded(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
    import torch

    parts = [torch.tensor(row, dtype=torch.long) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=value)


def share_heads(network: Any) -> None:
    """Let a network's forward pass take the batches of ``HeadCollator``.

    It returns ``{"loss": the summed cross-entropy of the labels, in nats}`` for these. To be called
    before PEFT or a parallel wrapper is put around the network.

    Raises:
        InputError: The network attends or writes in a way that this does not know.
    """
    config = network.config.get_text_config()
    odd = [name for name in _SCALED if getattr(config, name, None) not in (None, 1, 1.0)]
    if getattr(config, "sliding_window", None) is not None:
        odd.append("sliding_window")
    if odd:
        raise InputError(
            f"training.shared_heads does not know networks with {odd[0]}. "
            "Set training.shared_heads = false."
        )
    forward = network.forward

    @wraps(type(network).forward)
    def shared(self: Any, *args: Any, **inputs: Any) -> Any:
        if "tails" not in inputs:
            return forward(*args, **inputs)
        return {"loss": _summed_loss(self, **inputs)}

    network.forward = MethodType(shared, network)


def _summed_loss(
    network: Any,
    *,
    head: torch.Tensor,
    head_labels: torch.Tensor,
    tails: torch.Tensor,
    tail_labels: torch.Tensor,
    lengths: torch.Tensor,
    **_: Any,
) -> torch.Tensor:
    import torch

    cache: Any = import_module("transformers.cache_utils")
    backbone = network.base_model
    read = backbone(input_ids=head, use_cache=True)
    states = [(layer.keys, layer.values) for layer in read.past_key_values.layers]
    last = read.last_hidden_state[:, -1:]
    loss = _cross_entropy(network, read.last_hidden_state[:, :-1], head_labels[:, 1:])
    size = head.shape[1]
    for part in _parts(lengths.tolist(), _AT_ONCE.get(head.device.type, _AT_ONCE_ELSEWHERE)):
        count, length = part.stop - part.start, int(lengths[part].max())
        tokens, labels = tails[part, :length], tail_labels[part, :length]
        past = cache.DynamicCache()
        for place, (keys, values) in enumerate(states):
            past.update(keys.expand(count, -1, -1, -1), values.expand(count, -1, -1, -1), place)
        seen = torch.ones(length, size + length, dtype=torch.bool, device=head.device).tril(size)
        found = backbone(
            input_ids=tokens,
            past_key_values=past,
            attention_mask=seen.expand(count, 1, -1, -1),
            position_ids=torch.arange(size, size + length, device=head.device).expand(count, -1),
            use_cache=True,
        ).last_hidden_state
        # A tail's first token is predicted by the head's last.
        before = torch.cat([last.expand(count, -1, -1), found[:, :-1]], dim=1)
        loss = loss + _cross_entropy(network, before, labels)
    return loss


def _cross_entropy(network: Any, states: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the sum over the labels that count; only these are projected onto the vocabulary."""
    import torch

    chosen = labels != IGNORED
    logits = network.get_output_embeddings()(states[chosen])
    return torch.nn.functional.cross_entropy(logits.float(), labels[chosen], reduction="sum")


def _parts(lengths: Sequence[int], tokens: int) -> Iterator[slice]:
    """Yield parts of rows that are in the order of their lengths, none of more tokens."""
    start = 0
    for place in range(len(lengths)):
        if place > start and lengths[place] * (place - start + 1) > tokens:
            yield slice(start, place)
            start = place
    yield slice(start, len(lengths))
