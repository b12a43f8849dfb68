"""The files of a reader: its trained weights as safetensors, and its card as JSON."""

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
from casewright.planner.parse import parse_plan
from casewright.planner.parser.weights import unwritable_error, weights_error, write_files
from casewright.planner.sub_queries import SubQuery, sub_queries_of
from casewright.stores.encoders.minilm import minilm_weights

if TYPE_CHECKING:
    from casewright.planner.reader_network import ReaderNetwork

WEIGHTS, CARD = "reader.safetensors", "reader.json"
FORMAT = 1
_LORA_A, _LORA_B = ".lora_A.weight", ".lora_B.weight"
#: The attributes of ``ReaderNetwork`` that have weights, except the encoder.
_WEIGHTED = {
    *("form", "place", "slot", "memory", "decoder", "norm", "out", "prototypes", "bias", "mix"),
    *("asked", "keys"),
}


@dataclass(frozen=True, slots=True)
class TemplateExample:
    """Stored template: the sub-query at ``index`` of a question's plan has this template."""

    plan: str
    index: int
    question: str

    def read(self) -> SubQuery:
        """Return the sub-query with the template."""
        return sub_queries_of(parse_plan(self.plan), self.question)[self.index][0]


@dataclass(frozen=True, slots=True)
class ReaderCard:
    """Card of a reader: templates in the network's order, scale of LoRA, record of the training."""

    templates: tuple[TemplateExample, ...]
    scale: float
    training: Mapping[str, Any] = field(default_factory=dict)


def check_target(folder: Path) -> None:
    """Raise ``InputError`` if no file can be written to the folder, which need not exist."""
    nearest = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not nearest.is_dir():
        raise unwritable_error(folder, NotADirectoryError(ENOTDIR, f"{nearest} is a file"))
    try:
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise unwritable_error(folder, error) from error


def save_reader(folder: Path, network: ReaderNetwork, card: ReaderCard) -> None:
    """Write a trained network in float16, without the base weights of the encoder."""
    import torch

    # Remove the parts that PEFT has added to the names of the encoder's weights.
    weights = {
        name.replace("encoder.base_model.model.", "encoder.").replace(".default.", "."): tensor
        for name, tensor in network.state_dict().items()
        if not name.startswith("encoder.") or "lora_" in name
    }
    half_weights = {name: tensor.to(torch.float16).contiguous() for name, tensor in weights.items()}
    # "forms" is the old name of templates, "ask" that of ``index``.
    data = {
        "format": FORMAT,
        "encoder": "all-MiniLM-L6-v2",
        "scale": card.scale,
        "forms": [
            {"plan": example.plan, "ask": example.index, "question": example.question}
            for example in card.templates
        ],
        "training": card.training,
    }
    write_files(folder, half_weights, data, (WEIGHTS, CARD))


def read_card(folder: Path) -> ReaderCard:
    """Return the card of a folder; raise ``InputError`` if it contains no reader of this format."""
    try:
        data = json.loads((folder / CARD).read_text(encoding="utf-8"))
        (folder / WEIGHTS).stat()
        version = data["format"]
        if version == FORMAT:
            templates = tuple(
                TemplateExample(form["plan"], form["ask"], form["question"])
                for form in data["forms"]
            )
            for template in templates:
                template.read()  # raises an error if the plan has no such sub-query
            return ReaderCard(templates, float(data["scale"]), data.get("training", {}))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{folder} holds no reader ({type(error).__name__}: {error}). Give a folder that "
            "casewright finetune reader wrote."
        ) from error
    raise InputError(
        f"The reader in {folder} has format {version}; this version reads {FORMAT}. "
        "Train it anew: casewright finetune reader."
    )


def read_weights(folder: Path, card: ReaderCard) -> dict[str, NDArray[np.float32]]:
    """Return the network's weights, with LoRA merged; raise ``InputError`` if they do not fit."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    weights = {f"encoder.{name}": weight for name, weight in minilm_weights().items()}
    try:
        trained = {n: w.astype(np.float32) for n, w in load_file(folder / WEIGHTS).items()}
        for name, lora_a in trained.items():
            if name.endswith(_LORA_A):
                base = name.removesuffix(_LORA_A)
                update = card.scale * (trained[base + _LORA_B] @ lora_a)
                weights[f"{base}.weight"] = (weights[f"{base}.weight"] + update).astype(np.float32)
            elif name.partition(".")[0] not in _WEIGHTED and not name.endswith(_LORA_B):
                raise ValueError(f"the network has no {name}")
            elif not name.endswith(_LORA_B):
                weights[name] = trained[name]
        # Beside the templates, ``form`` has rows for the end, any other template and the start, and
        # ``prototypes`` has a row for the end.
        for name, extra_rows in (("form.weight", 3), ("prototypes", 1)):
            if len(weights[name]) != len(card.templates) + extra_rows:
                raise ValueError(f"{name} has {len(weights[name])} rows")
    except (OSError, SafetensorError, LookupError, ValueError) as error:
        raise weights_error(folder, error, "casewright finetune reader") from error
    return weights
