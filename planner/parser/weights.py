"""The plan parser's files: trained weights as safetensors, and how they came about as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.encoders.minilm import minilm_weights, packaged_minilm

if TYPE_CHECKING:
    from torch import Tensor

    from casewright.planner.parser.parser_network import ParserNetwork

#: Those that ship.
FOLDER = Path(__file__).parent / "weights"
WEIGHTS, CARD = "parser.safetensors", "parser.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ParserCard:
    """Training of a plan parser, and the scale of its confidence.

    Attributes:
        slope, shift: Of the logistic curve by which a plan's log-probability is its probability
            of being right; fitted on toolboxes that were not trained on.
        asks_below: Below this confidence it had better ask what was meant.
        training: Recipe, corpus and figures, for people.
    """

    slope: float = 1.0
    shift: float = 0.0
    asks_below: float = 0.0
    training: Mapping[str, Any] = field(default_factory=dict)

    def confidence(self, score: float) -> float:
        """Return the probability that a plan is right, from the logarithm of the parser's own."""
        # The logistic function, in the form that no score overflows.
        return (1 + math.tanh((self.slope * score + self.shift) / 2)) / 2


def is_parser(folder: Path = FOLDER) -> bool:
    """Return whether a folder holds a plan parser."""
    # The card is written last.
    return (folder / CARD).is_file() and (folder / WEIGHTS).is_file()


def read_card(folder: Path = FOLDER) -> ParserCard:
    """Read what a plan parser's folder says of itself.

    Raises:
        InputError: The folder holds no plan parser, or one of another format.
    """
    try:
        told = json.loads((folder / CARD).read_text(encoding="utf-8"))
        (folder / WEIGHTS).stat()
        if (found := told["format"]) == FORMAT:
            slope, shift, least = (float(told[n]) for n in ("slope", "shift", "asks_below"))
            return ParserCard(slope, shift, least, told.get("training", {}))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{folder} holds no plan parser ({type(error).__name__}: {error}). Train one: "
            "casewright finetune parser --output FOLDER."
        ) from error
    raise InputError(
        f"The plan parser in {folder} has format {found}; this version reads {FORMAT}. "
        "Train it anew: casewright finetune parser."
    )


def save_parser(folder: Path, weights: Mapping[str, Any], card: ParserCard) -> None:
    """Write a plan parser's files.

    Args:
        folder: Made where it is missing.
        weights: Tensors by name; those of the packaged encoder that were not trained are left out.
        card: What is told of them.

    Raises:
        InputError: The folder cannot be written.
    """
    import torch
    from safetensors.torch import save_file

    halves = {name: one.detach().to(torch.bfloat16).contiguous() for name, one in weights.items()}
    told = {
        "format": FORMAT,
        "encoder": "all-MiniLM-L6-v2",
        "slope": card.slope,
        "shift": card.shift,
        "asks_below": card.asks_below,
        "training": card.training,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(halves, folder / WEIGHTS)
        text = json.dumps(told, indent=1, ensure_ascii=False)
        (folder / CARD).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error}. Give a folder that you may write."
        ) from error


def read_weights(folder: Path = FOLDER) -> dict[str, NDArray[np.float32]]:
    """Return all weights by name, the packaged encoder's where the folder has none of its own.

    Raises:
        InputError: The folder's file cannot be read.
    """
    base = {f"encoder.{name}": weight for name, weight in minilm_weights().items()}
    return base | _trained(folder)


def load_network(folder: Path = FOLDER) -> ParserNetwork:
    """Return the network for training, in evaluation.

    Raises:
        InputError: The weights do not fit.
    """
    from transformers import AutoModel

    from casewright.planner.parser.parser_network import ParserNetwork
    from casewright.stores.encoders.onnx_export import quiet

    with quiet():
        base = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
    network = ParserNetwork(base)
    try:
        # What the file lacks is the packaged encoder's own.
        network.load_state_dict(network.state_dict() | trained_weights(folder))
    except RuntimeError as error:
        raise unfit(folder, error) from error
    return network.eval()


def trained_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights of a plan parser's file, by name.

    Raises:
        InputError: The file cannot be read.
    """
    import torch

    return {name: torch.from_numpy(weight) for name, weight in _trained(folder).items()}


def _trained(folder: Path) -> dict[str, NDArray[np.float32]]:
    # NumPy knows of bfloat16 as soon as this is imported.
    import ml_dtypes  # noqa: F401
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        halves = load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise unfit(folder, error) from error
    return {name: weight.astype(np.float32) for name, weight in halves.items()}


def unfit(folder: Path, error: Exception) -> InputError:
    """Return what is raised where the weights of a folder do not fit, with the reason."""
    missing = "there is no " if isinstance(error, KeyError) else ""
    reason = f"{missing}{' '.join(str(error).split())[:200]}"
    return InputError(
        f"The weights in {folder} do not fit: {reason}. Train the plan parser anew: "
        "casewright finetune parser."
    )
