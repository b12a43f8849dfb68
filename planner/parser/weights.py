"""The plan parser's files: trained weights as safetensors, and a model card as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.encoders.minilm import minilm_weights

if TYPE_CHECKING:
    from torch import Tensor

#: Folder of the packaged parser.
FOLDER = Path(__file__).parent / "weights"
#: File names of the weights and of the card; current version of the file format.
WEIGHTS, CARD = "parser.safetensors", "parser.json"
FORMAT = 2
#: Addend to the probability that a plan is wrong, so that no plan is certain. The value was chosen
#: on the validation toolboxes.
MIN_ERROR = 1e-4


@dataclass(frozen=True, slots=True)
class ParserCard:
    """Model card of a plan parser: the calibration of its confidence, and its training.

    Attributes:
        slope, shift: Coefficients of the logistic curve, which maps a plan's ``certainty`` to the
            probability that the plan is right. It is fitted on toolboxes outside the training.
        asks_below: Confidence below which the user is asked what was meant.
        training: Recipe, corpus and figures of the training, for information.
        format: Version of the file format; in format 1, the curve maps log-probabilities instead.
    """

    slope: float = 1.0
    shift: float = 0.0
    asks_below: float = 0.0
    training: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def confidence(self, score: float) -> float:
        """Return the calibrated probability that a plan is right, given its log-probability."""
        value = score if self.format == 1 else certainty(score)
        # The logistic function in a form that does not overflow.
        return (1 + math.tanh((self.slope * value + self.shift) / 2)) / 2


def certainty(score: float) -> float:
    """Return the certainty -log(1 - p), in nats, of a plan to which the parser gives probability p.

    For p = 0.9 and p = 0.99, certainties differ by 2.3, log-probabilities by only 0.1.

    Args:
        score: The plan's log-probability.
    """
    return -math.log1p(MIN_ERROR - math.exp(min(score, 0.0)))


def is_parser(folder: Path = FOLDER) -> bool:
    """Return True if a folder has a plan parser."""
    # The card is written last; a folder without a card is incomplete.
    return (folder / CARD).is_file() and (folder / WEIGHTS).is_file()


def read_card(folder: Path = FOLDER) -> ParserCard:
    """Return a plan parser's card; raise ``InputError`` if no card of a known format exists."""
    try:
        content = json.loads((folder / CARD).read_text(encoding="utf-8"))
        (folder / WEIGHTS).stat()  # Raises ``OSError`` if there are no weights.
        if (version := content["format"]) in (1, FORMAT):
            slope, shift, asks_below = (float(content[n]) for n in ("slope", "shift", "asks_below"))
            return ParserCard(slope, shift, asks_below, content.get("training", {}), version)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{folder} holds no plan parser ({type(error).__name__}: {error}). Train one: "
            "casewright finetune parser --output FOLDER."
        ) from error
    raise InputError(
        f"The plan parser in {folder} has format {version}; this version reads {FORMAT}. "
        "Train it anew: casewright finetune parser."
    )


def save_parser(folder: Path, weights: Mapping[str, Any], card: ParserCard) -> None:
    """Write a plan parser's files.

    Args:
        folder: Created if it is missing.
        weights: Tensors by name; untrained tensors of the packaged encoder may be left out.

    Raises:
        InputError: The folder cannot be written.
    """
    import torch

    rounded = {name: w.detach().to(torch.bfloat16).contiguous() for name, w in weights.items()}
    content = {"format": card.format, "encoder": "all-MiniLM-L6-v2", **asdict(card)}
    write_files(folder, rounded, content, (WEIGHTS, CARD))


def write_files(
    folder: Path, weights: Mapping[str, Tensor], card: Mapping[str, Any], names: tuple[str, str]
) -> None:
    """Write weights and card to the files ``names``; raise ``InputError`` if that is impossible."""
    from safetensors.torch import save_file

    text = json.dumps(card, indent=1, ensure_ascii=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(dict(weights), folder / names[0])
        (folder / names[1]).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise unwritable_error(folder, error) from error


def unwritable_error(folder: Path, error: OSError) -> InputError:
    """Return the error for a folder that cannot be written, with the reason."""
    reason = error.strerror or error
    return InputError(f"{folder} cannot be written: {reason}. Give a folder that you may write to.")


def read_weights(folder: Path = FOLDER) -> dict[str, NDArray[np.float32]]:
    """Return all weights by name; weights that the folder lacks come from the packaged encoder.

    Raise ``InputError`` if the weights in the folder cannot be read.
    """
    encoder = {f"encoder.{name}": weight for name, weight in minilm_weights().items()}
    return encoder | _read_trained(folder)


def trained_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights in a plan parser's file, as tensors; raise ``InputError`` if damaged."""
    import torch

    return {name: torch.from_numpy(weight) for name, weight in _read_trained(folder).items()}


def _read_trained(folder: Path) -> dict[str, NDArray[np.float32]]:
    # The import adds the type bfloat16 to NumPy.
    import ml_dtypes  # noqa: F401
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        stored = load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise weights_error(folder, error) from error
    return {name: weight.astype(np.float32) for name, weight in stored.items()}


def weights_error(
    folder: Path, error: Exception, command: str = "casewright finetune parser"
) -> InputError:
    """Return the error for weights that are damaged or do not fit the network, with the reason."""
    prefix = "there is no " if isinstance(error, KeyError) else ""
    reason = f"{prefix}{' '.join(str(error).split())[:200]}"
    return InputError(
        f"The weights in {folder} cannot be used: {reason}. Train them anew: {command}."
    )
