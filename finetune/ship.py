"""From two finished trainings to the folder of the language model that ships.

All of it is checked before any of it is in its place: a package's model is what its commands made.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from casewright.errors import InputError
from casewright.finetune.training.log import LOG
from casewright.finetune.training.model_card import README, TRAINED_BEFORE, write_cards
from casewright.finetune.training.output_folder import check_writable
from casewright.planner.language_model import load_language_model
from casewright.planner.language_model.card import check_card, read_card
from casewright.planner.language_model.load import load_source
from casewright.planner.language_model.source import ADAPTER_WEIGHTS, Source
from casewright.planner.plan_cases import EXAMPLES
from casewright.planner.shipped import EXAMPLES_SHOWN, PRIOR, SHIPPED
from casewright.stores.whole_file import write_whole

#: Most bytes of a file with weights, and of the folder; a megabyte is a million bytes.
SHARD_BYTES, FOLDER_BYTES = 15_000_000, 25_000_000
#: For names and shapes, which come on top of a file's weights.
_HEADER_BYTES = 20_000
#: Names of the two trainings in the folder.
BASE, LORA = "base", "lora"
#: Suffixes of files that could run code when they are read.
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
#: Of a training's metrics, those that the README tells of both.
_TOLD = (
    "examples_training",
    "tokens_training",
    "steps",
    "seconds_training",
    "device",
    "parameters_trained",
    "validation_loss_before",
    "validation_loss_after",
)


@dataclass(frozen=True, slots=True)
class ShippedModel:
    """A folder that is ready to be part of the package.

    Attributes:
        folder: Where it is.
        sizes: Bytes of each of its files.
        card: What its ``casewright.json`` holds.
    """

    folder: Path
    sizes: Mapping[str, int]
    card: Mapping[str, Any]


def ship(
    base: Path,
    adapter: Path,
    output: Path,
    *,
    shard_bytes: int = SHARD_BYTES,
    folder_bytes: int = FOLDER_BYTES,
) -> ShippedModel:
    """Merge an adapter into its base, and write the result with its cards, manifests and logs.

    They are added in float32 and rounded to bfloat16 once. The tokenizer is the adapter's.

    Args:
        base: The output folder of a training of all weights.
        adapter: That of an adapter's training on this base.
        output: A folder that is not there yet, or is empty.
        shard_bytes: Most of a file.
        folder_bytes: Most of all files.

    Raises:
        InputError: A folder is no finished training of its kind, holds pickles or was trained with
            another prompt; the adapter is for another base; the output is not empty; or the model
            is too large, and nothing is written then.
        DependencyError: A package that merges them is not installed.
    """
    _check_output(output)
    card = _card(base, adapter)
    output.absolute().parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{output.name}-", dir=output.absolute().parent) as place:
        folder = Path(place) / output.name
        folder.mkdir()
        _write_weights(Source(base, adapter), folder, shard_bytes)
        _write_records(folder, {BASE: base, LORA: adapter})
        write_cards(folder, card)
        _tell_trainings(folder, card)
        sizes = _checked_sizes(folder, shard_bytes, folder_bytes)
        # As it will be read: it is whole, and its prompt is ours.
        load_language_model(folder, device="cpu")
        for file in folder.iterdir():
            # Weights are written for their owner alone, and would be installed so.
            file.chmod(0o644)
        if output.is_dir():
            output.rmdir()
        folder.rename(output)
    return ShippedModel(output, sizes, card)


def _check_output(output: Path) -> None:
    check_writable(output)
    if output.is_dir() and any(output.iterdir()):
        raise InputError(f"--output {output} is not empty. Give a new folder, or empty this one.")


def _card(base: Path, adapter: Path) -> dict[str, Any]:
    """Return the merged model's card, if the two trainings belong together."""
    first = _finished(base, "model", "--base")
    second = _finished(adapter, "adapter", "--adapter")
    check_card(Source(base))
    check_card(Source(base, adapter))
    trained = second.get(TRAINED_BEFORE, {}).get("data", {}).get("manifest_hash")
    if trained is None or trained != first["data"]["manifest_hash"]:
        raise InputError(
            f"--adapter {adapter} was not trained on --base {base}: its card tells of a base that "
            "learned from other data. Give the base that it was trained on."
        )
    before = {name: first[name] for name in ("recipe", "metrics")}
    return {
        **second,
        "kind": "merged",
        EXAMPLES_SHOWN: _shots(second),
        TRAINED_BEFORE: {**second[TRAINED_BEFORE], **before},
    }


def _finished(folder: Path, kind: str, option: str) -> dict[str, Any]:
    """Return a training's card, if it is finished, of this kind and without pickles."""
    card = read_card(folder) if folder.is_dir() else None
    if card is None or card.get("kind") != kind:
        what = "all weights" if kind == "model" else "an adapter"
        raise InputError(
            f"{option} {folder} is no finished training of {what}. Give a folder that casewright "
            "finetune train wrote."
        )
    if unsafe := sorted(file.name for file in folder.iterdir() if file.suffix in _PICKLES):
        raise InputError(
            f"{option} {folder} holds {unsafe[0]}: pickles could run code when they are read, and "
            "do not ship. Remove it; weights are safetensors."
        )
    if kind == "adapter" and not (folder / ADAPTER_WEIGHTS).is_file():
        raise InputError(f"{option} {folder} has no {ADAPTER_WEIGHTS}. Copy it anew.")
    return card


def _shots(card: Mapping[str, Any]) -> int:
    """Return how many plan cases a training's prompts showed."""
    shots = card["data"].get("manifest", {}).get("data", {}).get("tevo", {}).get("shots")
    return shots if isinstance(shots, int) else EXAMPLES


def _write_weights(source: Source, folder: Path, shard_bytes: int) -> None:
    import torch

    merged = load_source(source, str(source.adapter), torch.device("cpu"), torch.float32)
    network = merged.network.to(torch.bfloat16)
    network.save_pretrained(folder, max_shard_size=shard_bytes - _HEADER_BYTES)
    merged.tokenizer.save_pretrained(folder)


def _write_records(folder: Path, trainings: Mapping[str, Path]) -> None:
    """Copy what the trainings tell of themselves: the data's manifest, and the log."""
    for name, training in trainings.items():
        card = read_card(training) or {}
        manifest = json.dumps(card["data"]["manifest"], ensure_ascii=False, indent=2)
        write_whole(folder / f"{name}.manifest.json", manifest + "\n")
        if (training / LOG).is_file():
            shutil.copyfile(training / LOG, folder / f"{name}.{LOG}")


def _tell_trainings(folder: Path, card: Mapping[str, Any]) -> None:
    """Add to the README how it is served by its own name, and both trainings side by side."""
    lines = [
        "## As it ships",
        "",
        f"It is the planner `{SHIPPED}` of Casewright, with {card[EXAMPLES_SHOWN]} plan cases in "
        f"its prompt, a prior of weight {PRIOR:g} over its tools and spans for texts: "
        f'`casewright ask --planner {SHIPPED} "…"`. `casewright finetune ship` merged '
        "it from two trainings of `casewright finetune train`, whose data and logs lie beside it.",
        "",
        f"| figure | {BASE} | {LORA} |",
        "|---|---|---|",
        *_rows(card[TRAINED_BEFORE]["metrics"], card["metrics"]),
        "",
    ]
    readme = folder / README
    write_whole(readme, "\n".join([readme.read_text(encoding="utf-8"), *lines]))


def _rows(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for name in _TOLD:
        values = (metrics.get(name, "") for metrics in (first, second))
        told = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)
        yield f"| {name} | {' | '.join(told)} |"


def _checked_sizes(folder: Path, shard_bytes: int, folder_bytes: int) -> dict[str, int]:
    sizes = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
    for name, size in sizes.items():
        if size > shard_bytes:
            raise InputError(
                f"{name} would have {size:,} bytes, and {shard_bytes:,} is the most. One matrix "
                "cannot be cut: train a smaller vocabulary or a narrower model."
            )
    if (whole := sum(sizes.values())) > folder_bytes:
        raise InputError(
            f"The model would have {whole:,} bytes, and {folder_bytes:,} is the most that ships. "
            "Train a smaller one."
        )
    return sizes
