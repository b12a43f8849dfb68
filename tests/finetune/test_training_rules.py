"""Recipes that no training can use are refused when they are read; errors name the field."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from casewright.errors import DependencyError, InputError
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.training_section import ModelSection, TrainingSection
from casewright.finetune.training.placement import find_placement

FOUR_BIT = '[model]\nbase = "m"\nquantisation = "4bit"'
#: Unusable recipes, each with parts of its error message: first the field.
UNUSABLE = {
    "no base": ('[model]\nbase = ""', ["model.base", "at least 1 character"]),
    "device": ('[model]\ndevice = "gpu"', ["model.device", "cpu, cuda"]),
    "dtype": ('[model]\ndtype = "float16"', ["model.dtype", "'bfloat16'"]),
    "settings of a new model for another": (
        '[model]\nbase = "m"\n[model.new]\nlayers = 2',
        ["model", "[model.new]", 'base = "new"'],
    ),
    "heads that do not divide": (
        "[model.new]\nhidden = 100\nheads = 8",
        ["model.new", "hidden (100)", "hidden = 96"],
    ),
    "key and value heads": (
        "[model.new]\nhidden = 96\nheads = 6\nkv_heads = 4",
        ["model.new", "kv_heads (4)", "kv_heads = 6"],
    ),
    "vocabulary": (
        "[model.new]\nvocabulary = 100",
        ["model.new.vocabulary", "greater than or equal to 260"],
    ),
    "4bit on the CPU": (f'{FOUR_BIT}\ndevice = "cpu"', ["model.quantisation", "CUDA", '"none"']),
    "4bit and a new model": (
        '[model]\nquantisation = "4bit"',
        ["model.quantisation", 'model.quantisation = "none"'],
    ),
    "method": ('[lora]\nmethod = "dora"', ["lora.method", "'lora'"]),
    "rank": ("[lora]\nr = 0", ["lora.r", "greater than or equal to 1"]),
    "dropout": ("[lora]\ndropout = 1.0", ["lora.dropout", "less than 1"]),
    "an adapter on what writes tokens": (
        '[lora]\ntarget_modules = ["q_proj", "lm_head"]',
        ["lora", "lm_head", 'modules_to_save = ["lm_head"]'],
    ),
    "no layers": ("[lora]\ntarget_modules = []", ["lora", "target_modules", '"all-linear"']),
    "a layer twice": (
        '[lora]\ntarget_modules = ["q_proj"]\nmodules_to_save = ["q_proj"]',
        ["lora", "'q_proj'", "Leave it out"],
    ),
    "a shared layer": (
        '[lora]\nmodules_to_save = ["embed_tokens"]',
        ["lora.modules_to_save", "model.new.tied = false"],
    ),
    "epochs and steps": (
        "[training]\nepochs = 1\nsteps = 10",
        ["training", "epochs and steps", "Remove one"],
    ),
    "learning rate": (
        "[training]\nlearning_rate = 0",
        ["training.learning_rate", "greater than 0"],
    ),
    "epochs without end": (
        "[training]\nepochs = inf",
        ["training.epochs", "less than or equal to 10000"],
    ),
    "steps that nothing counts": (
        "[training]\nsteps = 99999999999999999999",
        ["training.steps", "less than or equal to 1000000000"],
    ),
    "a layer without a name": (
        '[lora]\ntarget_modules = [""]',
        ["lora.target_modules", "at least 1 character"],
    ),
    "batch": (
        "[training]\nbatch_per_device = 0",
        ["training.batch_per_device", "greater than or equal to 1"],
    ),
    "checkpoints": (
        "[training]\ncheckpoints_kept = 1",
        ["training.checkpoints_kept", "greater than or equal to 2"],
    ),
    "warm-up": ("[training]\nwarmup = 100", ["training.warmup", "less than 1"]),
    "packing that cuts": (
        '[training]\npacking_strategy = "wrapped"',
        ["training.packing_strategy", '"wrapped"', "'bfd'"],
    ),
    "a row too long to pack": (
        '[model]\nbase = "m"\n[training]\npacking = true\nattention = "sdpa"\n'
        "max_length = 8192\nbatch_per_device = 8",
        ["training.batch_per_device", "65536", "training.gradient_accumulation"],
    ),
    "texts longer than positions": (
        "[model.new]\npositions = 1024",
        ["training.max_length (2048)", "model.new.positions"],
    ),
    "FlashAttention on the CPU": (
        '[model]\ndevice = "cpu"\n[training]\nattention = "flash_attention_2"',
        ["training.attention", "CUDA", '"sdpa"'],
    ),
    "FlashAttention in 32 bits": (
        '[model]\ndtype = "float32"\n[training]\nattention = "flash_attention_2"',
        ["training.attention", 'model.dtype = "bfloat16"'],
    ),
    "an optimiser of CUDA's": (
        '[model]\ndevice = "cpu"\n[training]\noptimiser = "adamw_8bit"',
        ["training.optimiser", "CUDA", '"adamw"'],
    ),
    "a misspelt setting": ("[training]\nepoch = 3", ["training.epoch", "epochs"]),
}


@pytest.mark.parametrize(("text", "words"), UNUSABLE.values(), ids=list(UNUSABLE))
def test_unusable_recipe_is_refused_naming_the_field_and_the_remedy(
    text: str, words: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(f'[data]\ndomain = "shopping"\n{text}\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Recipe.read(file)
    message = str(caught.value).removeprefix(f"{file}: ")
    assert message.startswith(words[0])
    assert [word for word in words if word not in message] == []


def test_unusable_recipe_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text('[data]\ndomain = "shopping"\n[model.new]\npositions = 64\n', encoding="utf-8")
    code = (
        "import sys, pathlib\n"
        "from casewright.finetune.recipe.recipe import Recipe\n"
        "try: Recipe.read(pathlib.Path(sys.argv[1]))\n"
        "except ValueError as error: print(error)\n"
        "print(sorted({'torch', 'transformers', 'trl', 'peft', 'datasets'} & {*sys.modules}))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    message, imported = process.stdout.splitlines()
    assert "training.max_length (2048)" in message
    assert imported == "[]"


def hide_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


@pytest.mark.parametrize(
    ("model", "training", "field"),
    [
        (ModelSection(base="m", quantisation="4bit"), TrainingSection(), "model.quantisation"),
        (ModelSection(), TrainingSection(optimiser="adamw_8bit"), "training.optimiser"),
        (ModelSection(), TrainingSection(attention="flash_attention_2"), "training.attention"),
        (ModelSection(device="cuda"), TrainingSection(), "model.device: .*'cuda'"),
    ],
    ids=["4bit", "optimiser", "attention", "device"],
)
def test_find_placement_refuses_settings_that_need_cuda_without_a_gpu(
    model: ModelSection,
    training: TrainingSection,
    field: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hide_gpu(monkeypatch)
    with pytest.raises(InputError, match=field):
        find_placement(model, training)


def test_missing_training_package_raises_an_error_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find_spec = find_placement.__globals__["find_spec"]
    monkeypatch.setitem(
        find_placement.__globals__,
        "find_spec",
        lambda name: None if name == "trl" else find_spec(name),
    )
    with pytest.raises(DependencyError, match=r"pip install 'casewright\[finetune\]'"):
        find_placement(ModelSection(), TrainingSection())
