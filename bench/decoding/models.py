"""Which language model is measured: a trained one, or one of a size with random weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from casewright.bench.decoding.tokenizer import VOCABULARY
from casewright.errors import InputError
from casewright.finetune.training.new_model import new_mistral
from casewright.finetune.training.plan_tokenizer import train_tokenizer
from casewright.planner.language_model.device import check_names, find_device, find_dtype

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Mistral's settings by size. A random network costs the time of a trained one.
SIZES: Mapping[str, Mapping[str, Any]] = {
    "tiny": {
        "vocab_size": 8192,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
    },
    "100m": {
        "vocab_size": 32_000,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "intermediate_size": 3072,
    },
    # Mistral-7B v0.3.
    "7b": {
        "vocab_size": 32_768,
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14_336,
        "rope_theta": 1e6,
    },
}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model of a bench.

    Attributes:
        name: A model's name or folder; ``None`` for random weights.
        adapter: A PEFT adapter's folder.
        size: Of the random network: one of ``SIZES``.
        device: ``cpu``, ``cuda``, …; by default a GPU where there is one.
        dtype: By default bfloat16 on a GPU, else float32.
        seed: Draws the weights.

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
        if self.adapter is not None and self.name is None:
            raise InputError("--adapter belongs to a model. Give --model too.")
        check_names(self.device, self.dtype)

    @property
    def random(self) -> bool:
        """Whether the weights are drawn."""
        return self.name is None

    def check_device(self) -> None:
        """Raise ``InputError`` where this machine has no such device."""
        find_device(self.device)

    def open(self, texts: Iterable[str]) -> LanguageModel:
        """Load the model, or make it, with a tokenizer trained on the texts.

        Raises:
            InputError: The model cannot be loaded, or the machine has no such device.
        """
        from casewright.planner.language_model import load_language_model

        if self.name is None:
            return self._drawn(texts)
        return load_language_model(
            self.name, adapter=self.adapter, device=self.device, dtype=self.dtype
        )

    def _drawn(self, texts: Iterable[str]) -> LanguageModel:
        from casewright.planner.language_model import LanguageModel

        device, tokenizer = find_device(self.device), train_tokenizer(texts, VOCABULARY)
        network = new_mistral(
            {**SIZES[self.size], "max_position_embeddings": 8192},
            tokenizer,
            self.seed,
            device=device,
            dtype=find_dtype(self.dtype, device),
        )
        return LanguageModel(f"random-mistral-{self.size}", network, tokenizer)


def described(model: LanguageModel) -> dict[str, Any]:
    """Return what a report's settings say of a model and of what it runs on."""
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
