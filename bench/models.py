"""The language model of a benchmark: a trained model, or a model with random weights."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from casewright.bench.harness import TestedDomain, timings
from casewright.errors import InputError
from casewright.finetune.training.base import new_mistral, train_tokenizer
from casewright.planner import AnnotatedQuery
from casewright.planner.language_model.device import check_names, find_device, find_dtype
from casewright.planner.prompt import render_head
from casewright.planner.shipped import SHIPPED, load_shipped
from casewright.stores.progress import note
from casewright.tools import Toolbox

if TYPE_CHECKING:
    import torch

    from casewright.planner.language_model import LanguageModel

#: Of a random model's tokenizer: vocabulary size, and number of copies of the prompt's head in the
#: training texts. A plan then has about as many tokens as with Mistral's tokenizer, and the grammar
#: forces about as many of them.
VOCABULARY_SIZE, HEAD_COPIES = 4096, 20


def _mistral_config(*sizes: int, **overrides: Any) -> dict[str, Any]:
    names = "vocab_size hidden_size num_hidden_layers num_attention_heads num_key_value_heads"
    settings = zip([*names.split(), "intermediate_size"], sizes, strict=True)
    return {"max_position_embeddings": 8192, **dict(settings), **overrides}


#: Settings of Mistral networks by size; the largest network is Mistral-7B v0.3.
SIZES: Mapping[str, Mapping[str, Any]] = {
    "tiny": _mistral_config(8192, 32, 2, 4, 2, 64),
    "100m": _mistral_config(32_000, 768, 12, 12, 4, 3072),
    "7b": _mistral_config(32_768, 4096, 32, 32, 8, 14_336, rope_theta=1e6),
}
#: Bytes of the tensors that measure the memory bandwidth of a CPU and a GPU; no cache holds them.
CPU_TENSOR_BYTES, GPU_TENSOR_BYTES = 2**28, 2**32


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The options that choose a benchmark's model; without a ``name``, the weights are random.

    Raise ``InputError`` for an unknown size, device or dtype, and for ``adapter`` without ``name``.
    """

    name: str | None = None
    adapter: str | None = None
    size: str = "100m"  # the size of a model with random weights
    device: str | None = None
    dtype: str | None = None
    seed: int = 0  # the seed of random weights

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise InputError(f"There is no size {self.size!r}. Sizes are: {', '.join(SIZES)}.")
        if self.adapter is not None and self.name in (None, SHIPPED):
            raise InputError(f"--adapter needs a base. Give a --model other than {SHIPPED}.")
        check_names(self.device, self.dtype)
        if self.is_random and self.dtype == "int8":
            raise InputError("Random weights have no int8 form. Give another --dtype.")

    @property
    def is_random(self) -> bool:
        """True if the weights are random."""
        return self.name is None

    def open(self, texts: Iterable[str]) -> LanguageModel:
        """Load the model; a random model gets a tokenizer that is trained on the texts."""
        from casewright.planner.language_model import LanguageModel, load_language_model

        hardware: Any = {"device": self.device, "dtype": self.dtype}
        if self.name == SHIPPED:
            return load_shipped(**hardware)
        if self.name is not None:
            return load_language_model(self.name, adapter=self.adapter, **hardware)
        device, tokenizer = find_device(self.device), train_tokenizer(texts, VOCABULARY_SIZE)
        dtype = find_dtype(self.dtype, device)
        network = new_mistral(SIZES[self.size], tokenizer, self.seed, device=device, dtype=dtype)
        return LanguageModel(f"random-mistral-{self.size}", network, tokenizer)


def tokenizer_texts(toolbox: Toolbox, queries: Iterable[AnnotatedQuery]) -> Sequence[str]:
    """Return the training texts of a random model's tokenizer: the prompt's head, and questions.

    These texts have no gold plans. From gold plans, the tokenizer would learn whole calls as single
    tokens, which no real tokenizer has.
    """
    return [*[render_head(toolbox)] * HEAD_COPIES, *(query.query for query in queries)]


def weight_bytes(model: LanguageModel) -> int:
    """Return the bytes of weights that a model step reads, without a separate embedding table."""
    network: Any = model.network
    # Eight-bit weights are buffers.
    weights = [*network.parameters(), *network.buffers()]
    total_bytes = sum(weight.numel() * weight.element_size() for weight in weights)
    embedding, output = network.get_input_embeddings().weight, network.get_output_embeddings()
    if output is not None and output.weight is embedding:
        return int(total_bytes)
    # A step reads only a few rows of a table that is not also the output layer.
    return int(total_bytes - embedding.numel() * embedding.element_size())


def measure_bandwidth(device: torch.device, size: int | None = None) -> float:
    """Return a device's memory bandwidth in bytes per second, measured by reading and copying.

    ``size`` is the number of bytes to read and copy; by default, more than any cache holds.
    """
    import torch

    size = size or (GPU_TENSOR_BYTES if device.type == "cuda" else CPU_TENSOR_BYTES)
    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    copy_seconds, read_seconds = (
        min(timings(call, 3, device)) / 1000
        for call in (lambda: target.copy_(source), lambda: source.sum())
    )
    # A copy reads and writes every byte. The higher rate is nearer to the bandwidth.
    return max(size / read_seconds, 2 * size / copy_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationTrial:
    """The options of a benchmark in which a model generates plans."""

    domain: str = "shopping"
    model: ModelChoice = field(default_factory=ModelChoice)
    plans: int = 5  # the number of plans (in ``bench latency``, of each number of steps)
    repeats: int = 1  # the number of times that each plan is generated
    seed: int = 0  # for the order of the queries

    def no_queries_error(self) -> InputError:
        """Return the error for a domain without an annotated query whose plan can be written."""
        return InputError(
            f"Domain {self.domain!r} has no annotated queries whose plans can be written. "
            "Take --domain shopping."
        )


class MeasuredModel:
    """The model of a trial, the bytes of its weights, and the bandwidth of the device's memory.

    Raise ``InputError`` if the model cannot be loaded.
    """

    def __init__(self, trial: GenerationTrial, tested: TestedDomain) -> None:
        self._trial = trial
        self._load_average = os.getloadavg()[0]
        texts = tokenizer_texts(tested.toolbox, tested.domain.queries())
        self.model: LanguageModel = trial.model.open(texts)
        note(f"Planning with {self.model.name} on {self.model.device}.")
        self.weight_bytes = weight_bytes(self.model)
        self.bandwidth = measure_bandwidth(self.model.device)

    @property
    def needs_warmup(self) -> bool:
        """True on a GPU, where the first step with each number of tokens is slow."""
        return self.model.device.type == "cuda"

    @property
    def min_step_ms(self) -> float:
        """Lower bound of a model step in milliseconds: the time to read the weights once."""
        return 1000 * self.weight_bytes / self.bandwidth

    def measure_bandwidth_again(self) -> None:
        """Measure the bandwidth once more, after the work, and keep the larger value."""
        self.bandwidth = max(self.bandwidth, measure_bandwidth(self.model.device))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a report that describe the model and the trial."""
        import torch

        trial, model, device = self._trial, self.model, str(self.model.device)
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
            "load_average_at_start": round(self._load_average, 2),
            "repeats": trial.repeats,
            "seed": trial.seed,
        }

    @property
    def figures(self) -> dict[str, float]:
        """The memory bandwidth in GB/s, and the GB of weights that a model step reads."""
        weights_gb = self.weight_bytes / 1e9
        return {"memory_gb_per_s": self.bandwidth / 1e9, "weights_gb_per_model_step": weights_gb}
