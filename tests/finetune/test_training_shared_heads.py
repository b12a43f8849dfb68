"""Examples whose shared head is computed once: the same loss and the same steps."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.recipe.training_section import LoraSection, check_together
from casewright.finetune.training.log import silence
from casewright.finetune.training.packed_attention_network import block_mask
from casewright.finetune.training.placement import find_placement
from casewright.finetune.training.tokens import (
    collate_heads,
    fill_rows,
    group_by_head,
    summed_loss,
    token_rows,
    use_packed_attention,
)
from casewright.finetune.training.train import train
from casewright.finetune.training.trainer import make_trainer, mean_token_loss
from tests.support.tiny_mistral import tiny_mistral
from tests.support.trained import MODEL, plan_examples, training, write_set

ADAPTER = LoraSection(r=4, alpha=8, dropout=0.0)
#: An adapter with layers that are trained as a whole.
WHOLE = ADAPTER.model_copy(update={"modules_to_save": ("embed_tokens", "lm_head")})
#: The most frequent head, which has no extra tools of a record.
HEAD = Counter(example.prompt.head for example in plan_examples()).most_common(1)[0][0]
EXAMPLES = [example for example in plan_examples() if example.prompt.head == HEAD]


def run_training(
    lora: LoraSection, folder: Path, *, shared: bool, supervise_shown_plans: bool = False
) -> tuple[dict[str, Any], float, list[float]]:
    """Return the trained weights, the validation loss before training, and the step losses."""
    torch: Any = import_module("torch")
    model = tiny_mistral()
    examples = EXAMPLES[:6]
    # One batch holds all examples, since batches of heads differ from batches of rows.
    settings = training(
        steps=2, batch_per_device=6, shared_heads=shared, learning_rate=1e-2, warmup=0.0
    )
    rows = token_rows(examples, model, 2048, supervise_shown_plans=supervise_shown_plans).rows
    with silence():
        placement = find_placement(MODEL, settings)
        torch.manual_seed(0)
        trainer = make_trainer(model, rows, rows, (lora, settings), placement, folder)
        loss = mean_token_loss(trainer, trainer.eval_dataset)
        trainer.train()
    network: Any = trainer.model
    weights = {n: p.detach().clone() for n, p in network.named_parameters() if p.requires_grad}
    return weights, loss, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.parametrize("lora", [WHOLE, ADAPTER], ids=["whole", "adapter"])
def test_shared_heads_give_the_same_steps_as_a_head_per_example(
    lora: LoraSection, tmp_path: Path
) -> None:
    separate, loss, losses = run_training(lora, tmp_path / "each", shared=False)
    shared, shared_loss, shared_losses = run_training(lora, tmp_path / "once", shared=True)
    assert shared_loss == pytest.approx(loss, abs=1e-5)
    assert shared_losses == pytest.approx(losses, abs=1e-4)
    assert losses[1] < losses[0]
    difference = max(float((separate[name] - shared[name]).abs().max()) for name in separate)
    assert difference < 2e-4


def test_supervise_shown_plans_adds_the_plans_of_the_prompt_to_the_loss() -> None:
    model = tiny_mistral()
    example = EXAMPLES[0]
    (plain,) = token_rows([example], model, 2048).rows
    (extended,) = token_rows([example], model, 2048, supervise_shown_plans=True).rows
    assert plain.input_ids == extended.input_ids
    texts = [
        model.decode([t for t, m in zip(row.input_ids, row.completion_mask, strict=True) if m])
        for row in (plain, extended)
    ]
    assert texts[0] == example.completion
    blocks = str(example.prompt).split("\nPlan:\n")[1:]
    plans = ["\n".join(row for row in block.split("\n") if row.startswith("s")) for block in blocks]
    assert len(plans) > 1
    assert texts[1].split() == "\n".join([*plans, example.completion]).split()


def test_group_by_head_puts_a_head_once_with_at_most_three_tails() -> None:
    model = tiny_mistral()
    rows = token_rows(EXAMPLES[:7], model, 2048, supervise_shown_plans=True).rows
    groups = group_by_head(rows, 3)
    assert [len(group["tails"]) for group in groups] == [2, 2, 3]
    for group in groups:
        for tail, labels in zip(group["tails"], group["tail_labels"], strict=True):
            tokens = [*group["head"], *tail]
            (row,) = [row for row in rows if row.input_ids == tokens]
            supervised = [token != -100 for token in (*group["head_labels"], *labels)]
            assert supervised == [bool(mark) for mark in row.completion_mask]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"packing": True}, "packing"),
        ({"gradient_checkpointing": True}, "gradient_checkpointing"),
        ({"attention": "flash_attention_2"}, "attention"),
    ],
    ids=["packing", "checkpointing", "flash"],
)
def test_settings_incompatible_with_shared_heads_are_refused(
    settings: dict[str, Any], name: str
) -> None:
    anywhere = MODEL.model_copy(update={"device": None})
    with pytest.raises(InputError, match=f"shared_heads and training.{name}"):
        check_together(anywhere, WHOLE, training(shared_heads=True, **settings))


def test_shared_heads_with_a_sliding_window_are_refused() -> None:
    network: Any = tiny_mistral().network
    network.config.sliding_window = 16
    with pytest.raises(InputError, match="sliding_window"):
        use_packed_attention(network)


def test_rows_without_a_prompt_head_form_one_group() -> None:
    model = tiny_mistral()
    rows = token_rows(EXAMPLES[:2], model, 2048).rows
    headless = [type(row)(row.input_ids, row.completion_mask) for row in rows]
    groups = group_by_head(headless, 8)
    assert [len(group["head"]) for group in groups] == [1]


def test_row_of_several_heads_gives_the_same_loss_as_separate_rows() -> None:
    torch: Any = import_module("torch")
    model = tiny_mistral()
    second_head = Counter(example.prompt.head for example in plan_examples()).most_common(2)[1][0]
    others = [example for example in plan_examples() if example.prompt.head == second_head][:2]
    rows = token_rows([*EXAMPLES[:3], *others], model, 2048, supervise_shown_plans=True).rows
    groups = group_by_head(rows, 3)
    use_packed_attention(model.network)
    filled = fill_rows(groups, 16_384)
    assert [len(row["groups"]) for row in filled] == [2]
    batch = collate_heads(filled, length=2048)
    # The mask that a GPU uses. On the CPU FlexAttention computes no gradients.
    mask = block_mask(batch["parts"])
    names = ("input_ids", "position_ids", "logits_to_keep")
    with torch.no_grad():
        inputs = {name: batch[name] for name in names}
        logits = model.network(**inputs, attention_mask=mask, use_cache=False).logits[0]
        loss = torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="sum")
        losses = [summed_loss(model.network, collate_heads([r])) for r in fill_rows(groups, 0)]
    assert len(losses) == 2
    assert float(loss) == pytest.approx(float(sum(losses)), rel=1e-5)


def test_out_of_memory_error_with_shared_heads_advises_only_compatible_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = import_module("torch")

    def run_out_of_memory(*_arguments: Any, **_settings: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr("trl.trainer.sft_trainer.SFTTrainer.train", run_out_of_memory)
    data, settings = write_set(tmp_path / "set", 4, 2), training(steps=1, shared_heads=True)
    with pytest.raises(InputError, match=r"Lower training\.row_tokens") as caught:
        train(MODEL, ADAPTER, settings, data, tmp_path / "model")
    assert "gradient_checkpointing" not in str(caught.value)
