"""A reader's files: trained weights as safetensors, and what they belong to as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from errno import ENOTDIR
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner.asks import Ask, asks_of
from casewright.planner.parse import parse_plan
from casewright.stores.encoders.minilm import packaged_minilm

if TYPE_CHECKING:
    from casewright.planner.reader_network import ReaderNetwork

WEIGHTS, CARD = "reader.safetensors", "reader.json"
FORMAT = 1
_LORA_A, _LORA_B = ".lora_A.weight", ".lora_B.weight"


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
        example_bias: Logit of a form that only an example stands for, beside its likeness.
        training: Settings and figures of the training, for people.
    """

    forms: tuple[FormExample, ...]
    scale: float
    example_bias: float = 0.0
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
        "example_bias": card.example_bias,
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
            bias = float(told["example_bias"])
            return ReaderCard(forms, float(told["scale"]), bias, told.get("training", {}))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{folder} holds no reader ({type(error).__name__}: {error}). Give a folder that "
            "casewright finetune reader wrote."
        ) from error
    raise InputError(
        f"The reader in {folder} has format {found}; this version reads {FORMAT}. "
        "Train it anew: casewright finetune reader."
    )


def fingerprint(folder: Path) -> str:
    """Return a hash of the files: what is made of them is kept under it."""
    made = hashlib.sha256()
    for name in (WEIGHTS, CARD):
        made.update((folder / name).read_bytes())
    return made.hexdigest()[:16]


def load_network(folder: Path) -> ReaderNetwork:
    """Build the network with its LoRA matrices merged into the packaged encoder.

    Raises:
        InputError: The weights do not fit the card.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from transformers import AutoModel

    from casewright.planner.reader_network import ReaderNetwork

    card = read_card(folder)
    base = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
    network = ReaderNetwork(base, len(card.forms)).eval()
    # The heads have no weights but those of the file, so that none can be missing there.
    weights = {n: t for n, t in network.state_dict().items() if n.startswith("encoder.")}
    try:
        tensors = {name: t.float() for name, t in load_file(folder / WEIGHTS).items()}
        with torch.no_grad():
            for name, down in tensors.items():
                if name.endswith(_LORA_A):
                    stem = name.removesuffix(_LORA_A)
                    weights[stem + ".weight"] += card.scale * tensors[stem + _LORA_B] @ down
                elif not name.endswith(_LORA_B):
                    weights[name] = tensors[name]
        network.load_state_dict(weights)
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"The weights in {folder} do not fit its {CARD}: {reason}. Train the reader anew: "
            "casewright finetune reader."
        ) from error
    return network
