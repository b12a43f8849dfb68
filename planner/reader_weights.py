"""A reader's files: trained weights as safetensors, and what they belong to as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from errno import ENOTDIR
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.planner.asks import Ask, asks_of
from casewright.planner.parse import parse_plan
from casewright.stores.encoders.minilm import minilm_weights, packaged_minilm

if TYPE_CHECKING:
    from casewright.planner.reader_network import ReaderNetwork

WEIGHTS, CARD = "reader.safetensors", "reader.json"
FORMAT = 1
_LORA_A, _LORA_B = ".lora_A.weight", ".lora_B.weight"
#: The parts of ``ReaderNetwork`` beside the encoder, of whose weights none is left out.
_PARTS = {
    *("form", "place", "slot", "memory", "decoder", "norm", "out", "prototypes", "bias", "mix"),
    *("asked", "keys"),
}


@dataclass(frozen=True, slots=True)
class FormExample:
    """An annotated plan that has an ask of some form: what a form is kept as.

    Attributes:
        plan: The plan's text.
        ask: Which of its asks, from 0.
        question: The question.
    """

    plan: str
    ask: int
    question: str

    def read(self) -> Ask:
        """Return the ask."""
        return asks_of(parse_plan(self.plan), self.question)[self.ask][0]


@dataclass(frozen=True, slots=True)
class ReaderCard:
    """What a reader was trained on, and with what.

    Attributes:
        forms: An example of each form, in the order of the network's numbers, from 1.
        scale: What the product of the LoRA matrices is multiplied by.
        training: Settings and figures of the training, for people.
    """

    forms: tuple[FormExample, ...]
    scale: float
    training: Mapping[str, Any] = field(default_factory=dict)


def check_target(folder: Path) -> None:
    """Look whether a reader can be written to a folder, before what takes long; make nothing.

    Raises:
        InputError: It is a file, or cannot be made or written to.
    """
    there = next(
        place for place in (folder.absolute(), *folder.absolute().parents) if place.exists()
    )
    if not there.is_dir():
        raise _unwritable(folder, NotADirectoryError(ENOTDIR, f"{there} is a file"))
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"The reader cannot be written to {folder}: {error.strerror}. Give a folder that you may "
        "write to."
    )


def save_reader(folder: Path, network: ReaderNetwork, card: ReaderCard) -> None:
    """Write a trained network: LoRA matrices and heads in half precision, no base weights.

    Raises:
        InputError: The folder cannot be written.
    """
    import torch
    from safetensors.torch import save_file

    kept = {
        name.replace("encoder.base_model.model.", "encoder.").replace(".default.", "."): tensor
        for name, tensor in network.state_dict().items()
        if not name.startswith("encoder.") or "lora_" in name
    }
    halves = {name: tensor.to(torch.float16).contiguous() for name, tensor in kept.items()}
    shown = {
        "format": FORMAT,
        "encoder": "all-MiniLM-L6-v2",
        "scale": card.scale,
        "forms": [
            {"plan": form.plan, "ask": form.ask, "question": form.question} for form in card.forms
        ],
        "training": card.training,
    }
    text = json.dumps(shown, indent=1, ensure_ascii=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(halves, folder / WEIGHTS)
        (folder / CARD).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error


def read_card(folder: Path) -> ReaderCard:
    """Read what a reader's folder says of itself.

    Raises:
        InputError: The folder holds no reader, or one of another format.
    """
    try:
        told = json.loads((folder / CARD).read_text(encoding="utf-8"))
        (folder / WEIGHTS).stat()
        found = told["format"]
        if found == FORMAT:
            forms = tuple(FormExample(f["plan"], f["ask"], f["question"]) for f in told["forms"])
            for form in forms:
                form.read()
            return ReaderCard(forms, float(told["scale"]), told.get("training", {}))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{folder} holds no reader ({type(error).__name__}: {error}). Give a folder that "
            "casewright finetune reader wrote."
        ) from error
    raise InputError(
        f"The reader in {folder} has format {found}; this version reads {FORMAT}. "
        "Train it anew: casewright finetune reader."
    )


def read_weights(folder: Path, card: ReaderCard) -> dict[str, NDArray[np.float32]]:
    """Return all weights by name, the LoRA matrices merged into the packaged encoder's.

    Raises:
        InputError: The weights do not fit the card.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    weights = {f"encoder.{name}": weight for name, weight in minilm_weights().items()}
    try:
        trained = {n: w.astype(np.float32) for n, w in load_file(folder / WEIGHTS).items()}
        for name, down in trained.items():
            if name.endswith(_LORA_A):
                stem = name.removesuffix(_LORA_A)
                change = card.scale * (trained[stem + _LORA_B] @ down)
                weights[f"{stem}.weight"] = (weights[f"{stem}.weight"] + change).astype(np.float32)
            elif name.partition(".")[0] not in _PARTS and not name.endswith(_LORA_B):
                raise ValueError(f"the network has no {name}")
            elif not name.endswith(_LORA_B):
                weights[name] = trained[name]
        for name, rows in (("form.weight", 3), ("prototypes", 1)):
            if len(weights[name]) != len(card.forms) + rows:
                raise ValueError(f"{name} has {len(weights[name])} rows")
    except (OSError, SafetensorError, LookupError, ValueError) as error:
        raise unfit(folder, error) from error
    return weights


def load_network(folder: Path) -> ReaderNetwork:
    """Return the network with its LoRA matrices merged into the packaged encoder, for torch.

    Raises:
        InputError: The weights do not fit the card.
    """
    import torch
    from transformers import AutoModel

    from casewright.planner.reader_network import ReaderNetwork

    card = read_card(folder)
    base = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
    network = ReaderNetwork(base, len(card.forms)).eval()
    weights = {name: torch.from_numpy(w) for name, w in read_weights(folder, card).items()}
    own = network.state_dict()
    try:
        # Of the packaged file, what the network has no use for is left out.
        network.load_state_dict({n: t for n, t in weights.items() if n in own})
    except RuntimeError as error:
        raise unfit(folder, error) from error
    return network


def unfit(folder: Path, error: Exception) -> InputError:
    """Return what is raised where the weights of a folder do not fit its card, with the reason."""
    missing = "there is no " if isinstance(error, KeyError) else ""
    reason = f"{missing}{' '.join(str(error).split())[:200]}"
    return InputError(
        f"The weights in {folder} do not fit its {CARD}: {reason}. Train the reader anew: "
        "casewright finetune reader."
    )
