"""Training of the plan parser; a stopped training resumes from its checkpoint."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import InputError
from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.parser.episodes import (
    Episode,
    EpisodeSettings,
    Source,
    episodes,
    source_drawer,
)
from casewright.planner.parser.weights import is_parser
from casewright.stores.encoders.minilm import minilm_weights, packaged_minilm
from casewright.stores.encoders.onnx_export import quiet
from casewright.stores.progress import note

if TYPE_CHECKING:
    from torch import Tensor

    from casewright.planner.parser.parser_network import ParserNetwork

#: The names of the files in the folder of a training.
CHECKPOINT, LOG = "checkpoint.pt", "log.jsonl"
#: Number of steps between lines of the log, and the decay of the log's running means.
LOG_STEPS, LOG_DECAY = 20, 0.98
#: Minimum and maximum number of annotated messages for ``adapt_parser``.
MIN_MESSAGES, MAX_MESSAGES = 20, 500
#: Episodes in a pass of ``adapt_parser``: from the toolbox; from the corpus, against forgetting.
OWN_EPISODES, CORPUS_EPISODES = 4, 1


@dataclass(frozen=True, slots=True)
class ParserSettings:
    """Settings of a plan parser's training.

    Attributes:
        minutes: Duration of the training, over which the learning rates fall.
        frozen: Number of frozen encoder layers, from the lowest; the embeddings are frozen too.
        encoder_rate: The highest learning rate of the encoder's layers that are not frozen.
        rate: The highest learning rate of the weights outside of the encoder.
        final_share: The final learning rates, as a share of the highest ones.
        warm_up: Number of steps in which the learning rates rise.
        mean_decay: Decay of the running mean of the weights; this mean is the result.
        save_seconds: Seconds between checkpoints.
        seed: The seed of weights, episodes and dropout.
    """

    minutes: float = 60.0
    frozen: int = 6
    encoder_rate: float = 1e-4
    rate: float = 6e-4
    final_share: float = 0.1
    warm_up: int = 80
    mean_decay: float = 0.99
    save_seconds: float = 120.0
    seed: int = 0
    episodes: EpisodeSettings = field(default_factory=EpisodeSettings)


def train_parser(
    draw: Callable[[random.Random], Sequence[Source]],
    settings: ParserSettings,
    folder: Path,
    start: Path | None = None,
    device: str | None = None,
) -> ParserNetwork:
    """Train a plan parser and return it in evaluation mode, on the CPU.

    Args:
        draw: A function that returns the sources of one pass.
        folder: The folder of checkpoint and log; a stopped training in this folder resumes.
        start: The folder of a parser to start from; ``InputError`` if it holds no parser.
        device: A PyTorch device, by default the first GPU or else the CPU; ``InputError`` for a
            device that the machine lacks.
    """
    import torch

    from casewright.planner.language_model.device import check_names, find_device
    from casewright.planner.parser.runtime import parser_tokenizer

    check_names(device, None)
    # A second thread would mostly wait for the first one.
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    with find_device(device):
        training = _Training(settings, folder, start)
        tokenizer = parser_tokenizer()
        # The seed has the number of steps, so a resumed training draws new episodes.
        rng = random.Random(f"{settings.seed}:{training.steps}")
        passes = (episodes(draw(rng), tokenizer, settings.episodes, rng) for _ in count())
        for episode in chain.from_iterable(passes):
            training.step(episode)
            if training.seconds >= settings.minutes * 60:
                break
        training.save()
    return training.result().cpu()


class _Training:
    """The weights of a training, their running mean, and the optimiser."""

    def __init__(self, settings: ParserSettings, folder: Path, start: Path | None) -> None:
        import torch

        self._settings, self._folder = settings, folder
        torch.manual_seed(settings.seed)
        self._network = _make_network(settings, start)
        self._weights = {n: p for n, p in self._network.named_parameters() if p.requires_grad}
        encoder_weights = [p for n, p in self._weights.items() if n.startswith("encoder.")]
        other_weights = [p for n, p in self._weights.items() if not n.startswith("encoder.")]
        parts = [(other_weights, settings.rate), (encoder_weights, settings.encoder_rate)]
        groups = [(parameters, rate) for parameters, rate in parts if parameters]
        self._rates = [rate for _, rate in groups]
        self._optimizer = torch.optim.AdamW(
            [{"params": parameters, "lr": rate} for parameters, rate in groups],
            weight_decay=0.01,
            betas=(0.9, 0.98),
            fused=True,
        )
        self._mean_weights = {n: p.detach().clone() for n, p in self._weights.items()}
        self.steps, self._earlier_seconds = 0, 0.0
        self._log_means: dict[str, float] = {}
        self._load_checkpoint()
        self._start_time = self._save_time = time.time()
        self._network.train()

    @property
    def seconds(self) -> float:
        """The duration of the training in seconds, including the time before it was resumed."""
        return self._earlier_seconds + time.time() - self._start_time

    def step(self, episode: Episode) -> None:
        """Train on an episode."""
        import torch

        from casewright.finetune.parser.loss_network import episode_loss

        # A training of 0 minutes has one step, so the divisor must not be 0.
        remaining_share = 1 - self.seconds / (max(self._settings.minutes, 0.01) * 60)
        factor = max(self._settings.final_share, remaining_share)
        factor *= min(1.0, (self.steps + 1) / self._settings.warm_up)
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor
        with torch.autocast(torch.get_default_device().type, dtype=torch.bfloat16):
            loss, terms = episode_loss(self._network, episode)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._weights.values(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()
        with torch.no_grad():
            for name, mean in self._mean_weights.items():
                mean.lerp_(self._weights[name], 1 - self._settings.mean_decay)
        self.steps += 1
        self._log({"loss": float(loss.detach()), **terms})
        if time.time() - self._save_time > self._settings.save_seconds:
            self.save()

    def save(self) -> None:
        """Write a checkpoint atomically."""
        import torch

        checkpoint = {
            "weights": {name: weight.detach() for name, weight in self._weights.items()},
            "means": self._mean_weights,
            "optimizer": self._optimizer.state_dict(),
            "steps": self.steps,
            "spent": self.seconds,
        }
        file = self._folder / CHECKPOINT
        torch.save(checkpoint, file.with_suffix(".new"))
        file.with_suffix(".new").replace(file)
        self._save_time = time.time()

    def result(self) -> ParserNetwork:
        """Set the weights to their running mean; return the network in evaluation mode."""
        for name, mean in self._mean_weights.items():
            self._weights[name].data.copy_(mean)
        self._network.cached_frozen_states = None
        return self._network.eval()

    def _load_checkpoint(self) -> None:
        import torch

        file = self._folder / CHECKPOINT
        if not file.exists():
            return
        checkpoint = torch.load(file, torch.get_default_device(), weights_only=True)
        if checkpoint["weights"].keys() != self._weights.keys():
            raise InputError(
                f"{file} is from a training with other settings. Give the settings of that "
                "training, or another folder."
            )
        for name, weight in checkpoint["weights"].items():
            self._weights[name].data.copy_(weight)
        self._mean_weights = checkpoint["means"]
        self._optimizer.load_state_dict(checkpoint["optimizer"])
        self.steps, self._earlier_seconds = checkpoint["steps"], checkpoint["spent"]
        torch.manual_seed(self._settings.seed + self.steps)

    def _log(self, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            mean = self._log_means.get(name, value)
            self._log_means[name] = LOG_DECAY * mean + (1 - LOG_DECAY) * value
        if self.steps % LOG_STEPS:
            return
        entry: dict[str, Any] = {"step": self.steps, "minutes": round(self.seconds / 60, 2)}
        entry |= {name: round(value, 4) for name, value in self._log_means.items()}
        with (self._folder / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
        note(f"step {self.steps}, {entry['minutes']} min, loss {entry['loss']:.3f}")


def _make_network(settings: ParserSettings, start: Path | None) -> ParserNetwork:
    import torch
    from transformers import AutoModel

    from casewright.finetune.parser.loss_network import FrozenStates
    from casewright.planner.parser.parser_network import ParserNetwork
    from casewright.planner.parser.weights import trained_weights

    with quiet():
        base = AutoModel.from_pretrained(
            str(packaged_minilm()), attn_implementation="eager", attention_probs_dropout_prob=0.0
        )
    network = ParserNetwork(base).to(torch.get_default_device())
    if start is not None:
        if not is_parser(start):
            raise InputError(f"{start} holds no plan parser. Give one that finetune parser wrote.")
        network.load_state_dict(network.state_dict() | trained_weights(start))
    encoder = network.encoder
    # The pooler is frozen too, since the parser does not use it.
    for module in (encoder.embeddings, *encoder.encoder.layer[: settings.frozen], encoder.pooler):
        module.requires_grad_(False)
    for module in encoder.encoder.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _, inputs: (_as_eight_bits(inputs[0]),))
    network.frozen_count = settings.frozen
    network.cached_frozen_states = FrozenStates(network)
    return network


def _as_eight_bits(states: Tensor) -> Tensor:
    """Return states (texts, tokens, size) rounded to eight bits, as the served encoder rounds them.

    Unlike in ``onnx_graph.Graph``, the range of values includes the padding here. The gradient
    ignores the rounding (Jacob et al. 2018, arXiv 1712.05877, section 3).
    """
    low, high = states.detach().amin((-2, -1), True), states.detach().amax((-2, -1), True)
    scale = (high.clamp(min=0) - low.clamp(max=0)).clamp(min=1e-6) / 255
    rounded = (states / scale).round() * scale
    return states + (rounded - states).detach()


def changed_weights(network: ParserNetwork) -> dict[str, Tensor]:
    """Return the network's weights except those that equal the packaged encoder's."""
    packaged = {f"encoder.{name}": weight for name, weight in minilm_weights().items()}
    return {
        name: weight
        for name, weight in network.state_dict().items()
        if not np.array_equal(weight, packaged.get(name, ()))
    }


_EPISODES = EpisodeSettings(mixed=0, few=0, removed=0.1, added=0.2, composed=0.3, examples_only=0.2)
#: The settings of ``adapt_parser``; its caller sets the minutes.
SETTINGS = ParserSettings(frozen=4, rate=3e-4, warm_up=20, final_share=0.05, episodes=_EPISODES)


def check_count(file: Path, count: int) -> None:
    """Raise ``InputError`` if a file has too few annotated messages, or too many."""
    if MIN_MESSAGES <= count <= MAX_MESSAGES:
        return
    advice = (
        "Write more: casewright draft proposes some, casewright correct adds one."
        if count < MIN_MESSAGES
        else "Choose some with casewright finetune sample, or use casewright finetune train."
    )
    raise InputError(
        f"{file} has {count} annotated messages; casewright finetune adapt takes {MIN_MESSAGES} to "
        f"{MAX_MESSAGES}. {advice}"
    )


def adapt_parser(
    source: Source,
    boxes: Sequence[CorpusToolbox],
    folder: Path,
    start: Path,
    settings: ParserSettings = SETTINGS,
) -> ParserNetwork:
    """Train the parser in the folder ``start`` further, on one toolbox; see ``train_parser``."""
    draw_corpus = source_drawer(boxes)

    def draw(rng: random.Random) -> list[Source]:
        return [source] * OWN_EPISODES + rng.sample(draw_corpus(rng), CORPUS_EPISODES)

    return train_parser(draw, settings, folder, start)
