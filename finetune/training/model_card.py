"""What a trained model says of itself: ``casewright.json`` to machines, ``README.md`` to people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewright.finetune.training.checkpoints import write_whole
from casewright.planner.language_model.card import CARD

README = "README.md"


def write_cards(folder: Path, card: Mapping[str, Any], serve: str) -> None:
    """Write both cards; the one for machines last, which says that all else is there.

    Args:
        folder: Of the model.
        card: Its facts: ``casewright``, ``kind``, ``base``, ``prompt_hash``, ``data``, ``recipe``,
            ``metrics``.
        serve: A command that plans with it.
    """
    write_whole(folder / README, _readme(card, serve))
    write_whole(folder / CARD, json.dumps(card, ensure_ascii=False, indent=2) + "\n")


def _readme(card: Mapping[str, Any], serve: str) -> str:
    base, kind = card["base"], card["kind"]
    head = {"library_name": "peft" if kind == "adapter" else "transformers", "tags": ["casewright"]}
    what = {
        "adapter": f"A LoRA adapter for `{base}`",
        "merged": f"`{base}` with a LoRA adapter merged into it",
        "model": f"A language model trained from `{base}`",
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
            f"$ {serve}",
            "```",
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
            *_block(card["data"]),
            "",
            "## Recipe",
            "",
            *_block(card["recipe"]),
            "",
        ]
    )


def _block(value: Any) -> list[str]:
    return ["```json", json.dumps(value, ensure_ascii=False, indent=2), "```"]


def _shown(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
