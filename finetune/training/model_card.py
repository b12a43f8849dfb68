"""Writes the files of a trained model: weights, tokenizer, ``casewright.json``, ``README.md``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.finetune.recipe.training_section import NEW
from casewright.finetune.training.run import BASE, TRAINED_BEFORE, Run
from casewright.planner.language_model import load_language_model
from casewright.planner.language_model.card import CARD
from casewright.planner.language_model.smollm2 import NAME as SMOLLM2
from casewright.stores.whole_file import write_whole

if TYPE_CHECKING:
    import torch

README = "README.md"
#: The paragraph of ``README.md`` for a model whose base is the packaged one.
_SMOLLM2 = """
The base is SmolLM2-135M-Instruct of Hugging Face (Allal et al. 2025, Apache-2.0). It has the \
Llama architecture and is run by transformers' `MistralForCausalLM`, which computes the same. \
It was not made by Mistral AI.
"""
#: Metrics in the table that compares the trainings of a model.
_FIGURES = (
    "examples_training",
    "tokens_training",
    "tokens_seen",
    "steps",
    "seconds_training",
    "validation_loss_before",
    "validation_loss_after",
)
#: The text of ``README.md``, with placeholders.
_TEMPLATE = Path(__file__).parent / "card.md"


def write_cards(folder: Path, card: Mapping[str, Any]) -> None:
    """Write a card from ``Run.card`` as ``README.md``, then as ``casewright.json``."""
    write_whole(folder / README, _readme(card, folder.resolve().name))
    write_whole(folder / CARD, json.dumps(card, ensure_ascii=False, indent=2) + "\n")


def _readme(card: Mapping[str, Any], folder_name: str) -> str:
    base, is_adapter = card["base"], card["kind"] == "adapter"
    title, base_note = "a new model", " Its base is in its folder `base`."
    if base != NEW:
        title = f"`{base}`"
        base_note = f" It needs its base, {title}, as `adapter_config.json` names it."
    licences, benchmarks = _licences_and_benchmarks(card)
    is_smollm2 = base == SMOLLM2
    return _TEMPLATE.read_text(encoding="utf-8").format(
        library='"peft"' if is_adapter else '"transformers"',
        hub='base_model: "HuggingFaceTB/SmolLM2-135M-Instruct"\n' if is_smollm2 else "",
        what=f"A LoRA adapter {'for' if is_adapter else 'merged into'} {title}",
        base=_SMOLLM2 if is_smollm2 else "",
        folder=folder_name,
        with_base=base_note if is_adapter else "",
        hash=card["prompt_hash"],
        version=card["casewright"],
        figures=_table(["figure", "value"], [[n, _cell(v)] for n, v in card["metrics"].items()]),
        before=_earlier_trainings(card),
        also=", here or before" if TRAINED_BEFORE in card else "",
        licences=", ".join(f"{name} ({licence})" for name, licence in sorted(licences.items()))
        or "none",
        contaminated=", ".join(sorted(benchmarks)) or "none",
        data=json.dumps(card["data"], ensure_ascii=False, indent=2),
        recipe=json.dumps(card["recipe"], ensure_ascii=False, indent=2),
    )


def _training_history(card: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the card of a training, then those of the trainings before it, the latest first."""
    current: Any = card
    while isinstance(current, Mapping):
        yield current
        current = current.get(TRAINED_BEFORE)


def _earlier_trainings(card: Mapping[str, Any]) -> str:
    cards = [item for item in _training_history(card) if item.get("metrics")]
    if len(cards) < 2:
        return ""
    rows = [["data", *(f"`{item['data']['manifest_hash'][:12]}`" for item in cards)]]
    rows += [[name, *(_cell(item["metrics"].get(name)) for item in cards)] for name in _FIGURES]
    columns = ["figure", "this training", *(f"{index} before" for index in range(1, len(cards)))]
    intro = "The weights also come from these trainings. A data set's name is its manifest's hash."
    return f"\n## Trained before\n\n{intro}\n\n{_table(columns, rows)}\n"


def _licences_and_benchmarks(card: Mapping[str, Any]) -> tuple[dict[str, str], set[str]]:
    """Return the licences of a model's data sets, and the benchmarks that the data contaminate."""
    licences: dict[str, str] = {}
    benchmarks: set[str] = set()
    for training_card in _training_history(card):
        manifest = (training_card.get("data") or {}).get("manifest", {})
        instructions = manifest.get("instructions", {})
        licences |= instructions.get("licences", {})
        benchmarks |= set(instructions.get("contaminates", ()))
        for item in manifest.get("toolsets", ()):
            licences[item["reader"]] = item["licence"]
            benchmarks |= set(item["contaminates"])
    return licences, benchmarks


def _table(columns: list[str], rows: list[list[str]]) -> str:
    all_rows = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in all_rows)


def _cell(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def save_adapter(run: Run, network: Any, tokenizer: Any, dtype: torch.dtype) -> None:
    """Write the adapter, cast to ``dtype`` if ``save_dtype`` is set; also write the tokenizer."""
    if run.model.save_dtype is not None:
        for parameter in network.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(dtype)
    base = f"./{BASE}" if run.model.new_base else _base_path(run.model.base, run.output)
    network.peft_config["default"].base_model_name_or_path = base
    network.save_pretrained(run.output, save_embedding_layers=False)
    tokenizer.save_pretrained(run.output)


def save_merged(output: Path, card: Mapping[str, Any], dtype: torch.dtype) -> Path:
    """Merge the adapter in ``output`` into its base; return the folder of the merged model."""
    # The base is loaded again, since its weights may have four bits during the training.
    dtype_name = str(dtype).removeprefix("torch.")
    merged = load_language_model(output, device="cpu", dtype=dtype_name)
    folder = output / "merged"
    folder.mkdir(exist_ok=True)
    merged.network.save_pretrained(folder)
    merged.tokenizer.save_pretrained(folder)
    write_cards(folder, {**card, "kind": "merged"})
    return folder


def _base_path(base: str, output: Path) -> str:
    """Return the base's name or path for ``adapter_config.json``.

    A name or an absolute path is unchanged. A relative path becomes relative to the output folder,
    so that base and output folder can move together.
    """
    folder = Path(base).expanduser()
    if not folder.is_dir():
        return base
    if folder.is_absolute():
        return str(folder)
    path = os.path.relpath(folder.resolve(), output.resolve())
    return path if path.startswith(".") else f"./{path}"
