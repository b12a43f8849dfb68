"""Small images for tests, and two facets that embed them (L_j of MCBR-RAG)."""

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
    """Return a PNG image of a colour with noise."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    pixels = np.array(COLOURS[colour]) + rng.normal(0, 12, (SIZE, SIZE, 3))
    buffer = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def picture(colour: str, seed: int = 0) -> Binary:
    return Binary("image/png", png(colour, seed))


def pixels(image: Binary) -> NDArray[np.float32]:
    """Return the array (SIZE, SIZE, 3) of an image, with values from 0 to 1."""
    from PIL import Image

    with Image.open(io.BytesIO(image.read())) as decoded:
        return np.asarray(decoded.convert("RGB"), dtype=np.float32) / 255


def histogram(problems: Sequence[Components]) -> NDArray[np.float32]:
    """Return brightness histograms of the channels, with four bins each (L_j as a function)."""
    rows = []
    for problem in problems:
        channels = pixels(problem["picture"]).reshape(-1, 3).T
        rows.append(np.concatenate([np.histogram(c, bins=4, range=(0, 1))[0] for c in channels]))
    return np.array(rows, dtype=np.float32)


def describe_image(problem: Components) -> str:
    """Return a text that names the brightest channel (T_j)."""
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
        describe_image,
        "histogram-4",
        weight,
        takes_text=False,
    )


def trained_module() -> Any:
    """Return the hidden layer of a network that was trained to classify colours."""
    import torch

    torch.manual_seed(0)
    examples = [(colour, seed) for seed in range(8) for colour in COLOURS]
    images = torch.tensor(np.stack([pixels(picture(*example)) for example in examples])).flatten(1)
    labels = torch.tensor([list(COLOURS).index(colour) for colour, _ in examples])
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
    """Return a facet whose embeddings are tensors with gradients (L_j as a trained module)."""
    import torch

    def embed(problems: Sequence[Components]) -> Any:
        images = np.stack([pixels(problem["picture"]) for problem in problems])
        return module(torch.tensor(images).flatten(1))

    return Facet("picture", ("picture",), 6, embed, embed, describe_image, "colours-6")
