"""Figures of a training that is over."""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING, Any

from casewright.finetune.training.shared_heads import summed_loss
from casewright.finetune.training.tokens import TokenRows

if TYPE_CHECKING:
    from trl.trainer.sft_trainer import SFTTrainer


def figures_of(trainer: SFTTrainer, rows: TokenRows, validation: TokenRows) -> dict[str, Any]:
    """Return what a training was of: its steps, its examples, its network, its memory."""
    args = trainer.args
    network: Any = trainer.model
    parts = list(network.parameters())
    size = args.per_device_train_batch_size * args.gradient_accumulation_steps
    return {
        "steps": trainer.state.global_step,
        "steps_planned": trainer.state.max_steps,
        "rows_per_step": size * trainer.accelerator.num_processes,
        "processes": trainer.accelerator.num_processes,
        "examples_training": len(rows.rows),
        "examples_validation": len(validation.rows),
        "examples_left_out": len(rows.left_out) + len(validation.left_out),
        "tokens_training": rows.tokens,
        # What the network computed: a head once for all examples of a step.
        "tokens_seen": trainer.state.num_input_tokens_seen,
        "tokens_supervised": rows.supervised,
        "tokens_longest_example": rows.longest,
        "parameters": sum(part.numel() for part in parts),
        "parameters_trained": sum(part.numel() for part in parts if part.requires_grad),
        "device": str(args.device),
        "peak_memory_mib": round(peak_memory(args.device) / 2**20),
    }


def peak_memory(device: Any) -> int:
    """Return the most bytes that were in use: of the GPU, or of this process on the CPU."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    # Kibibytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def mean_token_loss(trainer: SFTTrainer, rows: Any, dtype: Any) -> float:
    """Return the mean cross-entropy of a supervised token, in nats.

    Over all tokens of all rows alike: how rows are put into batches, packed or dealt to processes
    does not change it, as it does where means of batches are averaged.

    Args:
        rows: Of ``input_ids`` and ``labels``, or of one head each; not empty.
    """
    import torch

    accelerator, args = trainer.accelerator, trainer.args
    network: Any = trainer.model
    device = accelerator.device
    # Rows of like length together, to pad less; every process takes its share.
    of_heads = "tails" in rows[0]
    order = sorted(
        range(len(rows)), key=lambda place: 0 if of_heads else len(rows[place]["input_ids"])
    )
    own = order[accelerator.process_index :: accelerator.num_processes]
    size = args.per_device_eval_batch_size
    sums = torch.zeros(2, dtype=torch.float64, device="cpu" if device.type == "mps" else device)
    training = network.training
    network.eval()
    mixed = torch.autocast(device.type, dtype, enabled=dtype != torch.float32)
    with torch.no_grad(), mixed:
        for start in range(0, len(own), size):
            batch: Any = trainer.data_collator([rows[place] for place in own[start : start + size]])
            inputs = {
                name: part.to(device) if torch.is_tensor(part) else part
                for name, part in batch.items()
            }
            if of_heads:
                sums[0] += summed_loss(network, inputs).double().to(sums.device)
                sums[1] += len(inputs["labels"])
                continue
            read = network(**inputs, use_cache=False, fused_lm_head=True)
            sums[0] -= read.log_probs.double().sum().to(sums.device)
            sums[1] += read.label_mask.sum().to(sums.device)
    network.train(training)
    total, tokens = accelerator.reduce(sums, reduction="sum").tolist()
    return float(total / tokens)
