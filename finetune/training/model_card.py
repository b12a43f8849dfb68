"""What a trained model says of itself: ``casewright.json`` to machines, ``README.md`` to people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewright.finetune.recipe.training_section import NEW
from casewright.planner.language_model.card import CARD
from casewright.stores.whole_file import write_whole

README = "README.md"
#: In a card: what the base's own card says of its data, where it has one.
TRAINED_BEFORE = "trained_before"


def write_cards(folder: Path, card: Mapping[str, Any]) -> None:
    """Write both cards; the one for machines last, which says that all else is there.

    Args:
        folder: Of the model.
        card: Its facts: ``casewright``, ``kind``, ``base``, ``prompt_hash``, ``data``, ``recipe``,
            ``metrics``, and ``trained_before`` where the base has a card.
    """
    write_whole(folder / README, _readme(card, folder.resolve().name))
    write_whole(folder / CARD, json.dumps(card, ensure_ascii=False, indent=2) + "\n")


def _readme(card: Mapping[str, Any], folder: str) -> str:
    base, kind = card["base"], card["kind"]
    head = {
        "library_name": "peft" if kind == "adapter" else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["casewright"],
    }
    named = "a new model" if base == NEW else f"`{base}`"
    what = {
        "adapter": f"A LoRA adapter for {named}",
        "merged": f"A LoRA adapter merged into {named}",
        "model": f"A language model trained from {named}",
    }[kind]
    return "\n".join(
        [
            "---",
            *(f"{name}: {json.dumps(value)}" for name, value in head.items()),
            "---",
            "",
            "# A planner for Casewright",
            "",
            f"{what}. It writes plans of look-ups in Casewright's plan language.",
            "",
            "## How to serve it",
            "",
            "```console",
            f'$ casewright plan --planner local:{folder} "How much memory is on my phone?"',
            "```",
            "",
            f"`{folder}` is this folder's name, or its path from where you are.{_with_base(card)}",
            "",
            f"The form of the prompt that it was trained with has the hash `{card['prompt_hash']}`;"
            f" Casewright {card['casewright']} writes that form, and refuses to serve this model "
            "where it would write another.",
            "",
            "## Figures",
            "",
            "Losses are means over the supervised tokens of the validation set, in nats.",
            "",
            "| figure | value |",
            "|---|---|",
            *(f"| {name} | {_shown(value)} |" for name, value in card["metrics"].items()),
            "",
            "## Data",
            "",
            *_terms(card),
            "",
            *_block(card["data"]),
            "",
            "## Recipe",
            "",
            *_block(card["recipe"]),
            "",
        ]
    )


def _with_base(card: Mapping[str, Any]) -> str:
    if card["kind"] != "adapter":
        return ""
    if card["base"] == NEW:
        return " Its base lies in it, in `base`."
    return f" It needs its base, `{card['base']}`, as `adapter_config.json` names it."


def _terms(card: Mapping[str, Any]) -> list[str]:
    """Return the terms of all data that went into a model, and what it may not be measured by."""
    licences: dict[str, str] = {}
    contaminated: set[str] = set()
    told: Any = card
    while isinstance(told, Mapping):
        data = told.get("data")
        manifest = data.get("manifest", {}) if isinstance(data, Mapping) else {}
        instructions = manifest.get("instructions", {})
        licences |= instructions.get("licences", {})
        contaminated |= set(instructions.get("contaminates", ()))
        for one in manifest.get("toolsets", ()):
            licences[one["reader"]] = one["licence"]
            contaminated |= set(one["contaminates"])
        told = told.get(TRAINED_BEFORE)
    before = ", here or when its base was trained" if TRAINED_BEFORE in card else ""
    return [
        f"Instructions and tool-use sets that it was trained on{before}, and their licences: "
        + (", ".join(f"{name} ({terms})" for name, terms in sorted(licences.items())) or "none")
        + ".",
        "",
        "Benchmarks whose items were among them, so that it may not be measured by these: "
        + (", ".join(sorted(contaminated)) or "none")
        + ".",
        "",
        "The terms of the annotated queries are those of whoever annotated them, and the terms of "
        "the base hold for it as well.",
    ]


def _block(value: Any) -> list[str]:
    return ["```json", json.dumps(value, ensure_ascii=False, indent=2), "```"]


def _shown(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
