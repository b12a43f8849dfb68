"""Loads causal language models, from safetensors only and without remote code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import CasewrightError, DependencyError, InputError, one_line
from casewright.extensions import missing_package
from casewright.planner.language_model.adapter import merge_adapter
from casewright.planner.language_model.card import check_card
from casewright.planner.language_model.device import (
    check_names,
    fastest_dtype,
    find_device,
    find_dtype,
)
from casewright.planner.language_model.language_model import LanguageModel
from casewright.planner.language_model.smollm2 import quiet_transformers
from casewright.planner.language_model.source import CONFIG, ModelSource, find_source, read_json
from casewright.stores.encoders.onnx_export import EXPORT_LOCK

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel

#: Files from which a tokenizer can be loaded; the first that exists is used.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json")


def load_language_model(
    name: str | Path,
    *,
    adapter: str | Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
    title: str | None = None,
) -> LanguageModel:
    """Load a causal language model for planning.

    Args:
        name: Folder of a model, as ``save_pretrained`` writes it; name of a model at Hugging Face;
            ``smollm2``; or folder or name of a PEFT adapter, whose configuration names the model.
        adapter: Folder or name of a PEFT adapter to merge into the model.
        device: ``cpu``, ``cuda``, ``cuda:1`` or ``mps``; by default the first CUDA GPU, else the
            CPU.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``int8`` for weights in 8 bits on a CPU;
            by default bfloat16 on CUDA and float32 elsewhere.
        title: Name of the loaded model; by default ``name``, with ``adapter`` if there is one.

    Raises:
        InputError: The model, adapter, device or dtype does not exist; the model has no
            safetensors, needs remote code, or cannot decode plans; its files are damaged; its
            tokenizer or chat template cannot be used; or it was trained with another prompt.
        DependencyError: A package that the model needs is not installed.
    """
    check_names(device, dtype)
    network_device = find_device(device)
    source = find_source(name, adapter)
    check_card(source)
    network_dtype = find_dtype(dtype, network_device)
    title = title or (str(name) if adapter is None else f"{name} + {adapter}")
    # The dtype is part of the identity, since cached key/value states depend on it.
    identity = f"{source.identity()} {network_dtype}"
    return load_source(source, title, network_device, network_dtype, identity=identity)


def load_source(
    source: ModelSource,
    title: str,
    device: torch.device,
    dtype: torch.dtype,
    settings: Mapping[str, Any] | None = None,
    *,
    identity: str | None = None,
) -> LanguageModel:
    """Load a model from its folders, without a check of its card.

    Args:
        settings: Further arguments of ``from_pretrained``.
        identity: See ``LanguageModel``; ``None`` if the weights will be trained.

    For errors see ``load_language_model``.
    """
    with EXPORT_LOCK:
        try:
            with quiet_transformers():
                network, tokenizer = _load(source, device, dtype, settings or {})
                _check_network(network)
                return LanguageModel(title, network, tokenizer, identity=identity)
        except CasewrightError:
            raise
        except ImportError as error:
            raise missing_package(error) or DependencyError(
                f"Language model {title!r} needs a package that is not installed: "
                f"{one_line(error).rstrip('.')}."
            ) from error
        except Exception as error:
            raise InputError(
                f"Language model {title!r} could not be loaded: {one_line(error).rstrip('.')}. "
                "Give a causal language model in safetensors, as save_pretrained writes it."
            ) from error


def _load(
    source: ModelSource, device: torch.device, dtype: torch.dtype, settings: Mapping[str, Any]
) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = source.base
    check_base(base)
    if [f for f in TOKENIZER_FILES if (source.tokenizer / f).is_file()] == ["tekken.json"]:
        raise InputError(
            f"{str(source.tokenizer)!r} has only Mistral's tekken.json, which has no chat "
            "template. Add the tokenizer.json and tokenizer_config.json of the same model."
        )
    # Grammars cannot use the tokenizer of Mistral's own library, which would be the default.
    tokenizer: Any = AutoTokenizer.from_pretrained(
        source.tokenizer, trust_remote_code=False, mistral_format=False
    )
    loader: Any = AutoModelForCausalLM
    network, info = loader.from_pretrained(
        base,
        dtype=fastest_dtype(device) if dtype == torch.int8 else dtype,
        use_safetensors=True,
        trust_remote_code=False,
        # Weights of another shape get random values here, and are reported below.
        ignore_mismatched_sizes=True,
        output_loading_info=True,
        **{"attn_implementation": "sdpa", **settings},
    )
    missing = sorted({*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])})
    if missing:
        raise InputError(
            f"{str(base)!r} lacks {len(missing)} of the network's weights, or has them in another "
            f"shape, among them {missing[0]}: it is damaged or not a {type(network).__name__}. "
            "Use a complete causal language model."
        )
    # A network that was quantised during loading is on its device already and cannot be moved.
    if network.device != device:
        network = network.to(device)
    if source.adapter:
        network = merge_adapter(network, source.adapter)
    if dtype == torch.int8:
        from casewright.planner.language_model.int8_network import quantise_linear

        network = quantise_linear(network)
    return network, tokenizer


def check_base(base: Path) -> PretrainedConfig:
    """Check a base model without reading its weights, and return its configuration.

    Raise ``InputError`` if the model cannot decode plans, needs remote code, or has no safetensors.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig

    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(base, trust_remote_code=False)
    except ValueError as error:
        if "auto_map" not in read_json(base / CONFIG):
            raise
        raise InputError(
            f"{str(base)!r} needs remote code, which is not run. "
            "Take a model of a family that transformers knows, such as Mistral."
        ) from error
    model_type = config.model_type
    network_class: Any = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if network_class is None or getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{str(base)!r} is not a causal language model ({model_type}). Use one.")
    if getattr(network_class, "_is_stateful", False):
        raise _states_error(network_class.__name__)
    if not any(base.glob("*.safetensors")):
        raise InputError(
            f"{str(base)!r} has no weights as safetensors. Pickles (*.bin) could run code when "
            "they are read, and are not loaded. If you trust the model's author, convert it once: "
            'python -c "from transformers import AutoModelForCausalLM as M; '
            f"M.from_pretrained({str(base)!r}, use_safetensors=False)"
            f'.save_pretrained({str(base)!r})"'
        )
    return config


def _check_network(network: PreTrainedModel) -> None:
    """Raise ``InputError`` if a network cannot decode plans.

    Decoding caches the key/value states of a prompt's prefix, and truncates the cache after a plan.
    States of state-space layers or convolutions cannot be truncated. An encoder has no states.
    """
    import torch
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    token = torch.zeros((1, 1), dtype=torch.long, device=network.device)
    try:
        with torch.no_grad():
            output = network(input_ids=token, position_ids=token, use_cache=True)
    except Exception as error:
        raise InputError(
            f"The network ({type(network).__name__}) cannot be called with tokens and "
            f"their positions: {one_line(error).rstrip('.')}. Take a model such as Mistral, Llama "
            "or Qwen."
        ) from error
    layers = getattr(getattr(output, "past_key_values", None), "layers", ())
    key_value_layers = (DynamicLayer, DynamicSlidingWindowLayer)
    if not layers or any(type(layer) not in key_value_layers for layer in layers):
        raise _states_error(type(network).__name__)


def _states_error(class_name: str) -> InputError:
    return InputError(
        f"The network ({class_name}) has states other than keys and values, or none: it is an "
        "encoder, or a state-space or hybrid model. Use a model such as Mistral, Llama or Qwen."
    )
