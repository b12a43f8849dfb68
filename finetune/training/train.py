"""Training of a planner: from data and a recipe's sections to an adapter or a merged model."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.examples.training_set import read_training_set
from casewright.finetune.recipe.training_section import (
    LoraSection,
    ModelSection,
    TrainingSection,
    check_together,
)
from casewright.finetune.training import base
from casewright.finetune.training.log import LOG, check_learned, reporting_callback, silence
from casewright.finetune.training.model_card import save_adapter, save_merged, write_cards
from casewright.finetune.training.placement import Placement, find_placement, rank
from casewright.finetune.training.run import BASE, RUN, Run, checkpoints_of, last_complete, steps_of
from casewright.finetune.training.tokens import TokenRows, token_rows
from casewright.finetune.training.trainer import figures_of, make_trainer
from casewright.planner.language_model import LanguageModel
from casewright.planner.language_model.card import read_card
from casewright.planner.language_model.source import ModelSource
from casewright.stores.progress import note
from casewright.stores.whole_file import write_whole


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The folder of a trained adapter, the folder of a merged model if any, and the card."""

    folder: Path
    merged: Path | None
    card: Mapping[str, Any]


def train(
    model: ModelSection,
    lora: LoraSection,
    training: TrainingSection,
    data: Path,
    output: Path,
    *,
    start: Path | None = None,
    resume: bool = False,
    merge: bool = False,
    minutes: float | None = None,
    progress: bool | None = None,
) -> TrainingResult:
    """Train a planner with LoRA, as REAPER does (Joshi et al. 2024).

    On the same machine, the same arguments give the same weights (on a CPU to the last bit). A
    killed and resumed training gives the same weights as an uninterrupted training.

    Args:
        start: The folder of an adapter with the base, rank, alpha and layers of the recipe. The
            training starts from the adapter's weights; optimiser and schedule start anew.
        resume: Resume from the last complete checkpoint, or start if there is none. If the training
            is finished, only return its result.
        merge: Also write the adapter merged into its base.
        minutes: Stop after this time and save the model. The learning rate still follows the
            schedule of all planned steps; the card records their number.
        progress: Show a bar on stderr; ``None`` shows it on a terminal.

    Raises:
        InputError: No model is saved, because a section contradicts another one, the machine, the
            base, the data or the start adapter; the output folder cannot be written or holds other
            files; or the final loss is NaN, or higher than the first loss and that of a guess.
        DependencyError: A required package is not installed.
    """
    check_together(model, lora, training)
    examples = read_training_set(data)
    if not examples.train:
        raise InputError(f"{data} has no examples to train with. Make a larger set.")
    start_adapter = None if start is None else base.find_start(start, model, lora)
    run = Run(model, lora, training, examples, output, start_adapter)
    card = run.finished_card(resume=resume)
    source = None if card or model.new_base else base.find_base(model.base)
    placement = find_placement(model, training)
    with silence():
        if card is None:
            card = _train(run, source, placement, minutes, progress)
        merged = None
        if merge:
            with placement.main_process_first() as is_main:
                merged = save_merged(output, card, placement.save_dtype) if is_main else None
    # The card is returned as it would be read from its file.
    return TrainingResult(output, merged, json.loads(json.dumps(card)))


def _train(
    run: Run,
    source: ModelSource | None,
    placement: Placement,
    minutes: float | None,
    progress: bool | None,
) -> dict[str, Any]:
    started = time.perf_counter()
    model = _load_model(run, source, placement)
    train_tokens, validation_tokens = _encode_examples(run, model)
    sections = (run.lora, run.training)
    trainer = make_trainer(
        model, train_tokens.rows, validation_tokens.rows, sections, placement, run.checkpoints
    )
    if run.start is not None:
        base.load_start(trainer.model, run.start)
    with trainer.accelerator.main_process_first():
        checkpoint, damaged = last_complete(run.checkpoints)
        # The other processes run this block later and find no damaged checkpoints.
        for folder in damaged:
            note(f"{folder} is damaged, or was not finished, and is removed.")
            shutil.rmtree(folder)
    resumed_after = steps_of(checkpoint) if checkpoint else 0
    if checkpoint and rank() == 0:
        note(f"Resuming after step {resumed_after}.")
    # The checkpoint of a resumed training already has the first validation loss.
    trainer.args.eval_on_start = checkpoint is None
    log = run.output / LOG if rank() == 0 else None
    trainer.add_callback(reporting_callback(log, show=progress, minutes=minutes))
    import torch

    try:
        result = trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except torch.OutOfMemoryError as error:
        advice = "Lower training.row_tokens or training.batch_per_device."
        if not run.training.shared_heads:
            advice = (
                "Set training.gradient_checkpointing = true, or lower training.batch_per_device "
                "and raise training.gradient_accumulation, which makes the same steps."
            )
        message = f"{placement.device} has too little memory for this recipe. {advice}"
        raise InputError(message) from error
    loss_after = trainer.evaluate().get("eval_loss")
    loss_before = trainer.state.log_history[0].get("eval_loss")
    if rank() == 0:
        check_learned(loss_before, loss_after, model.network.config.vocab_size)
    metrics = {
        "validation_loss_before": loss_before,
        "validation_loss_after": loss_after,
        "resumed_after_steps": resumed_after,
        **figures_of(trainer, train_tokens, validation_tokens),
        "seconds": round(time.perf_counter() - started, 1),
        "seconds_training": round(result.metrics["train_runtime"], 1),
    }
    card = run.card(metrics, read_card(source.base) if source else None)
    if rank() == 0:
        save_adapter(run, trainer.model, model.tokenizer, placement.save_dtype)
        write_cards(run.output, card)
        shutil.rmtree(run.checkpoints)
    trainer.accelerator.wait_for_everyone()
    return card


def _load_model(run: Run, source: ModelSource | None, placement: Placement) -> LanguageModel:
    """Check the settings, prepare the output folder of a new training, and load the base."""
    base.check_settings(source, run.model, run.lora, run.training.max_length)
    with placement.main_process_first() as is_main:
        if is_main and not checkpoints_of(run.checkpoints):
            _prepare_output(run)
    four_bit = run.model.quantisation == "4bit"
    return base.load_base(
        source or ModelSource(run.output / BASE), run.model.base, placement, four_bit=four_bit
    )


def _prepare_output(run: Run) -> None:
    """Create the output folder with the training's fingerprint, and make the base if it is new."""
    try:
        for leftover in (run.checkpoints, run.output / BASE):
            shutil.rmtree(leftover, ignore_errors=True)
        run.checkpoints.mkdir(parents=True)
        text = json.dumps(run.fingerprint, ensure_ascii=False, indent=1)
        write_whole(run.checkpoints / RUN, text)
    except OSError as error:
        raise InputError(
            f"--output {run.output} cannot be written: {error.strerror}. "
            "Give a folder that you may write to."
        ) from error
    if run.model.new_base is not None:
        base.make_base(run.model.new_base, run.data.train, run.training.seed, run.output / BASE)


def _encode_examples(run: Run, model: LanguageModel) -> tuple[TokenRows, TokenRows]:
    """Return the token rows for training and validation, and report the examples left out."""
    length = run.training.max_length
    train_tokens = token_rows(
        run.data.train, model, length, supervise_shown_plans=run.training.loss == "plans"
    )
    if not train_tokens.rows:
        raise InputError(
            f"training.max_length ({length}): every example is longer; the longest has "
            f"{train_tokens.longest} tokens. Set training.max_length = {train_tokens.longest}."
        )
    validation_tokens = token_rows(run.data.validation, model, length)
    left_out = (*train_tokens.left_out, *validation_tokens.left_out)
    if left_out and rank() == 0:
        note(
            f"{len(left_out)} examples are longer than training.max_length ({length} tokens) and "
            f"are left out, among them {left_out[0]!r}; the longest has "
            f"{max(train_tokens.longest, validation_tokens.longest)} tokens."
        )
    return train_tokens, validation_tokens
