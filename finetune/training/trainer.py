"""The TRL trainer, with its settings, checkpoints, validation loss and metrics."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.finetune.recipe.training_section import LoraSection, TrainingSection
from casewright.finetune.training import tokens
from casewright.finetune.training.placement import Placement
from casewright.finetune.training.run import write_hashes
from casewright.finetune.training.tokens import TokenRow, TokenRows
from casewright.planner.language_model import LanguageModel

if TYPE_CHECKING:
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

#: Names of optimisers and schedules in transformers, by the recipe's name.
_OPTIMISERS = {
    "adamw": "adamw_torch",
    "adamw_fused": "adamw_torch_fused",
    "adamw_8bit": "paged_adamw_8bit",
    "adafactor": "adafactor",
}
_SCHEDULES = {"constant": "constant_with_warmup"}
#: Fields of ``TrainingSection`` that ``SFTConfig`` has under the same name.
_SAME_NAME = (
    *("learning_rate", "max_length", "packing", "packing_strategy", "gradient_checkpointing"),
    *("weight_decay", "max_grad_norm", "eval_steps", "seed"),
)


def _sft_config(
    training: TrainingSection, placement: Placement, folder: Path, *, has_validation: bool
) -> SFTConfig:
    import torch
    from trl.trainer.sft_config import SFTConfig

    # With shared heads (constant prompt prefixes), a row has several examples; a batch is one row.
    batch_size = 1 if training.shared_heads else training.batch_per_device
    return SFTConfig(
        output_dir=str(folder),
        num_train_epochs=training.epochs or 1.0,
        max_steps=training.steps or -1,
        lr_scheduler_type=_SCHEDULES.get(training.schedule, training.schedule),
        # TRL takes a number below 1 as a share of the steps.
        warmup_steps=training.warmup,
        per_device_train_batch_size=batch_size,
        per_device_eval_batch_size=batch_size,
        gradient_accumulation_steps=training.gradient_accumulation,
        completion_only_loss=True,
        eval_packing=False,
        adam_beta2=training.beta2,
        optim=_OPTIMISERS[training.optimiser],
        save_strategy="steps" if training.save_steps else "epoch",
        save_steps=training.save_steps or 500,
        save_total_limit=training.checkpoints_kept,
        eval_strategy="steps" if training.eval_steps and has_validation else "no",
        include_num_input_tokens_seen="all",
        logging_steps=training.log_steps,
        # Without this, a NaN loss would be logged as 0.
        logging_nan_inf_filter=False,
        data_seed=training.seed,
        bf16=placement.dtype == torch.bfloat16,
        use_cpu=placement.device.type == "cpu",
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=placement.device.type == "cuda",
        dataset_kwargs={"skip_prepare_dataset": True} if training.shared_heads else None,
        remove_unused_columns=not training.shared_heads,
        report_to=[],
        disable_tqdm=True,
        log_level="error",
        log_level_replica="error",
        **{name: getattr(training, name) for name in _SAME_NAME},
    )


def figures_of(
    trainer: SFTTrainer, train_tokens: TokenRows, validation_tokens: TokenRows
) -> dict[str, Any]:
    """Return the metrics of a training: its steps, examples, network and memory."""
    args = trainer.args
    network: Any = trainer.model
    parameters = list(network.parameters())
    rows_per_process = args.per_device_train_batch_size * args.gradient_accumulation_steps
    return {
        "steps": trainer.state.global_step,
        "steps_planned": trainer.state.max_steps,
        "rows_per_step": rows_per_process * trainer.accelerator.num_processes,
        "processes": trainer.accelerator.num_processes,
        "examples_training": len(train_tokens.rows),
        "examples_validation": len(validation_tokens.rows),
        "examples_left_out": len(train_tokens.left_out) + len(validation_tokens.left_out),
        "tokens_training": train_tokens.token_count,
        # A head that a row's examples share is processed once, so it counts once.
        "tokens_seen": trainer.state.num_input_tokens_seen,
        "tokens_supervised": sum(sum(row.completion_mask) for row in train_tokens.rows),
        "tokens_longest_example": train_tokens.longest,
        "parameters": sum(weight.numel() for weight in parameters),
        "parameters_trained": sum(weight.numel() for weight in parameters if weight.requires_grad),
        "device": str(args.device),
        "peak_memory_mib": round(peak_memory(args.device) / 2**20),
    }


def peak_memory(device: Any) -> int:
    """Return the peak memory in bytes: of the GPU, or else of this process."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    # ``ru_maxrss`` is in kibibytes on Linux, and in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def mean_token_loss(trainer: SFTTrainer, rows: Any) -> float:
    """Return the mean cross-entropy of a supervised token, in nats.

    All tokens have the same weight, so that batches, packing and the number of processes do not
    change the mean. ``rows`` may not be empty. A row has ``input_ids`` and ``labels``, or, with
    shared heads, ``groups``.
    """
    import torch

    send_to_device: Any = import_module("accelerate.utils").send_to_device
    accelerator, batch_size = trainer.accelerator, trainer.args.per_device_eval_batch_size
    network: Any = trainer.model
    device = accelerator.device
    # Rows of similar length share a batch, to pad less. Each process computes some of the rows.
    is_grouped = "groups" in rows[0]
    indices = sorted(range(len(rows)), key=lambda n: 0 if is_grouped else len(rows[n]["input_ids"]))
    own_indices = indices[accelerator.process_index :: accelerator.num_processes]
    # The sum of the losses, and the number of tokens.
    totals = torch.zeros(2, dtype=torch.float64, device="cpu" if device.type == "mps" else device)
    was_training = network.training
    network.eval()
    with torch.no_grad(), accelerator.autocast():
        for start in range(0, len(own_indices), batch_size):
            batch_rows = [rows[n] for n in own_indices[start : start + batch_size]]
            batch: Any = trainer.data_collator(batch_rows)
            inputs = send_to_device(batch, device)
            if is_grouped:
                totals[0] += tokens.summed_loss(network, inputs).double().to(totals.device)
                totals[1] += len(inputs["labels"])
                continue
            output = network(**inputs, use_cache=False, fused_lm_head=True)
            totals[0] -= output.log_probs.double().sum().to(totals.device)
            totals[1] += output.label_mask.sum().to(totals.device)
    network.train(was_training)
    loss_sum, token_count = accelerator.reduce(totals, reduction="sum").tolist()
    return float(loss_sum / token_count)


def make_trainer(
    model: LanguageModel,
    train_rows: Sequence[TokenRow],
    validation_rows: Sequence[TokenRow],
    sections: tuple[LoraSection, TrainingSection],
    placement: Placement,
    folder: Path,
) -> SFTTrainer:
    """Return a trainer, and add an adapter to the network; ``validation_rows`` may be empty."""
    from peft import LoraConfig
    from transformers import PrinterCallback
    from trl.trainer.sft_trainer import SFTTrainer

    lora, training = sections

    class Trainer(SFTTrainer):
        """A trainer that evaluates the mean loss per token, and writes checkpoints' hashes."""

        def evaluate(self, *args: Any, **settings: Any) -> dict[str, float]:
            if not validation_rows:
                return {}
            results = {"eval_loss": mean_token_loss(self, self.eval_dataset)}
            # TRL's own ``log`` would add figures of the last training steps.
            super(SFTTrainer, self).log(dict(results))
            return results

        def compute_loss(self, network: Any, inputs: Any, **settings: Any) -> Any:
            if not training.shared_heads:
                trl_loss: Any = super().compute_loss
                return trl_loss(network, inputs, **settings)
            # ``num_items_in_batch`` counts the tokens of all processes, and gradients are averaged
            # over the processes. So the loss is multiplied by the number of processes, as in TRL.
            loss = tokens.summed_loss(network, inputs) * self.accelerator.num_processes
            return loss / settings["num_items_in_batch"]

        def _save_checkpoint(self, network: Any, trial: Any) -> None:
            super()._save_checkpoint(network, trial)
            self.accelerator.wait_for_everyone()
            if self.is_world_process_zero():
                write_hashes(folder / f"checkpoint-{self.state.global_step}")

        def create_model_card(self, *args: Any, **settings: Any) -> None:
            """Write no card, since checkpoints are not for use and the model has its own cards."""

    # On CUDA, groups of examples that share a head fill a row up to this length. On the CPU the
    # length is 0, so that each row has one group.
    row_tokens = training.row_tokens if placement.device.type == "cuda" else 0

    def make_dataset(rows: Sequence[TokenRow]) -> Any:
        datasets: Any = import_module("datasets")
        if training.shared_heads:
            groups = tokens.group_by_head(rows, training.batch_per_device)
            return datasets.Dataset.from_list(tokens.fill_rows(groups, row_tokens))
        # Datasets reads millions of tokens faster from columns than from rows.
        names = ("input_ids", "completion_mask")
        return datasets.Dataset.from_dict({n: [getattr(row, n) for row in rows] for n in names})

    collator = None
    if training.shared_heads:
        tokens.use_packed_attention(model.network)
        collator = partial(tokens.collate_heads, length=row_tokens)
    lora_arguments = lora.model_dump(mode="json", by_alias=True, exclude={"method"})
    lora_arguments["modules_to_save"] = lora_arguments["modules_to_save"] or None
    trainer = Trainer(
        model=model.network,
        args=_sft_config(training, placement, folder, has_validation=bool(validation_rows)),
        data_collator=collator,
        train_dataset=make_dataset(train_rows),
        eval_dataset=make_dataset(validation_rows) if validation_rows else None,
        processing_class=model.tokenizer,
        peft_config=LoraConfig(task_type="CAUSAL_LM", **lora_arguments),
    )
    trainer.remove_callback(PrinterCallback)
    if trainer.args.bf16:
        _mix_precision(trainer.model)
    return trainer


def _mix_precision(network: Any) -> None:
    """Set trained weights to 32 bits; the computation stays in 16 bits.

    PEFT keeps the layers of ``modules_to_save`` in the base's 16 bits, where small steps are lost.
    It also casts the input of each adapter to 32 bits, and autocast casts the input back to 16.
    The backward pass would keep these copies, so PEFT's cast is turned off.
    """
    is_quantised = getattr(network, "is_loaded_in_4bit", False)
    for parameter in network.parameters():
        # Adapters of a quantised base stay in 16 bits, as in QLoRA.
        if parameter.requires_grad and not is_quantised:
            parameter.data = parameter.data.float()
    for module in network.modules():
        if hasattr(module, "cast_input_dtype_enabled"):
            module.cast_input_dtype_enabled = False
