"""How fast memory is, and how fast a plan could be at best: a step reads every weight once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from casewright.bench.decoding.turns import timed

if TYPE_CHECKING:
    import torch

    from casewright.planner.language_model import LanguageModel

#: Bytes of the tensor that is read: far more than caches hold.
HOST_BYTES, DEVICE_BYTES = 2**28, 2**32
REPEATS = 3


def weight_bytes(model: LanguageModel) -> int:
    """Return the bytes of weights that a step reads: all but the embedding's unused rows."""
    network: Any = model.network
    read = sum(p.numel() * p.element_size() for p in network.parameters())
    table = network.get_input_embeddings().weight
    head = network.get_output_embeddings()
    if head is not None and head.weight is table:
        return int(read)
    return int(read - table.numel() * table.element_size())


def measure_bandwidth(device: torch.device, size: int | None = None) -> float:
    """Return the bytes a second that a device's memory gives at best, by reading and by copying.

    A copy of n bytes moves 2n: they are read and written.

    Args:
        device: Whose memory.
        size: Bytes of the tensor; by default larger than any cache.
    """
    import torch

    size = size or (DEVICE_BYTES if device.type == "cuda" else HOST_BYTES)
    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)

    def seconds(work: Callable[[], Any]) -> float:
        return min(timed(device, work)[1] for _ in range(REPEATS)) / 1000

    reading = size / seconds(lambda: source.sum())
    copying = 2 * size / seconds(lambda: target.copy_(source))
    return max(reading, copying)
