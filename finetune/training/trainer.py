"""TRL's trainer, with checkpoints that are whole, and a loss that compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.finetune.recipe.training_section import LoraSection, TrainingSection
from casewright.finetune.training.arguments import lora_config, sft_config
from casewright.finetune.training.figures import mean_token_loss
from casewright.finetune.training.placement import Placement
from casewright.finetune.training.run import seal
from casewright.finetune.training.shared_heads import (
    HeadCollator,
    head_rows,
    pack_heads,
    summed_loss,
)
from casewright.finetune.training.tokens import TokenRow
from casewright.planner.language_model import LanguageModel

if TYPE_CHECKING:
    from trl.trainer.sft_trainer import SFTTrainer


def make_trainer(
    model: LanguageModel,
    rows: Sequence[TokenRow],
    validation: Sequence[TokenRow],
    sections: tuple[LoraSection, TrainingSection],
    placement: Placement,
    folder: Path,
) -> SFTTrainer:
    """Return a trainer of a model; it changes the model's network.

    Args:
        model: The base. Its parameters need no gradients, as it is loaded; those that are trained
            will.
        validation: What to measure on; may be empty.
        placement: Where.
    """
    from transformers import PrinterCallback
    from trl.trainer.sft_trainer import SFTTrainer

    lora, training = sections

    class Trainer(SFTTrainer):
        """Measures by the token, and says when a checkpoint is whole."""

        def evaluate(self, *args: Any, **settings: Any) -> dict[str, float]:
            if not validation:
                return {}
            found = {"eval_loss": mean_token_loss(self, self.eval_dataset, placement.dtype)}
            # Not TRL's own, which would tell the figures of the steps before as the validation's.
            super(SFTTrainer, self).log(dict(found))
            return found

        def compute_loss(
            self,
            network: Any,
            inputs: Any,
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            if not training.shared_heads:
                plain: Any = super().compute_loss
                return plain(network, inputs, return_outputs, num_items_in_batch)
            # As TRL does: the count is that of all processes, whose gradients are averaged.
            return (
                summed_loss(network, inputs) * self.accelerator.num_processes / num_items_in_batch
            )

        def _save_checkpoint(self, network: Any, trial: Any) -> None:
            super()._save_checkpoint(network, trial)  # type: ignore[no-untyped-call]
            self.accelerator.wait_for_everyone()
            if self.is_world_process_zero():
                seal(folder / f"checkpoint-{self.state.global_step}")

        def create_model_card(self, *args: Any, **settings: Any) -> None:
            """Write none: checkpoints are not for use, and the model gets its own."""

    args = sft_config(training, placement, folder, measured=bool(validation))
    dataset: Any = token_dataset
    collator = None
    if training.shared_heads:
        pack_heads(model.network)
        collator = HeadCollator()
        size = training.batch_per_device

        def dataset(given: Sequence[TokenRow]) -> Any:
            return import_module("datasets").Dataset.from_list(head_rows(given, size))

    trainer = Trainer(
        model=model.network,
        args=args,
        data_collator=collator,
        train_dataset=dataset(rows),
        eval_dataset=dataset(validation) if validation else None,
        processing_class=model.tokenizer,
        peft_config=lora_config(lora),
    )
    trainer.remove_callback(PrinterCallback)
    if trainer.args.bf16:
        _mix_precision(trainer.model)
    return trainer


def _mix_precision(network: Any) -> None:
    """Train in 32 bits, and compute in 16.

    PEFT keeps layers that are trained whole in the base's 16 bits, where small steps are lost. And
    it copies the input of each adapter to 32 bits, of which autocast makes 16 again: the copies
    change nothing, and are kept for the gradients.
    """
    quantised = getattr(network, "is_loaded_in_4bit", False)
    for parameter in network.parameters():
        # Adapters of a quantised base are in 16 bits as QLoRA has them.
        if parameter.requires_grad and not quantised:
            parameter.data = parameter.data.float()
    for module in network.modules():
        if hasattr(module, "cast_input_dtype_enabled"):
            module.cast_input_dtype_enabled = False


def token_dataset(rows: Sequence[TokenRow]) -> Any:
    """Return rows as a ``datasets.Dataset``."""
    datasets: Any = import_module("datasets")
    # By columns, whose lists are taken as they are: a set has many millions of tokens.
    names = [field.name for field in fields(TokenRow) if field.name != "head"]
    return datasets.Dataset.from_dict({n: [getattr(row, n) for row in rows] for n in names})
