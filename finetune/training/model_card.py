"""What a trained model says of itself: ``casewright.json`` to machines, ``README.md`` to people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from casewright.finetune.recipe.training_section import NEW
from casewright.planner.language_model.card import CARD
from casewright.planner.language_model.smollm2 import NAME as SMOLLM2
from casewright.stores.whole_file import write_whole

README = "README.md"
#: In a card: what the card of the base, or of the adapter that was started from, says.
TRAINED_BEFORE = "trained_before"
#: What is told of the packaged base.
_SMOLLM2 = """
The base is SmolLM2-135M-Instruct of Hugging Face (Allal et al. 2025, Apache-2.0). It has the \
Llama architecture and is run by transformers' `MistralForCausalLM`, which computes the same. \
It was not made by Mistral AI.
"""
#: Figures that are told of every training that a model went through.
_TOLD = (
    "examples_training",
    "tokens_training",
    "tokens_seen",
    "steps",
    "seconds_training",
    "validation_loss_before",
    "validation_loss_after",
)
#: The card's text, with places for its facts.
_TEMPLATE = Path(__file__).parent / "card.md"


def write_cards(folder: Path, card: Mapping[str, Any]) -> None:
    """Write both cards; the one for machines last, which says that all else is there.

    Args:
        card: Its facts: ``casewright``, ``kind``, ``base``, ``prompt_hash``, ``data``, ``recipe``,
            ``metrics``, and ``trained_before`` where the base has a card, or the adapter that was
            started from.
    """
    write_whole(folder / README, _readme(card, folder.resolve().name))
    write_whole(folder / CARD, json.dumps(card, ensure_ascii=False, indent=2) + "\n")


def _readme(card: Mapping[str, Any], folder: str) -> str:
    base, adapter = card["base"], card["kind"] == "adapter"
    named = "a new model" if base == NEW else f"`{base}`"
    with_base = f" It needs its base, `{base}`, as `adapter_config.json` names it."
    if base == NEW:
        with_base = " Its base lies in it, in `base`."
    licences, spoiled = _terms(card)
    small = base == SMOLLM2
    return _TEMPLATE.read_text(encoding="utf-8").format(
        library='"peft"' if adapter else '"transformers"',
        hub='base_model: "HuggingFaceTB/SmolLM2-135M-Instruct"\n' if small else "",
        what=f"A LoRA adapter {'for' if adapter else 'merged into'} {named}",
        base=_SMOLLM2 if small else "",
        folder=folder,
        with_base=with_base if adapter else "",
        hash=card["prompt_hash"],
        version=card["casewright"],
        figures=_table(
            ["figure", "value"], [[name, _shown(v)] for name, v in card["metrics"].items()]
        ),
        before=_trained_before(card),
        also=", here or before" if TRAINED_BEFORE in card else "",
        licences=", ".join(f"{name} ({own})" for name, own in sorted(licences.items())) or "none",
        spoiled=", ".join(sorted(spoiled)) or "none",
        data=json.dumps(card["data"], ensure_ascii=False, indent=2),
        recipe=json.dumps(card["recipe"], ensure_ascii=False, indent=2),
    )


def _before(card: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a card, and those of the trainings that its weights went through, the last first."""
    told: Any = card
    while isinstance(told, Mapping):
        yield told
        told = told.get(TRAINED_BEFORE)


def _trained_before(card: Mapping[str, Any]) -> str:
    trained = [one for one in _before(card) if one.get("metrics")]
    if len(trained) < 2:
        return ""
    rows = [["data", *(f"`{one['data']['manifest_hash'][:12]}`" for one in trained)]]
    rows += [[name, *(_shown(one["metrics"].get(name)) for one in trained)] for name in _TOLD]
    heads = ["figure", "this training", *(f"{place} before" for place in range(1, len(trained)))]
    said = "The weights come from these trainings too; data is told by its manifest's hash."
    return f"\n## Trained before\n\n{said}\n\n{_table(heads, rows)}\n"


def _terms(card: Mapping[str, Any]) -> tuple[dict[str, str], set[str]]:
    """Return the licences of all data that went into a model, and what it may not measure."""
    licences: dict[str, str] = {}
    spoiled: set[str] = set()
    for told in _before(card):
        manifest = (told.get("data") or {}).get("manifest", {})
        instructions = manifest.get("instructions", {})
        licences |= instructions.get("licences", {})
        spoiled |= set(instructions.get("contaminates", ()))
        for one in manifest.get("toolsets", ()):
            licences[one["reader"]] = one["licence"]
            spoiled |= set(one["contaminates"])
    return licences, spoiled


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
