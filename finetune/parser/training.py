"""Training the plan parser: weights, rates and checkpoints; a stopped training goes on."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.finetune.parser.episodes import Episode, EpisodeSettings, Source, drawing, episodes
from casewright.planner.parser.weights import is_parser
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_export import quiet
from casewright.stores.progress import note

if TYPE_CHECKING:
    from torch import Tensor

    from casewright.finetune.corpus import CorpusToolbox
    from casewright.planner.parser.parser_network import ParserNetwork


CHECKPOINT, LOG = "checkpoint.pt", "log.jsonl"
#: Steps between lines of the log, and what a step leaves of a figure's running mean there.
TOLD, LEFT = 20, 0.98


@dataclass(frozen=True, slots=True)
class ParserSettings:
    """Settings of a training of the plan parser.

    Attributes:
        minutes: Of clock time, over which the learning rates fall.
        frozen: The encoder's lowest layers that stay as they are; its embeddings always do.
        encoder_rate: Learning rate of the encoder's other layers.
        rate: Of everything else.
        last: The least share of the learning rates.
        warm_up: Steps in which they rise.
        mean: What a step leaves of the running mean of the weights, which is what is kept.
        save: Seconds between checkpoints.
        seed: Of weights, episodes and dropout.
        episodes: How episodes vary.
    """

    minutes: float = 60.0
    frozen: int = 6
    encoder_rate: float = 1e-4
    rate: float = 6e-4
    last: float = 0.1
    warm_up: int = 80
    mean: float = 0.99
    save: float = 120.0
    seed: int = 0
    episodes: EpisodeSettings = field(default_factory=EpisodeSettings)


def train_parser(
    draw: Callable[[random.Random], Sequence[Source]],
    settings: ParserSettings,
    folder: Path,
    start: Path | None = None,
) -> ParserNetwork:
    """Train a plan parser and return it, in evaluation.

    Args:
        draw: Returns the sources of one pass.
        settings: How it is trained.
        folder: Of checkpoint and log; a training that was stopped there goes on.
        start: A parser's folder, to start from its weights.

    Raises:
        InputError: The folder to start from holds no parser.
    """
    import torch

    # One core is asked for: a second thread would wait for the first most of the time.
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    training = _Training(settings, folder, start)
    for episode in _drawn(draw, settings, training):
        training.step(episode)
        if training.spent >= settings.minutes * 60:
            break
    training.save()
    return training.result()


def _drawn(
    draw: Callable[[random.Random], Sequence[Source]], settings: ParserSettings, training: _Training
) -> Iterator[Episode]:
    from casewright.planner.parser.runtime import parser_tokenizer

    tokenizer = parser_tokenizer()
    # A training that goes on draws other episodes than before.
    rng = random.Random(f"{settings.seed}:{training.steps}")
    while True:
        yield from episodes(draw(rng), tokenizer, settings.episodes, rng)


class _Training:
    """Weights, their running mean, and the optimiser."""

    def __init__(self, settings: ParserSettings, folder: Path, start: Path | None) -> None:
        import torch

        self._settings, self._folder = settings, folder
        torch.manual_seed(settings.seed)
        self._network = _network(settings, start)
        self._weights = {n: p for n, p in self._network.named_parameters() if p.requires_grad}
        own = [p for n, p in self._weights.items() if not n.startswith("encoder.")]
        layers = [p for n, p in self._weights.items() if n.startswith("encoder.")]
        groups = [(own, settings.rate), *([(layers, settings.encoder_rate)] if layers else [])]
        self._rates = [rate for _, rate in groups]
        self._optimizer = torch.optim.AdamW(
            [{"params": parameters, "lr": rate} for parameters, rate in groups],
            weight_decay=0.01,
            betas=(0.9, 0.98),
            fused=True,
        )
        self._means = {name: weight.detach().clone() for name, weight in self._weights.items()}
        self.steps, self._before = 0, 0.0
        self._figures: dict[str, float] = {}
        self._load()
        self._began = self._saved = time.time()
        self._network.train()

    @property
    def spent(self) -> float:
        """Return the seconds of training so far."""
        return self._before + time.time() - self._began

    def step(self, episode: Episode) -> None:
        """Learn from an episode."""
        import torch

        from casewright.finetune.parser.loss_network import episode_loss

        # A training of no minutes is one step.
        left = 1 - self.spent / (max(self._settings.minutes, 0.01) * 60)
        share = max(self._settings.last, left)
        share *= min(1.0, (self.steps + 1) / self._settings.warm_up)
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * share
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss, parts = episode_loss(self._network, episode)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._weights.values(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()
        with torch.no_grad():
            for name, mean in self._means.items():
                mean.lerp_(self._weights[name], 1 - self._settings.mean)
        self.steps += 1
        self._tell({"loss": float(loss.detach()), **parts})
        if time.time() - self._saved > self._settings.save:
            self.save()

    def save(self) -> None:
        """Write a checkpoint, whole or not at all."""
        import torch

        kept = {
            "weights": {name: weight.detach() for name, weight in self._weights.items()},
            "means": self._means,
            "optimizer": self._optimizer.state_dict(),
            "steps": self.steps,
            "spent": self.spent,
        }
        file = self._folder / CHECKPOINT
        torch.save(kept, file.with_suffix(".new"))
        file.with_suffix(".new").replace(file)
        self._saved = time.time()

    def result(self) -> ParserNetwork:
        """Return the network with the running mean of its weights."""
        for name, mean in self._means.items():
            self._weights[name].data.copy_(mean)
        self._network.kept = None
        return self._network.eval()

    def _load(self) -> None:
        import torch

        file = self._folder / CHECKPOINT
        if not file.exists():
            return
        kept = torch.load(file, weights_only=True)
        if kept["weights"].keys() != self._weights.keys():
            raise InputError(
                f"{file} is of a training with other settings. Give the settings that it was "
                "started with, or another folder."
            )
        for name, item in kept["weights"].items():
            self._weights[name].data.copy_(item)
        self._means = kept["means"]
        self._optimizer.load_state_dict(kept["optimizer"])
        self.steps, self._before = kept["steps"], kept["spent"]
        torch.manual_seed(self._settings.seed + self.steps)

    def _tell(self, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self._figures[name] = LEFT * self._figures.get(name, value) + (1 - LEFT) * value
        if self.steps % TOLD:
            return
        facts: dict[str, Any] = {"step": self.steps, "minutes": round(self.spent / 60, 2)}
        facts |= {name: round(value, 4) for name, value in self._figures.items()}
        with (self._folder / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(facts) + "\n")
        note(f"step {self.steps}, {facts['minutes']} min, loss {facts['loss']:.3f}")


def _network(settings: ParserSettings, start: Path | None) -> ParserNetwork:
    from transformers import AutoModel

    from casewright.finetune.parser.loss_network import KeptStates
    from casewright.planner.parser.parser_network import ParserNetwork
    from casewright.planner.parser.weights import trained_weights

    with quiet():
        base = AutoModel.from_pretrained(
            str(packaged_minilm()),
            attn_implementation="eager",
            attention_probs_dropout_prob=0.0,
        )
    network = ParserNetwork(base)
    if start is not None:
        if not is_parser(start):
            raise InputError(f"{start} holds no plan parser. Give a folder of finetune parser.")
        network.load_state_dict(network.state_dict() | trained_weights(start))
    network.encoder.embeddings.requires_grad_(False)
    for layer in network.encoder.encoder.layer[: settings.frozen]:
        layer.requires_grad_(False)
    if network.encoder.pooler is not None:
        network.encoder.pooler.requires_grad_(False)
    network.split = settings.frozen
    network.kept = KeptStates(network)
    return network


def trained_parts(network: ParserNetwork) -> dict[str, Tensor]:
    """Return the weights that are not the packaged encoder's own."""
    fixed = {f"encoder.encoder.layer.{number}." for number in range(network.split)}
    return {
        name: item
        for name, item in network.state_dict().items()
        if not name.startswith(("encoder.embeddings.", "encoder.pooler.", *fixed))
    }


#: Annotated messages that are enough to be worth a training, and that it has time for.
FEWEST, MOST = 20, 500
#: Of a pass: episodes of the toolbox itself, and of toolboxes of the corpus, which keep what the
#: parser knows of tools in general.
OWN, REHEARSED = 4, 1
SETTINGS = ParserSettings(
    frozen=4,
    rate=3e-4,
    encoder_rate=1e-4,
    warm_up=20,
    last=0.05,
    episodes=EpisodeSettings(mixed=0, removed=0.1, added=0.2, composed=0.3, alone=0.2),
)


def check_count(file: Path, count: int) -> None:
    """Check that a file has enough annotated messages, and not too many.

    Raises:
        InputError: It does not.
    """
    if FEWEST <= count <= MOST:
        return
    mend = (
        "Write more: casewright draft proposes some, casewright correct adds one."
        if count < FEWEST
        else "Choose some: casewright finetune sample; or train as casewright finetune train."
    )
    raise InputError(
        f"{file} has {count} annotated messages, and {FEWEST} to {MOST} can be trained on in "
        f"minutes. {mend}"
    )


def adapt_parser(
    source: Source,
    boxes: Sequence[CorpusToolbox],
    folder: Path,
    start: Path,
    settings: ParserSettings = SETTINGS,
) -> ParserNetwork:
    """Train a plan parser on for one toolbox and return it, in evaluation.

    Args:
        source: The toolbox with its annotated messages.
        boxes: Toolboxes of the corpus, to rehearse.
        folder: Of checkpoint and log; a training that was stopped there goes on.
        start: The folder of the parser to start from.
        settings: How it is trained, and how long.

    Raises:
        InputError: The folder to start from holds no parser.
    """
    others = drawing(boxes)

    def draw(rng: random.Random) -> list[Source]:
        return [source] * OWN + rng.sample(others(rng), REHEARSED)

    return train_parser(draw, settings, folder, start)
