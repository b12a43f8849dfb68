"""The reader's network as ONNX graphs in the cache folder: made once, by torch; run without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from casewright.planner.reader_input import MAX_TOKENS
from casewright.planner.reader_weights import fingerprint, load_network
from casewright.stores.encoders.onnx_cache import made_once
from casewright.stores.encoders.onnx_export import export_onnx, quiet
from casewright.stores.paths import cache_folder

#: The graphs: token states of a question; the next ask; where a literal stands.
ENCODE, ASK, POINT = "encode.onnx", "ask.onnx", "point.onnx"


def exported(folder: Path, graphs: Path | None = None) -> Path:
    """Return the folder that holds the graphs of a reader, made where they are not there yet."""
    target = graphs or cache_folder() / "readers" / fingerprint(folder)

    def export() -> None:
        with quiet():
            network = load_network(folder)
        export_network(network, target)

    made_once(target, (ENCODE, ASK, POINT), "the plan reader", export)
    return target


def export_network(network: Any, target: Path) -> None:
    """Write the three graphs of a ``ReaderNetwork`` whose LoRA matrices are merged."""
    import torch
    from torch import Tensor, nn

    class Encode(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
            states: Tensor = self.network.encode(ids, types, mask)
            return states

    class NextAsk(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(
            self, states: Tensor, mask: Tensor, before: Tensor, covered: Tensor
        ) -> tuple[Tensor, Tensor, Tensor]:
            decoded = self.network.decode(states, mask, before, covered)[:, -1]
            latents = self.network.latents(decoded)
            return decoded, latents, self.network.scores(latents)

    class Point(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(
            self, decoded: Tensor, form: Tensor, slot: Tensor, states: Tensor
        ) -> tuple[Tensor, Tensor]:
            start, end = self.network.point(decoded, form, slot, states)
            return start, end

    batch = torch.export.Dim("batch", max=4096)
    width = torch.export.Dim("width", max=MAX_TOKENS)
    asks = torch.export.Dim("asks", max=16)
    size = network.form.weight.shape[1]
    tokens = torch.ones((2, 9), dtype=torch.long)
    states = torch.zeros((2, 9, size))
    before, one = torch.ones((2, 3), dtype=torch.long), torch.ones(2, dtype=torch.long)
    by_token, by_state = {0: batch, 1: width}, {0: batch, 1: width}
    network.eval()
    export_onnx(
        Encode().eval(),
        (tokens, tokens.clone(), tokens.clone()),
        target / ENCODE,
        inputs=["ids", "types", "mask"],
        outputs=["states"],
        dynamic={"ids": by_token, "types": by_token, "mask": by_token},
    )
    export_onnx(
        NextAsk().eval(),
        (states, tokens, before, torch.zeros((2, 3, 9))),
        target / ASK,
        inputs=["states", "mask", "before", "covered"],
        outputs=["decoded", "latents", "scores"],
        dynamic={
            "states": by_state,
            "mask": by_token,
            "before": {0: batch, 1: asks},
            "covered": {0: batch, 1: asks, 2: width},
        },
    )
    export_onnx(
        Point().eval(),
        (torch.zeros((2, size)), one, one.clone(), states),
        target / POINT,
        inputs=["decoded", "form", "slot", "states"],
        outputs=["start", "end"],
        dynamic={
            "decoded": {0: batch},
            "form": {0: batch},
            "slot": {0: batch},
            "states": by_state,
        },
    )
