"""Unusable models, adapters and settings are refused with the cause and a remedy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import CasewrightError, DependencyError, InputError
from casewright.planner.language_model import load_language_model
from tests.support.tiny_bert import save_tiny_bert
from tests.support.tiny_mistral import byte_level_tokenizer, save_tiny, tiny_mistral

SMALL = {"vocab_size": 512, "hidden_size": 16, "num_hidden_layers": 2}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("saved"))


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """Return a copy of a model's folder, to damage."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"name": "./nowhere"}, "no folder './nowhere'"),
        ({"name": Path("nowhere")}, "no folder 'nowhere'"),
        ({"name": "no/such-model"}, "could not be fetched from Hugging Face"),
        ({"name": "not a name"}, "could not be fetched from Hugging Face"),
        ({"name": " "}, "name is empty"),
        ({"dtype": "float8"}, "no dtype 'float8'. Give float32"),
        ({"dtype": "nn"}, "no dtype 'nn'"),
        ({"device": "gpu"}, "no device 'gpu'. Give cpu"),
        ({"device": "cuda:-1"}, "no device 'cuda:-1'"),
        ({"device": "cuda:99"}, "machine has no device 'cuda:99'"),
        ({"adapter": "./nowhere"}, "no folder './nowhere'"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_unknown_model_dtype_device_or_adapter_is_refused(
    saved: Path, settings: dict[str, Any], cause: str
) -> None:
    with pytest.raises(InputError, match=cause):
        load_language_model(**{"name": saved, **settings})


def remove_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def break_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def pickle_weights(folder: Path) -> None:
    torch: Any = import_module("torch")
    torch.save(tiny_mistral().network.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def truncate_weights(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])


def remove_weight(folder: Path) -> None:
    safetensors: Any = import_module("safetensors.torch")
    weights = safetensors.load_file(folder / "model.safetensors")
    weights.pop("model.layers.0.mlp.up_proj.weight")
    safetensors.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def change_shape(folder: Path) -> None:
    edit(folder / "config.json", intermediate_size=48)


def require_remote_code(folder: Path) -> None:
    edit(
        folder / "config.json",
        model_type="mine",
        auto_map={"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"},
    )
    (folder / "mine.py").write_text("raise SystemExit('this code was run')")


def quantise(folder: Path) -> None:
    quantised = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    edit(folder / "config.json", quantization_config=quantised)


def remove_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def leave_only_tekken(folder: Path) -> None:
    remove_tokenizer(folder)
    (folder / "tekken.json").write_text("{}")


def break_template(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ raise_exception('never') }}")


def add_adapter_config(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")


def save_encoder(folder: Path) -> None:
    remove_tokenizer(folder)
    (folder / "model.safetensors").unlink()
    save_tiny_bert(folder, ["a"])


def build(network: str, config: str, **settings: Any) -> Callable[[Path], None]:
    """Return a function that replaces the model by another network."""

    def save(folder: Path) -> None:
        transformers: Any = import_module("transformers")
        configuration = getattr(transformers, config)(**{**SMALL, **settings})
        getattr(transformers, network)(configuration).save_pretrained(folder)

    save.__name__ = network
    return save


seq2seq = build("T5ForConditionalGeneration", "T5Config", d_model=16, d_ff=16, num_layers=1, d_kv=8)
two_sided = build("BertLMHeadModel", "BertConfig", num_attention_heads=2, intermediate_size=16)
state_space = build("MambaForCausalLM", "MambaConfig", state_size=4)
hybrid = build(
    "Lfm2ForCausalLM",
    "Lfm2Config",
    num_attention_heads=2,
    num_key_value_heads=1,
    intermediate_size=16,
    layer_types=["conv", "full_attention"],
)


def edit(file: Path, **settings: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (remove_config, "holds no config.json or adapter_config.json"),
        (break_config, "could not be loaded.*config.json"),
        (pickle_weights, "no weights as safetensors.*convert it"),
        (truncate_weights, "could not be loaded"),
        (remove_weight, "lacks 1 of .* among them model.layers.0.mlp.up_proj.weight"),
        (change_shape, "lacks 6 .* shape, among them model.layers.0.mlp.down_proj.weight"),
        (require_remote_code, "needs remote code"),
        (quantise, "bitsandbytes"),
        (remove_tokenizer, "could not be loaded"),
        (leave_only_tekken, "only Mistral.s tekken.json"),
        (break_template, "chat template cannot be rendered"),
        (add_adapter_config, "both a model .* and an adapter"),
        (seq2seq, "not a causal language model .t5."),
        (save_encoder, "lacks .* of the network's weights"),
        (two_sided, "states other than keys and values"),
        (state_space, "states other than keys and values"),
        (hybrid, "states other than keys and values"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_damaged_or_unsuitable_model_folder_is_refused(
    folder: Path,
    damage: Callable[[Path], None],
    cause: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    damage(folder)
    capfd.readouterr()
    with pytest.raises(CasewrightError, match=cause) as refused:
        load_language_model(folder)
    assert isinstance(refused.value, InputError | DependencyError)
    assert len(str(refused.value)) < 700
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def lora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_lora(tmp_path_factory.mktemp("lora"))


def save_lora(folder: Path, **model: Any) -> Path:
    peft: Any = import_module("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "up_proj"], task_type="CAUSAL_LM")
    peft.get_peft_model(tiny_mistral(**model).network, config).save_pretrained(folder)
    edit(folder / "adapter_config.json", base_model_name_or_path="./elsewhere")
    return folder


def pickle_lora(lora: Path) -> None:
    (lora / "adapter_model.safetensors").rename(lora / "adapter_model.bin")


def truncate_lora(lora: Path) -> None:
    file = lora / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def change_task(lora: Path) -> None:
    edit(lora / "adapter_config.json", task_type="SEQ_CLS")


def change_width(lora: Path) -> None:
    save_lora(lora, hidden=64)


def add_layer(lora: Path) -> None:
    save_lora(lora, layers=3)


def remove_layer(lora: Path) -> None:
    save_lora(lora, layers=1)


def break_lora_config(lora: Path) -> None:
    (lora / "adapter_config.json").write_text("[]")


def save_prompt_tuning(lora: Path) -> None:
    peft: Any = import_module("peft")
    config = peft.PromptTuningConfig(num_virtual_tokens=2, task_type="CAUSAL_LM")
    peft.get_peft_model(tiny_mistral().network, config).save_pretrained(lora)


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (pickle_lora, "pickle"),
        (truncate_lora, "could not be added"),
        (change_task, "for the task SEQ_CLS"),
        (change_width, "could not be added.*size mismatch"),
        (add_layer, "do not fit.*is not in the network"),
        (remove_layer, "do not fit.*is not in the adapter"),
        (break_lora_config, "holds no JSON object"),
        (save_prompt_tuning, "changes prompts, not weights"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_damaged_or_unfitting_adapter_is_refused(
    saved: Path, lora: Path, tmp_path: Path, damage: Callable[[Path], None], cause: str
) -> None:
    adapter = Path(shutil.copytree(lora, tmp_path / "adapter"))
    damage(adapter)
    with pytest.raises(InputError, match=cause):
        load_language_model(saved, adapter=adapter)


def test_adapter_without_its_base_model_is_refused_asking_for_both_folders(lora: Path) -> None:
    with pytest.raises(InputError, match=r"is for the model './elsewhere'.*folders of both"):
        load_language_model(lora)


def test_an_adapter_on_an_adapter_is_refused(lora: Path) -> None:
    with pytest.raises(InputError, match="is an adapter itself"):
        load_language_model(lora, adapter=lora)


def test_network_with_fewer_tokens_than_its_tokenizer_is_refused(folder: Path) -> None:
    byte_level_tokenizer(512).save_pretrained(folder)
    save_tiny(folder, vocab=300)
    byte_level_tokenizer(512).save_pretrained(folder)
    with pytest.raises(InputError, match="tokens 0 to 299"):
        load_language_model(folder)
