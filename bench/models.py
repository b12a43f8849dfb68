"""Language models of benches: trained ones, or random weights of a size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.bench.harness import timed
from casewright.errors import InputError
from casewright.finetune.training.base import new_mistral, train_tokenizer
from casewright.planner import AnnotatedQuery
from casewright.planner.language_model.device import check_names, find_device, find_dtype
from casewright.planner.prompt import render_head
from casewright.planner.shipped import SHIPPED, load_shipped
from casewright.tools import Toolbox

if TYPE_CHECKING:
    import torch

    from casewright.planner.language_model import LanguageModel

#: The tokens of a random model's tokenizer, and the copies of a prompt's head in its training
#: texts: with these, prompts and plans have about as many tokens, and leave about as many choices
#: to a grammar, as with Mistral's own.
VOCABULARY, HEAD_WEIGHT = 4096, 20


def _size(*numbers: int, **more: Any) -> dict[str, Any]:
    names = (
        *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
        *("num_key_value_heads", "intermediate_size"),
    )
    return {"max_position_embeddings": 8192, **dict(zip(names, numbers, strict=True)), **more}


#: Mistral's settings by size; the largest is Mistral-7B v0.3. A random network costs the time of a
#: trained one.
SIZES: Mapping[str, Mapping[str, Any]] = {
    "tiny": _size(8192, 32, 2, 4, 2, 64),
    "100m": _size(32_000, 768, 12, 12, 4, 3072),
    "7b": _size(32_768, 4096, 32, 32, 8, 14_336, rope_theta=1e6),
}
#: Bytes of the tensor that is read to measure memory: far more than caches hold.
HOST_BYTES, DEVICE_BYTES = 2**28, 2**32


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model of a bench, by the command's options; without a name, random weights of a size.

    Raises:
        InputError: There is no such size, device or number format, or an adapter without a model.
    """

    name: str | None = None
    adapter: str | None = None
    size: str = "100m"
    device: str | None = None
    dtype: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise InputError(f"There is no size {self.size!r}. Sizes are: {', '.join(SIZES)}.")
        if self.adapter is not None and self.name in (None, SHIPPED):
            raise InputError("--adapter belongs to a model. Give --model too.")
        check_names(self.device, self.dtype)
        if self.random and self.dtype == "int8":
            raise InputError("Random weights are not made in int8. Give another --dtype.")

    @property
    def random(self) -> bool:
        """Return whether the weights are drawn."""
        return self.name is None

    def check_device(self) -> None:
        """Raise ``InputError`` where this machine has no such device."""
        find_device(self.device)

    def open(self, texts: Iterable[str]) -> LanguageModel:
        """Load the model, or make it, with a tokenizer trained on the texts."""
        from casewright.planner.language_model import LanguageModel, load_language_model

        if self.name == SHIPPED:
            return load_shipped(device=self.device, dtype=self.dtype)
        if self.name is not None:
            return load_language_model(
                self.name, adapter=self.adapter, device=self.device, dtype=self.dtype
            )
        device, tokenizer = find_device(self.device), train_tokenizer(texts, VOCABULARY)
        dtype = find_dtype(self.dtype, device)
        network = new_mistral(SIZES[self.size], tokenizer, self.seed, device=device, dtype=dtype)
        return LanguageModel(f"random-mistral-{self.size}", network, tokenizer)


def tokenizer_texts(toolbox: Toolbox, queries: Iterable[AnnotatedQuery]) -> Sequence[str]:
    """Return the training texts of a random model's tokenizer: a prompt's head, and questions.

    No gold plan is among them: whole calls would become tokens, which no real tokenizer has.
    """
    return [*[render_head(toolbox)] * HEAD_WEIGHT, *(query.query for query in queries)]


def described(model: LanguageModel) -> dict[str, Any]:
    """Return the settings of a report that tell of a model and its device."""
    import torch

    device = str(model.device)
    if model.device.type == "cuda":
        device = f"{device}: {torch.cuda.get_device_name(model.device)}"
    return {
        "model": model.name,
        "parameters": sum(p.numel() for p in model.network.parameters()),
        "network_vocabulary": model.grammar_tokenizer.vocab_size,
        "tokenizer_vocabulary": len(model.tokenizer),
        "dtype": str(model.network.dtype).removeprefix("torch."),
        "device": device,
        "threads": torch.get_num_threads(),
    }


def random_twin(model: LanguageModel, seed: int) -> LanguageModel:
    """Return a model of the same architecture and tokenizer, its weights drawn by the seed."""
    import torch

    from casewright.planner.language_model import LanguageModel

    transformers: Any = import_module("transformers")
    # Drawn on the CPU, whose numbers are the same wherever the twin then runs.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = transformers.AutoModelForCausalLM.from_config(
            deepcopy(model.network.config),
            dtype=model.network.dtype,
            attn_implementation=model.network.config._attn_implementation,
        )
    return LanguageModel(f"random weights, seed {seed}", network.to(model.device), model.tokenizer)


def save_random_model(folder: Path, texts: Iterable[str]) -> int:
    """Write a small random Mistral for a server, always the same; return its parameters.

    Args:
        folder: Where it is written, as ``transformers`` reads it.
        texts: The training texts of its tokenizer.
    """
    from transformers.utils import logging

    # As Mistral's, which has no turn of the system: the system's text stands before the user's.
    template = (
        "{{ bos_token }}{% for m in messages %}"
        "{% if m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}"
        "{% else %}[INST] {{ m['content'] }} [/INST]{% endif %}{% endfor %}"
    )
    tokenizer = train_tokenizer(texts, 1024, template)
    settings = _size(len(tokenizer), 64, 2, 4, 2, 128, max_position_embeddings=16_384)
    network = new_mistral(settings, tokenizer)
    bars = logging.is_progress_bar_enabled()
    # Half a megabyte is written at once.
    logging.disable_progress_bar()
    try:
        network.save_pretrained(folder)
    finally:
        if bars:
            logging.enable_progress_bar()
    tokenizer.save_pretrained(folder)
    return sum(weights.numel() for weights in network.parameters())


def weight_bytes(model: LanguageModel) -> int:
    """Return the bytes of weights that a step reads: all but the embedding's unused rows."""
    network: Any = model.network
    read = sum(p.numel() * p.element_size() for p in network.parameters())
    table, head = network.get_input_embeddings().weight, network.get_output_embeddings()
    if head is not None and head.weight is table:
        return int(read)
    return int(read - table.numel() * table.element_size())


def measure_bandwidth(device: torch.device, size: int | None = None) -> float:
    """Return the bytes a second that a device's memory gives at best, by reading and by copying.

    Args:
        device: Whose memory.
        size: Bytes of the tensor; by default larger than any cache. A copy moves twice as many.
    """
    import torch

    size = size or (DEVICE_BYTES if device.type == "cuda" else HOST_BYTES)
    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)

    def seconds(work: Callable[[], Any]) -> float:
        return min(timed(work, device)[1] for _ in range(3)) / 1000

    copying = seconds(lambda: target.copy_(source))
    return max(size / seconds(lambda: source.sum()), 2 * size / copying)
