"""The base of a training, which is an existing or a new model, and the adapter to start from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError, one_line
from casewright.finetune.example import TrainingExample
from casewright.finetune.recipe.training_section import (
    LoraSection,
    ModelSection,
    NewModelSection,
    shared_layer,
)
from casewright.finetune.training.placement import Placement
from casewright.planner.language_model import LanguageModel
from casewright.planner.language_model.card import CARD, read_card
from casewright.planner.language_model.load import check_base, load_source
from casewright.planner.language_model.source import (
    ADAPTER,
    ADAPTER_WEIGHTS,
    ModelSource,
    find_source,
    read_json,
)

if TYPE_CHECKING:
    import torch

#: The chat template of a new model. As in Mistral's, the user's turn is between [INST] and [/INST].
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported.') }}{% endif %}"
    "{% endfor %}"
)


def new_mistral(
    settings: Mapping[str, Any],
    tokenizer: Any,
    seed: int = 0,
    *,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> Any:
    """Return a ``MistralForCausalLM`` with random weights, which depend only on the arguments.

    By default, the network is on the CPU, in float32, without a sliding window. ``settings`` are
    arguments of ``MistralConfig``.
    """
    import torch
    import transformers

    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    token_ids = {name: getattr(tokenizer, name) for name in names}
    config = transformers.MistralConfig(**{"sliding_window": None, **token_ids, **settings})
    device = device or torch.device("cpu")
    # The fork leaves the state of the global random generators unchanged.
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), device:
        torch.manual_seed(seed)
        network = transformers.AutoModelForCausalLM.from_config(
            config, dtype=dtype or torch.float32, attn_implementation="sdpa"
        )
    return network.eval()


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """Return a byte-level BPE tokenizer of transformers, trained on texts.

    ``vocabulary`` is the total number of tokens: 256 bytes, 4 special tokens, and the merges.
    """
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        show_progress=False,
        special_tokens=list(special.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, **special)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_base(
    settings: NewModelSection, examples: Sequence[TrainingExample], seed: int, folder: Path
) -> None:
    """Write a new model and its tokenizer to a folder.

    The model has random weights. The tokenizer is trained on the examples. The same arguments give
    the same files.
    """
    texts = (text for example in examples for text in (str(example.prompt), example.completion))
    # Each distinct line counts once, since many prompts share the lines of one toolbox.
    lines = dict.fromkeys(line for text in texts for line in text.splitlines(keepends=True))
    tokenizer = train_tokenizer(lines, settings.vocabulary)
    network = new_mistral(settings.config, tokenizer, seed)
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def find_base(name: str) -> ModelSource:
    """Return the source of a base by its folder or its name at Hugging Face.

    ``InputError`` if the model does not exist, or is an adapter.
    """
    source = find_source(name, adapter=None)
    if source.adapter is not None:
        raise InputError(
            f"model.base: {name!r} is an adapter. Merge it first (casewright finetune train "
            "--merge), and give the merged model."
        )
    return source


def check_settings(
    source: ModelSource | None, model: ModelSection, lora: LoraSection, max_length: int
) -> None:
    """Raise ``InputError`` if a recipe does not fit its base; no weights are loaded.

    The base must be readable, decode plans, accept ``max_length`` tokens, and have the layers that
    the recipe names: PEFT ignores unknown ones in ``modules_to_save``. If the base's embeddings are
    tied, ``modules_to_save`` may not hold them. ``source`` is ``None`` for a new base.
    """
    import torch
    import transformers

    base = model.base
    try:
        if source is not None:
            config = check_base(source.base)
        else:
            config = transformers.MistralConfig(**(model.new_base.config if model.new_base else {}))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"model.base: {base!r} cannot be read: {one_line(error).rstrip('.')}. "
            "Give a causal language model, as save_pretrained writes it."
        ) from error
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and max_length > positions:
        raise InputError(
            f"training.max_length ({max_length}) is above what {base!r} reads ({positions} "
            f"tokens). Set training.max_length = {positions}, or less."
        )
    if config.tie_word_embeddings and (shared := shared_layer(lora)):
        raise InputError(
            f"lora.modules_to_save holds {shared!r}, which {base!r} shares between input and "
            f"output embeddings. Leave {shared!r} out."
        )
    with torch.device("meta"):
        network = transformers.AutoModelForCausalLM.from_config(config)
    dimension_counts = {
        name.removesuffix(".weight"): weight.dim()
        for name, weight in network.named_parameters()
        if name.endswith(".weight")
    }
    targets = () if isinstance(lora.target_modules, str) else lora.target_modules
    matrix_names = [name for name, count in dimension_counts.items() if count == 2]
    for field, names, candidates in (
        ("lora.target_modules", targets, matrix_names),
        ("lora.modules_to_save", lora.modules_to_save, [*dimension_counts]),
    ):
        for name in names:
            if not any(f".{layer}".endswith(f".{name}") for layer in candidates):
                name_ends = list(dict.fromkeys(layer.rpartition(".")[2] for layer in candidates))
                advice = f"Give some of {', '.join(name_ends)}."
                if similar := get_close_matches(name, name_ends, 1):
                    advice = f"Did you mean {similar[0]!r}?"
                raise InputError(f"{field}: {base!r} has no layer {name!r} to train. {advice}")


def load_base(
    source: ModelSource, title: str, placement: Placement, *, four_bit: bool
) -> LanguageModel:
    """Return the loaded base of a training.

    ``title`` is the base's name in error messages. The errors are those of ``load_language_model``,
    but a base may have been trained with another prompt.
    """
    settings: dict[str, Any] = {"attn_implementation": placement.attention}
    if four_bit:
        from transformers import BitsAndBytesConfig

        settings["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=placement.dtype,
        )
        settings["device_map"] = {"": placement.device}
    return load_source(source, title, placement.device, placement.dtype, settings)


@dataclass(frozen=True, slots=True)
class WarmStart:
    """An adapter from whose weights a training starts."""

    weights: Path  # the file of the weights
    sha256: str  # the hash of this file
    card: Mapping[str, Any]  # the adapter's card


def find_start(folder: Path, model: ModelSection, lora: LoraSection) -> WarmStart:
    """Return the adapter in a folder; ``load_start`` checks its layers.

    ``InputError`` if the folder has no trained adapter, or if the adapter's base, rank or alpha
    differs from the recipe's.
    """
    missing = [name for name in (ADAPTER, ADAPTER_WEIGHTS, CARD) if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"--from {folder} is no trained adapter: it has no {missing[0]}. Give a folder that "
            "casewright finetune train wrote."
        )
    if model.new_base:
        raise InputError(
            "--from starts from an adapter of an existing base, and the recipe trains on a new "
            "base. Set model.base to the adapter's base, or leave out --from."
        )
    card = read_card(folder) or {}
    if find_source(folder, adapter=None).base.resolve() != find_base(model.base).base.resolve():
        raise InputError(
            f"--from {folder} is an adapter of the base {card.get('base')!r}, not of "
            f"{model.base!r}. Give the adapter's base by --base."
        )
    settings = read_json(folder / ADAPTER)
    for field, peft_name, value in (("r", "r", lora.r), ("alpha", "lora_alpha", lora.alpha)):
        if (stored := settings.get(peft_name)) != value:
            raise InputError(
                f"--from {folder} has lora.{field} = {stored}, and the recipe has {value}. "
                f"Set lora.{field} = {stored}."
            )
    weights = folder / ADAPTER_WEIGHTS
    return WarmStart(weights, sha256(weights), card)


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_start(network: Any, start: WarmStart) -> None:
    """Load an adapter's weights into a PEFT network.

    ``InputError`` if the file is damaged, or its layers differ from those of the network.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(start.weights)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{start.weights} cannot be read: {one_line(error)}. Copy it anew."
        ) from error
    adapter = get_peft_model_state_dict(network, save_embedding_layers=False)
    stored, needed = ({name: w.shape for name, w in state.items()} for state in (weights, adapter))
    if differences := stored.items() ^ needed.items():
        layer, _ = min(differences)
        raise InputError(
            f"--from {start.weights.parent} has other layers than the recipe, among them {layer}. "
            "Set lora.target_modules and lora.modules_to_save as its adapter_config.json has them."
        )
    set_peft_model_state_dict(network, weights)
