"""Figures of a training that is over."""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING, Any

from casewright.finetune.training.tokens import TokenRows

if TYPE_CHECKING:
    from trl.trainer.sft_trainer import SFTTrainer


def figures_of(trainer: SFTTrainer, rows: TokenRows, validation: TokenRows) -> dict[str, Any]:
    """Return what a training was of: its steps, its examples, its network, its memory.

    Args:
        trainer: After it has trained.
        rows: What it trained on.
        validation: What was measured on.
    """
    args = trainer.args
    network: Any = trainer.model
    parts = list(network.parameters())
    size = args.per_device_train_batch_size * args.gradient_accumulation_steps
    return {
        "steps": trainer.state.global_step,
        "rows_per_step": size * trainer.accelerator.num_processes,
        "processes": trainer.accelerator.num_processes,
        "examples_training": len(rows.rows),
        "examples_validation": len(validation.rows),
        "examples_left_out": len(rows.left_out) + len(validation.left_out),
        "tokens_training": rows.tokens,
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
