"""What is compared: a recipe's settings, and those that TRL and PEFT have by default."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.training.arguments import lora_config
from casewright.finetune.training.placement import Placement
from casewright.finetune.training.tokens import TokenRow
from casewright.finetune.training.trainer import make_trainer, token_dataset
from casewright.planner.language_model import LanguageModel

if TYPE_CHECKING:
    from trl.trainer.sft_trainer import SFTTrainer

RECIPE = "the recipe"
DEFAULTS = "TRL's defaults"
#: Tells what the adapter's size has to do with it.
SAME_ADAPTER = "TRL's defaults, the recipe's adapter"
SYSTEMS = (RECIPE, DEFAULTS, SAME_ADAPTER)


def system_trainer(
    name: str,
    model: LanguageModel,
    rows: Sequence[TokenRow],
    recipe: Recipe,
    placement: Placement,
    folder: Path,
) -> SFTTrainer:
    """Return a system's trainer of one pass over the rows, before its first step.

    Args:
        name: One of ``SYSTEMS``.
        model: The base.
        rows: What to train on, each shorter than the recipe's ``max_length``.
        recipe: The recipe.
        placement: Where it trains.
        folder: For what a trainer may write.
    """
    if name == RECIPE:
        sections = (recipe.lora, recipe.training)
        return make_trainer(model, rows, rows, sections, placement, folder)
    from peft import LoraConfig
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    adapter = lora_config(recipe.lora) if name == SAME_ADAPTER else LoraConfig("CAUSAL_LM")
    return SFTTrainer(
        model=model.network,
        args=SFTConfig(
            output_dir=str(folder),
            # Else completions beyond 1,024 tokens would be cut, and the examples be others.
            max_length=recipe.training.max_length,
            # As TRL has it for prompts and completions that it makes tokens of itself.
            completion_only_loss=True,
            num_train_epochs=1,
            use_cpu=placement.device.type == "cpu",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            log_level="error",
        ),
        train_dataset=token_dataset(rows),
        processing_class=model.tokenizer,
        peft_config=adapter,
    )
