"""A recipe's sections as the settings of TRL and PEFT."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from casewright.finetune.recipe.training_section import LoraSection, TrainingSection
from casewright.finetune.training.placement import Placement

if TYPE_CHECKING:
    from peft import LoraConfig
    from trl.trainer.sft_config import SFTConfig

_OPTIMISERS = {
    "adamw": "adamw_torch",
    "adamw_fused": "adamw_torch_fused",
    "adamw_8bit": "paged_adamw_8bit",
    "adafactor": "adafactor",
}


def sft_config(
    training: TrainingSection, placement: Placement, folder: Path, *, measured: bool = True
) -> SFTConfig:
    """Return TRL's settings.

    Args:
        placement: Where it runs.
    """
    import torch
    from trl.trainer.sft_config import SFTConfig

    schedule: str = training.schedule
    if schedule == "constant" and training.warmup:
        schedule = "constant_with_warmup"
    # A row holds all examples of a head that are computed together.
    batch = 1 if training.shared_heads else training.batch_per_device
    return SFTConfig(
        output_dir=str(folder),
        num_train_epochs=training.epochs or 1.0,
        max_steps=training.steps or -1,
        learning_rate=training.learning_rate,
        lr_scheduler_type=schedule,
        # Below 1 it is a share of the steps.
        warmup_steps=training.warmup,
        per_device_train_batch_size=batch,
        per_device_eval_batch_size=batch,
        gradient_accumulation_steps=training.gradient_accumulation,
        max_length=training.max_length,
        completion_only_loss=True,
        packing=training.packing,
        packing_strategy=training.packing_strategy,
        # The loss on the validation set does not depend on how rows are made up; see losses.
        eval_packing=False,
        gradient_checkpointing=training.gradient_checkpointing,
        weight_decay=training.weight_decay,
        adam_beta2=training.beta2,
        max_grad_norm=training.max_grad_norm,
        optim=_OPTIMISERS[training.optimiser],
        save_strategy="steps" if training.save_steps else "epoch",
        save_steps=training.save_steps or 500,
        save_total_limit=training.checkpoints_kept,
        eval_strategy="steps" if training.eval_steps and measured else "no",
        eval_steps=training.eval_steps,
        include_num_input_tokens_seen="all",
        logging_steps=training.log_steps,
        # Else a loss that is no number would be told as 0.
        logging_nan_inf_filter=False,
        seed=training.seed,
        data_seed=training.seed,
        bf16=placement.dtype == torch.bfloat16,
        use_cpu=placement.device.type == "cpu",
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=placement.device.type == "cuda",
        dataset_kwargs={"skip_prepare_dataset": True} if training.shared_heads else None,
        remove_unused_columns=not training.shared_heads,
        report_to=[],
        push_to_hub=False,
        disable_tqdm=True,
        log_level="error",
        log_level_replica="error",
    )


def lora_config(lora: LoraSection) -> LoraConfig:
    """Return PEFT's settings."""
    from peft import LoraConfig

    targets = lora.target_modules
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=targets if isinstance(targets, str) else list(targets),
        modules_to_save=list(lora.modules_to_save) or None,
        task_type="CAUSAL_LM",
    )
