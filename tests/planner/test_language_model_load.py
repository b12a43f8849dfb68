"""Loading language models and adapters from folders and from the cache of Hugging Face."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from casewright.planner import Prompt
from casewright.planner.language_model import LanguageModel, load_language_model
from tests.support.tiny_adapter import save_tiny_adapter
from tests.support.tiny_mistral import byte_level_tokenizer, save_tiny, tiny_mistral

TOKENS = [[5, 6, 7, 8]]


def logits(network: Any) -> Any:
    import torch

    with torch.no_grad():
        return network(input_ids=torch.tensor(TOKENS)).logits.float()


def same_logits(network: Any, other: Any, tolerance: float = 1e-5) -> bool:
    import torch

    return torch.allclose(logits(network), logits(other), atol=tolerance)


def llama_network() -> Any:
    transformers: Any = import_module("transformers")
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=512,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
        )
    )


def gpt2_network() -> Any:
    transformers: Any = import_module("transformers")
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=512, n_embd=16, n_layer=1, n_head=2)
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a random LoRA adapter that names its base model by a relative path."""
    return save_tiny_adapter(tmp_path_factory.mktemp("adapter"), f"../../{base.name}")


def set_base(adapter: Path, base: str | None) -> None:
    file = adapter / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"base_model_name_or_path": base}))


def test_loaded_language_model_equals_the_saved_one_and_prints_nothing(
    base: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    loaded = load_language_model(base)
    assert capfd.readouterr() == ("", "")
    assert same_logits(loaded.network, tiny_mistral().network, 0)
    assert (loaded.name, loaded.device.type, str(loaded.network.dtype)) == (
        str(base),
        "cpu",
        "torch.float32",
    )
    assert not loaded.network.training
    assert not any(parameter.requires_grad for parameter in loaded.network.parameters())


@pytest.mark.parametrize("build", [llama_network, gpt2_network])
def test_llama_and_gpt2_models_load(build: Callable[[], Any], tmp_path: Path) -> None:
    network = build()
    network.save_pretrained(tmp_path)
    byte_level_tokenizer().save_pretrained(tmp_path)
    loaded = load_language_model(str(tmp_path))
    assert same_logits(loaded.network, network.eval(), 0)
    assert loaded.grammar_tokenizer.vocab_size == 512


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_language_model_is_loaded_in_the_requested_dtype(base: Path, dtype: str) -> None:
    loaded = load_language_model(base, device="cpu", dtype=dtype)
    assert {str(p.dtype) for p in loaded.network.parameters()} == {f"torch.{dtype}"}
    assert same_logits(loaded.network, tiny_mistral().network, 0.05)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.1)])
def test_adapter_is_merged_into_the_base_model(
    base: Path, adapter: Path, dtype: str, tolerance: float
) -> None:
    peft: Any = import_module("peft")
    expected = peft.PeftModel.from_pretrained(tiny_mistral().network, adapter).eval()
    loaded = load_language_model(base, adapter=adapter, dtype=dtype)
    assert same_logits(loaded.network, expected, tolerance)
    assert not same_logits(loaded.network, tiny_mistral().network, tolerance)
    assert type(loaded.network).__name__ == "MistralForCausalLM"
    assert loaded.name == f"{base} + {adapter}"


def test_adapter_alone_is_loaded_with_the_base_model_that_it_names(
    base: Path, adapter: Path
) -> None:
    expected = load_language_model(base, adapter=adapter)
    assert same_logits(load_language_model(adapter).network, expected.network, 0)


def test_tokenizer_of_an_adapter_replaces_that_of_the_base_model(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.chat_template = "{{ bos_token }}Q {{ messages[0]['content'] }} A"
    shutil.copytree(adapter, tmp_path, dirs_exist_ok=True)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_language_model(base, adapter=tmp_path)
    encoded = loaded.encode(Prompt("x", "y"))
    assert loaded.tokenizer.decode([*encoded.head, *encoded.tail]) == "<s>Q x\n\ny A"


def test_cached_hugging_face_models_and_adapters_load_by_name_without_network(
    base: Path, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    copy_to_cache(tmp_path, "someone/tiny", base)
    set_base(copy_to_cache(tmp_path, "someone/lora", adapter), "someone/tiny")
    loaded: LanguageModel = load_language_model("someone/tiny")
    assert same_logits(loaded.network, tiny_mistral().network, 0)
    expected = load_language_model(base, adapter=adapter)
    for names in ({"name": "someone/tiny", "adapter": "someone/lora"}, {"name": "someone/lora"}):
        assert same_logits(load_language_model(**names).network, expected.network, 0)


def copy_to_cache(cache: Path, name: str, folder: Path) -> Path:
    """Copy a folder to the cache entry of a downloaded model of that name."""
    entry = cache / f"models--{name.replace('/', '--')}"
    (entry / "refs").mkdir(parents=True)
    (entry / "refs" / "main").write_text("0" * 40)
    return Path(shutil.copytree(folder, entry / "snapshots" / ("0" * 40)))
