"""Loading a causal language model: from safetensors only, without code of its own."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import CasewrightError, DependencyError, InputError, told
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
from casewright.planner.language_model.network_check import check_network, other_states
from casewright.planner.language_model.source import CONFIG, Source, find_source, read_json
from casewright.stores.encoders.onnx_export import EXPORTING, quiet

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

#: Files that a tokenizer can be made of; the first is the one that is read where there are several.
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json")


def load_language_model(
    name: str | Path,
    *,
    adapter: str | Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
    title: str | None = None,
) -> LanguageModel:
    """Load a causal language model to plan with.

    Args:
        name: A model's folder, as ``save_pretrained`` writes it, or its name at Hugging Face. An
            adapter of PEFT will do too: the model is then the one that it names.
        adapter: An adapter of PEFT to add to it; a folder or a name as well.
        device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; by default CUDA's first where there is one.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``int8`` for weights in 8 bits on a CPU;
            by default bfloat16 on CUDA, float32 else.
        title: The model's ``name``; by default what it was asked for by.

    Raises:
        InputError: There is no such model, adapter, device or dtype; the model has no safetensors,
            needs code of its own, or is none that plans can be decoded with; its files are
            damaged; its tokenizer or chat template cannot be used; it was trained with another
            form of the prompt.
        DependencyError: A package that the model needs is not installed.
    """
    check_names(device, dtype)
    asked = str(name) if adapter is None else f"{name} + {adapter}"
    place = find_device(device)
    source = find_source(name, adapter)
    check_card(source)
    numbers = find_dtype(dtype, place)
    # 8-bit weights compute other states than those that they were made of.
    identity = f"{source.identity()} {numbers}"
    return load_source(source, title or asked, place, numbers, identity=identity)


def load_source(
    source: Source,
    title: str,
    device: torch.device,
    dtype: torch.dtype,
    settings: Mapping[str, Any] | None = None,
    *,
    identity: str | None = None,
) -> LanguageModel:
    """Load a model from its folders, whatever form of the prompt it was trained with.

    Args:
        source: Its folders.
        title: Its name.
        device: Where its network goes.
        dtype: Of its weights.
        settings: Further ones of ``from_pretrained``.
        identity: The model's; ``None`` where its weights will be trained.

    Raises:
        InputError: As ``load_language_model``.
        DependencyError: As ``load_language_model``.
    """
    with EXPORTING:
        try:
            with _silence():
                network, tokenizer = _load(source, device, dtype, settings or {})
                check_network(network)
                return LanguageModel(title, network, tokenizer, identity=identity)
        except CasewrightError:
            raise
        except ImportError as error:
            raise missing_package(error) or DependencyError(
                f"Language model {title!r} needs a package that is not installed: "
                f"{told(error).rstrip('.')}."
            ) from error
        except Exception as error:
            raise InputError(
                f"Language model {title!r} could not be loaded: {told(error).rstrip('.')}. "
                "Give a causal language model in safetensors, as save_pretrained writes it."
            ) from error


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep warnings, reports and progress of loading off the terminal; errors tell what matters."""
    # Before the streams are replaced: its log would keep the replacement.
    import transformers  # noqa: F401

    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with quiet():
            yield
    finally:
        logger.setLevel(level)


def _load(
    source: Source, device: torch.device, dtype: torch.dtype, settings: Mapping[str, Any]
) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = source.base
    check_base(base)
    if {"tekken.json"} == {f for f in TOKENIZERS if (source.tokenizer / f).is_file()}:
        raise InputError(
            f"{str(source.tokenizer)!r} has Mistral's tekken.json alone, which holds no chat "
            "template. Add the tokenizer.json and tokenizer_config.json of the same model."
        )
    # By Mistral's own library, where it is installed, no grammar could be followed.
    tokenizer: Any = AutoTokenizer.from_pretrained(
        source.tokenizer, trust_remote_code=False, mistral_format=False
    )
    loader: Any = AutoModelForCausalLM
    network, info = loader.from_pretrained(
        base,
        dtype=fastest_dtype(device) if dtype == torch.int8 else dtype,
        use_safetensors=True,
        trust_remote_code=False,
        # Reported below: a weight that is not read would be random numbers.
        ignore_mismatched_sizes=True,
        output_loading_info=True,
        **{"attn_implementation": "sdpa", **settings},
    )
    unread = sorted({*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])})
    if unread:
        raise InputError(
            f"{str(base)!r} lacks {len(unread)} of the network's weights, or has them in another "
            f"shape, among them {unread[0]}: it is damaged, or no {type(network).__name__}. "
            "Take a causal language model, whole."
        )
    # One that is quantised while it is read is there already, and does not like to be moved.
    if network.device != device:
        network = network.to(device)
    if source.adapter:
        network = merge_adapter(network, source.adapter)
    if dtype == torch.int8:
        from casewright.planner.language_model.int8_network import quantise_linear

        network = quantise_linear(network)
    return network, tokenizer


def check_base(base: Path) -> PretrainedConfig:
    """Return a model's configuration, if it is of a kind that plans can be decoded with.

    What can be told before the weights are read; ``check_network`` tells the rest.

    Raises:
        InputError: It is of another kind, needs code of its own, or has no safetensors.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig

    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(base, trust_remote_code=False)
    except ValueError as error:
        if "auto_map" not in read_json(base / CONFIG):
            raise
        raise InputError(
            f"{str(base)!r} needs code of its own, which is not run. "
            "Take a model of a family that transformers knows, such as Mistral."
        ) from error
    kind = config.model_type
    network: Any = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if network is None or getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{str(base)!r} is no causal language model ({kind}). Take one that is.")
    if getattr(network, "_is_stateful", False):
        raise InputError(other_states(network.__name__))
    if not any(base.glob("*.safetensors")):
        raise InputError(
            f"{str(base)!r} has no weights as safetensors. Pickles (*.bin) could run code when "
            "they are read, and are not loaded. Where you trust who made it, convert it once: "
            'python -c "from transformers import AutoModelForCausalLM as M; '
            f"M.from_pretrained({str(base)!r}, use_safetensors=False)"
            f'.save_pretrained({str(base)!r})"'
        )
    return config
