"""Small pictures for tests, and two ways to embed them (MCBR-RAG's L_j)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores import Binary, Facet
from casewright.stores.facet import Components

SIZE = 8
COLOURS = {
    "red": (200, 30, 30),
    "green": (30, 180, 40),
    "blue": (30, 40, 200),
    "grey": (120, 120, 120),
}


def png(colour: str, seed: int = 0) -> bytes:
    """A picture of a colour, with noise."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    pixels = np.array(COLOURS[colour]) + rng.normal(0, 12, (SIZE, SIZE, 3))
    written = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(written, "PNG")
    return written.getvalue()


def picture(colour: str, seed: int = 0) -> Binary:
    return Binary("image/png", png(colour, seed))


def pixels(image: Binary) -> NDArray[np.float32]:
    """Array (SIZE, SIZE, 3), from 0 to 1."""
    from PIL import Image

    with Image.open(io.BytesIO(image.read())) as opened:
        return np.asarray(opened.convert("RGB"), dtype=np.float32) / 255


def histogram(problems: Sequence[Components]) -> NDArray[np.float32]:
    """L_j as a plain callable: how often each channel has each of four brightnesses."""
    rows = []
    for problem in problems:
        parts = pixels(problem["picture"]).reshape(-1, 3).T
        rows.append(np.concatenate([np.histogram(p, bins=4, range=(0, 1))[0] for p in parts]))
    return np.array(rows, dtype=np.float32)


def described(problem: Components) -> str:
    """T_j: which channel is the brightest."""
    mean = pixels(problem["picture"]).mean(axis=(0, 1))
    name = "grey" if np.ptp(mean) < 0.1 else ("red", "green", "blue")[int(mean.argmax())]
    return f"a {name} picture of {SIZE} by {SIZE} pixels"


def histogram_facet(weight: float = 1.0) -> Facet:
    return Facet(
        "picture",
        ("picture",),
        12,
        histogram,
        histogram,
        described,
        "histogram-4",
        weight,
        takes_text=False,
    )


def trained_module() -> Any:
    """L_j as a trained module: its hidden layer, taught to tell the colours."""
    import torch

    torch.manual_seed(0)
    shown = [(colour, seed) for seed in range(8) for colour in COLOURS]
    images = torch.tensor(np.stack([pixels(picture(*one)) for one in shown])).flatten(1)
    labels = torch.tensor([list(COLOURS).index(colour) for colour, _ in shown])
    hidden = torch.nn.Sequential(torch.nn.Linear(SIZE * SIZE * 3, 6), torch.nn.Tanh())
    head = torch.nn.Linear(6, len(COLOURS))
    parameters = [*hidden.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(head(hidden(images)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return hidden.eval()


def module_facet(module: Any) -> Facet:
    """L_j as a trained module: its answer is a tensor, with its gradient."""
    import torch

    def embed(problems: Sequence[Components]) -> Any:
        images = np.stack([pixels(problem["picture"]) for problem in problems])
        return module(torch.tensor(images).flatten(1))

    return Facet("picture", ("picture",), 6, embed, embed, described, "colours-6")
