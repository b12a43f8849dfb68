"""The loss on examples that are not trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from casewright.finetune.training.shared_heads import IGNORED

if TYPE_CHECKING:
    from trl.trainer.sft_trainer import SFTTrainer


def mean_token_loss(trainer: SFTTrainer, rows: Any, dtype: Any) -> float:
    """Return the mean cross-entropy of a supervised token, in nats.

    Over all tokens of all rows alike: how rows are put into batches, packed or dealt to processes
    does not change it, as it does where means of batches are averaged.

    Args:
        trainer: Its network, collator and processes are used.
        rows: Of ``input_ids`` and ``labels``, or of one head each; not empty.
        dtype: What is computed in.
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
                sums[0] += network(**inputs)["loss"].double().to(sums.device)
                sums[1] += (inputs["labels"] != IGNORED).sum().to(sums.device)
                continue
            read = network(**inputs, use_cache=False, fused_lm_head=True)
            sums[0] -= read.log_probs.double().sum().to(sums.device)
            sums[1] += read.label_mask.sum().to(sums.device)
    network.train(training)
    total, tokens = accelerator.reduce(sums, reduction="sum").tolist()
    return float(total / tokens)
