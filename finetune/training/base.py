"""The model that a training starts from: a given one, a new one, or a trained adapter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError, told
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
    Source,
    find_source,
    read_json,
)

if TYPE_CHECKING:
    import torch


def new_mistral(
    settings: Mapping[str, Any],
    tokenizer: Any,
    seed: int = 0,
    *,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> Any:
    """Return a ``MistralForCausalLM``, the same for the same arguments.

    Args:
        settings: Of ``MistralConfig``; no sliding window, where they do not say.
        device: Where they are drawn; the CPU by default.
        dtype: In which numbers; float32 by default.
    """
    import torch

    transformers: Any = import_module("transformers")
    config = transformers.MistralConfig(
        **{
            "sliding_window": None,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            **settings,
        }
    )
    target = device or torch.device("cpu")
    # Whoever draws numbers beside this keeps their own.
    forked = [target] if target.type == "cuda" else []
    with torch.random.fork_rng(devices=forked), target:
        torch.manual_seed(seed)
        network = transformers.AutoModelForCausalLM.from_config(
            config, dtype=dtype or torch.float32, attn_implementation="sdpa"
        )
    return network.eval()


BEGIN, END, PAD, UNKNOWN = "<s>", "</s>", "<pad>", "<unk>"
#: As Mistral's: the user's turn between brackets, and none of the system.
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported.') }}{% endif %}"
    "{% endfor %}"
)


def train_tokenizer(texts: Iterable[str], vocabulary: int, template: str = TEMPLATE) -> Any:
    """Return a byte-level BPE of transformers that can write every text, trained on these.

    Args:
        vocabulary: Tokens, the bytes and the special ones included: at least 260.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    transformers: Any = import_module("transformers")
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        show_progress=False,
        special_tokens=[BEGIN, END, PAD, UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        unk_token=UNKNOWN,
    )
    tokenizer.chat_template = template
    return tokenizer


def make_base(
    settings: NewModelSection, examples: Sequence[TrainingExample], seed: int, folder: Path
) -> None:
    """Write a new model with random weights, and a tokenizer trained on the examples.

    Equal arguments make equal files.
    """
    texts = (text for example in examples for text in (str(example.prompt), example.completion))
    # Each line once: the same toolbox stands in many prompts, and would drown the questions.
    lines = dict.fromkeys(line for text in texts for line in text.splitlines(keepends=True))
    tokenizer = train_tokenizer(lines, settings.vocabulary)
    network = new_mistral(settings.config, tokenizer, seed)
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def find_base(name: str) -> Source:
    """Return the folders of a base, a folder or a name at Hugging Face; nothing is read yet.

    Raises:
        InputError: There is no such model, or it is an adapter.
    """
    source = find_source(name, None)
    if source.adapter is not None:
        raise InputError(
            f"model.base: {name!r} is an adapter. Merge it first (casewright finetune train "
            "--merge), and give the merged model."
        )
    return source


def config_of(source: Source | None, settings: NewModelSection | None, base: str) -> Any:
    """Return the configuration of a base that there is, or of a new one.

    Raises:
        InputError: It cannot be read, or is of no model that plans can be decoded with.
    """
    if source is None:
        assert settings is not None
        transformers: Any = import_module("transformers")
        return transformers.MistralConfig(**settings.config)
    try:
        return check_base(source.base)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"model.base: {base!r} cannot be read: {told(error).rstrip('.')}. "
            "Give a causal language model, as save_pretrained writes it."
        ) from error


def check_settings(config: Any, base: str, lora: LoraSection, max_length: int) -> None:
    """Check that a recipe fits its base; no weights of the network are made for it.

    PEFT passes over a name in ``modules_to_save`` that there is not.

    Args:
        max_length: Tokens that an example may have.

    Raises:
        InputError: The base reads shorter texts, lacks a layer that is to be trained, or shares it.
    """
    import torch

    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and max_length > positions:
        raise InputError(
            f"training.max_length ({max_length}) is above what {base!r} reads ({positions} "
            f"tokens). Set training.max_length = {positions}, or less."
        )
    if config.tie_word_embeddings and (same := shared_layer(lora)):
        raise InputError(
            f"lora.modules_to_save holds {same!r}, which {base!r} shares between reading and "
            f"writing. Leave {same!r} out."
        )
    transformers: Any = import_module("transformers")
    with torch.device("meta"):
        network = transformers.AutoModelForCausalLM.from_config(config)
    layers = {
        name: layer.weight.dim()
        for name, layer in network.named_modules()
        if name and not any(layer.children()) and any(True for _ in layer.parameters())
    }
    targets = () if isinstance(lora.target_modules, str) else lora.target_modules
    matrices = [name for name, dimensions in layers.items() if dimensions == 2]
    _check_layers("lora.target_modules", targets, matrices, base)
    _check_layers("lora.modules_to_save", lora.modules_to_save, [*layers], base)


def _check_layers(field: str, named: Iterable[str], layers: list[str], base: str) -> None:
    ends = list(dict.fromkeys(layer.rpartition(".")[2] for layer in layers))
    for name in named:
        if not any(f".{layer}".endswith(f".{name}") for layer in layers):
            near = get_close_matches(name, ends, 1)
            mend = f"Did you mean {near[0]!r}?" if near else f"Give some of {', '.join(ends)}."
            raise InputError(f"{field}: {base!r} has no layer {name!r} to train. {mend}")


def load_base(source: Source, title: str, placement: Placement, *, four_bit: bool) -> LanguageModel:
    """Load a base to be trained, whatever form of the prompt it was trained with before.

    Raises:
        InputError: It cannot be loaded; see ``load_language_model``.
        DependencyError: A package that it needs is not installed.
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
    """An adapter to start from; the optimiser and the schedule start anew.

    Attributes:
        card: Its card: on what it was trained, how long, and to which losses.
    """

    weights: Path
    sha256: str
    card: Mapping[str, Any]


def find_start(folder: Path, model: ModelSection, lora: LoraSection) -> WarmStart:
    """Return the adapter in a folder, if a training of this kind can start from it.

    Whether it has the same layers is checked when it is loaded.

    Raises:
        InputError: It is no trained adapter, or one of another base, rank or scale.
    """
    missing = [n for n in (ADAPTER, ADAPTER_WEIGHTS, CARD) if not (folder / n).is_file()]
    if missing:
        raise InputError(
            f"--from {folder} is no trained adapter: it has no {missing[0]}. Give a folder that "
            "casewright finetune train wrote."
        )
    if model.made:
        raise InputError(
            "--from starts from an adapter of a base that there is, and the recipe trains on a new "
            "base. Set model.base to the adapter's base, or leave out --from."
        )
    card = read_card(folder) or {}
    if find_source(folder, None).base.resolve() != find_base(model.base).base.resolve():
        raise InputError(
            f"--from {folder} is an adapter of the base {card.get('base')!r}, not of "
            f"{model.base!r}. Give its own base by --base."
        )
    settings = read_json(folder / ADAPTER)
    for field, name, own in (("r", "r", lora.r), ("alpha", "lora_alpha", lora.alpha)):
        if settings.get(name) != own:
            raise InputError(
                f"--from {folder} has lora.{field} = {settings.get(name)}, and the recipe {own}. "
                f"Set lora.{field} = {settings.get(name)}."
            )
    weights = folder / ADAPTER_WEIGHTS
    with weights.open("rb") as opened:
        return WarmStart(weights, hashlib.file_digest(opened, "sha256").hexdigest(), card)


def load_start(network: Any, start: WarmStart) -> None:
    """Put an adapter's weights into a network of PEFT.

    Raises:
        InputError: Its file is damaged, or has other layers than the network's adapter.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(start.weights)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{start.weights} cannot be read: {told(error)}. Copy it anew.") from error
    own = get_peft_model_state_dict(network, save_embedding_layers=False)
    shapes = ({name: part.shape for name, part in each.items()} for each in (weights, own))
    before, now = shapes
    if before != now:
        other = next(n for n in sorted(before.keys() | now.keys()) if before.get(n) != now.get(n))
        raise InputError(
            f"--from {start.weights.parent} has other layers than the recipe, among them {other}. "
            "Set lora.target_modules and lora.modules_to_save as its adapter_config.json has them."
        )
    set_peft_model_state_dict(network, weights)
