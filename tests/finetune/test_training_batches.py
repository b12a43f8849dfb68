"""The tokens, labels and gradients of TRL's trainer."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from casewright.finetune.example import TrainingExample
from casewright.finetune.recipe.training_section import LoraSection
from casewright.finetune.training.log import silence
from casewright.finetune.training.placement import find_placement
from casewright.finetune.training.tokens import token_row, token_rows
from casewright.finetune.training.trainer import make_trainer, mean_token_loss
from casewright.planner import Prompt
from casewright.planner.language_model import LanguageModel
from tests.support.tiny_mistral import tiny_mistral
from tests.support.trained import MODEL, plan_examples, training

#: A head with one tool keeps prompts and rows short.
HEAD = "Tools:\nfind(query: span)"
EXAMPLES = [
    TrainingExample(f"e{n}", "plan", "s", Prompt(HEAD if n % 2 else "", f"Question: {q}\nPlan:"), p)
    for n, (q, p) in enumerate(
        [
            ("do you sell wool socks", 's1 = find(query="wool socks")'),
            ("a lamp </s> please", 's1 = find(query="lamp </s>")\ns2 = no_evidence()'),
            ("hello there", "s1 = no_evidence()"),
            ("blue kettles, or red ones?", 's1 = find(query="blue kettles")'),
        ]
    )
]
LORA = LoraSection(r=4, alpha=8, dropout=0.0)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return tiny_mistral()


def build_trainer(model: LanguageModel, folder: Path, **settings: Any) -> Any:
    rows = token_rows(EXAMPLES, model, 512).rows
    section = training(**settings)
    with silence():
        return make_trainer(
            model, rows, rows, (LORA, section), find_placement(MODEL, section), folder
        )


def batches(trainer: Any) -> list[dict[str, Any]]:
    return [dict(batch) for batch in trainer.get_train_dataloader()]


def test_training_tokens_of_an_example_equal_those_of_serving(model: LanguageModel) -> None:
    for example in [*EXAMPLES, *plan_examples()[:20]]:
        row = token_row(example, model)
        prompt = model.encode(example.prompt)
        tokens = [*prompt.head, *prompt.tail]
        assert row.input_ids[: len(tokens)] == tokens
        assert row.completion_mask == [0] * len(tokens) + [1] * (len(row.input_ids) - len(tokens))
        completion = row.input_ids[len(tokens) :]
        assert completion[-1] == model.ends[0]
        assert not {*model.ends} & {*completion[:-1]}
        assert model.decode(completion[:-1]) == example.completion


def test_too_long_example_is_omitted_and_counted_but_never_cut(
    model: LanguageModel,
) -> None:
    lengths = [len(token_row(example, model).input_ids) for example in EXAMPLES]
    limit = sorted(lengths)[1]
    result = token_rows(EXAMPLES, model, limit)
    fitting = [n <= limit for n in lengths]
    assert [len(row.input_ids) for row in result.rows] == [n for n in lengths if n <= limit]
    assert result.left_out == [e.id for e, fit in zip(EXAMPLES, fitting, strict=True) if not fit]
    assert (result.longest, result.token_count) == (
        max(lengths),
        sum(n for n in lengths if n <= limit),
    )


@pytest.mark.parametrize("packing", [False, True], ids=["padded", "packed"])
def test_training_loss_covers_only_completion_and_end_token(
    packing: bool, model: LanguageModel, tmp_path: Path
) -> None:
    trainer = build_trainer(tiny_mistral(), tmp_path, packing=packing, max_length=256)
    expected = sorted(
        tuple(t for t, m in zip(row.input_ids, row.completion_mask, strict=True) if m)
        for row in token_rows(EXAMPLES, model, 512).rows
    )
    supervised = []
    for batch in batches(trainer):
        for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
            span: list[int] = []
            for token, label in zip(ids.tolist(), labels.tolist(), strict=True):
                if label == -100:
                    if span:
                        supervised.append(tuple(span))
                    span = []
                else:
                    assert label == token
                    span.append(label)
            if span:
                supervised.append(tuple(span))
    assert sorted(supervised) == expected


def test_packed_examples_do_not_attend_to_each_other(model: LanguageModel, tmp_path: Path) -> None:
    torch: Any = import_module("torch")
    trainer = build_trainer(tiny_mistral(), tmp_path, packing=True, max_length=512)
    (batch,) = batches(trainer)
    starts = (batch["position_ids"] == 0).sum()
    assert (batch["input_ids"].shape[0], int(starts)) == (1, len(EXAMPLES))

    def summed_loss(**inputs: Any) -> float:
        with torch.no_grad():
            output = trainer.model(**inputs, use_cache=False, fused_lm_head=True)
        return -float(output.log_probs.double().sum())

    trainer.model.eval()
    separate = 0.0
    for row in token_rows(EXAMPLES, model, 512).rows:
        pairs = zip(row.input_ids, row.completion_mask, strict=True)
        labels = torch.tensor([[t if m else -100 for t, m in pairs]])
        separate += summed_loss(input_ids=torch.tensor([row.input_ids]), labels=labels)
    packed = summed_loss(**batch)
    tokens = int((batch["labels"] != -100).sum())
    assert packed / tokens == pytest.approx(separate / tokens, abs=1e-5)
    # The control: with consecutive positions, the examples attend to each other.
    batch["position_ids"] = torch.arange(batch["input_ids"].shape[1])[None]
    assert abs(summed_loss(**batch) - separate) / tokens > 1e-4


def test_validation_loss_does_not_depend_on_batching(tmp_path: Path) -> None:
    losses = []
    for number, settings in enumerate(
        [{"batch_per_device": 1}, {"batch_per_device": 3}, {"packing": True, "max_length": 256}]
    ):
        trainer = build_trainer(tiny_mistral(), tmp_path / str(number), **settings)
        losses.append(mean_token_loss(trainer, trainer.eval_dataset))
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-5)
    assert losses[0] > 1


def test_gradients_accumulated_over_eight_batches_equal_those_of_one_batch(tmp_path: Path) -> None:
    results = []
    for batch, accumulation in ((8, 1), (1, 8)):
        trainer = build_trainer(
            tiny_mistral(),
            tmp_path / str(batch),
            batch_per_device=batch,
            gradient_accumulation=accumulation,
            steps=3,
            save_steps=100,
        )
        # Examples of different lengths, since a mean of batch means would weigh them differently.
        datasets: Any = import_module("datasets")
        trainer.train_dataset = datasets.concatenate_datasets([trainer.train_dataset] * 2)
        initial = weights(trainer)
        with silence():
            trainer.train()
        results.append((initial, weights(trainer)))
    (start, first), (_, other) = results
    change = max(float((first[name] - start[name]).abs().max()) for name in first)
    difference = max(float((first[name] - other[name]).abs().max()) for name in first)
    assert change > 1e-3
    assert difference < 1e-6


def weights(trainer: Any) -> dict[str, Any]:
    parameters = trainer.model.named_parameters()
    return {name: p.detach().clone() for name, p in parameters if p.requires_grad}


def test_trained_layers_stay_in_float32_when_the_model_is_in_bfloat16(tmp_path: Path) -> None:
    placement = find_placement(MODEL.model_copy(update={"dtype": "bfloat16"}), training())
    model = tiny_mistral()
    model.network.to(placement.dtype)
    lora = LORA.model_copy(update={"modules_to_save": ("lm_head",)})
    rows = token_rows(EXAMPLES, model, 512).rows
    with silence():
        trainer: Any = make_trainer(model, rows, [], (lora, training()), placement, tmp_path)
    dtypes = {
        (p.requires_grad, str(p.dtype).removeprefix("torch.")) for p in trainer.model.parameters()
    }
    assert dtypes == {(False, "bfloat16"), (True, "float32")}
