"""Training of the cross-encoder on groups, and its figures on the groups of held-out trees."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import InputError
from casewright.finetune.cross_encoder.groups import Group, check_held_out
from casewright.planner.language_model.device import find_device
from casewright.stores.encoders.cross_encoder import UNREAD_LOGIT, WEIGHTS, encode_pair
from casewright.stores.encoders.mpnet import PADDING
from casewright.stores.encoders.mpnet_weights import (
    MAX_TOKENS,
    PASSAGE,
    SMOOTHING,
    TOKEN,
    UNUSED_POSITIONS,
    WIDTH,
    Unpacked,
    count_layers,
    read_weights,
    save_weights,
)
from casewright.stores.passages.search import SEARCH_WEIGHT, USUAL_SCORE
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Number of groups in one forward pass; fewer groups need less memory.
CHUNK_SIZE = 2


@dataclass(frozen=True, slots=True)
class CrossEncoderSettings:
    """The settings of a training.

    Attributes:
        minutes: Maximum duration. The rates fall until this time or ``epochs`` ends the training.
        epochs: Maximum number of passes over the groups.
        batch: Number of groups in a step.
        passages: Maximum number of passages of a group.
        rate: The highest learning rate of the layers; the embeddings are not trained.
        head_rate: The highest learning rate of the two affine maps that give the logits.
        warm_up: Share of the steps in which the learning rates rise.
        without_answer: Share of the groups from which the passages with an answer are left out.
    """

    minutes: float = 60.0
    epochs: int = 2
    batch: int = 32
    passages: int = 10
    rate: float = 4e-5
    head_rate: float = 1e-3
    warm_up: float = 0.05
    dropout: float = 0.1
    without_answer: float = 0.25
    seed: int = 0


def train_cross_encoder(
    groups: Sequence[Group],
    target: Path,
    settings: CrossEncoderSettings,
    *,
    base: Path = WEIGHTS,
    held_out: Collection[str] = (),
    device: str | None = None,
) -> dict[str, Any]:
    """Train a cross-encoder on groups, write its weights, and return settings and figures.

    Args:
        base: The weights to begin with.
        held_out: Trees that are not trained on, and whose groups give the figures.
        device: A PyTorch device, by default the first GPU or else the CPU.

    Raises:
        InputError: No group to train on has an answer, a held-out tree has no group, ``base`` is
            damaged, or the machine lacks the device.
    """
    import torch

    found_device = find_device(device)
    check_held_out(held_out, groups)
    usable = [g for g in groups if g.passages and (g.gold or g.is_unanswerable)]
    training = [group for group in usable if group.tree not in held_out]
    if not any(group.gold for group in training):
        raise InputError(
            "No question to train on has a quote that the search finds. Copy quotes from the trees "
            "character by character, and leave a tree that is not held out."
        )
    torch.manual_seed(settings.seed)
    original = Unpacked(read_weights(base))
    network = _network(original, settings.dropout).to(found_device)
    started, rng = time.monotonic(), random.Random(settings.seed)
    parts, max_rates = (network["mpnet"], network["heads"]), (settings.rate, settings.head_rate)
    trainable = [[p for p in part.parameters() if p.requires_grad] for part in parts]
    optimizer = torch.optim.AdamW([{"params": parameters} for parameters in trainable])
    steps = settings.epochs * -(-len(training) // settings.batch)
    step, progress = 0, 0.0
    with progress_bar("Training the cross-encoder", steps) as advance:
        while progress < 1:
            rng.shuffle(training)
            for start in range(0, len(training), settings.batch):
                progress = max(step / steps, (time.monotonic() - started) / (60 * settings.minutes))
                if progress >= 1:
                    break
                rate_factor = (
                    min(1.0, (step + 1) / (1 + settings.warm_up * steps))
                    * (1 + np.cos(np.pi * progress))
                    / 2
                )
                for parameter_group, rate in zip(optimizer.param_groups, max_rates, strict=True):
                    parameter_group["lr"] = rate * rate_factor
                batch = [
                    _sample(g, settings, rng) for g in training[start : start + settings.batch]
                ]
                optimizer.zero_grad()
                for first in range(0, len(batch), CHUNK_SIZE):
                    loss = _loss(network, batch[first : first + CHUNK_SIZE], found_device)
                    (loss / len(batch)).backward()
                torch.nn.utils.clip_grad_norm_([p for part in trainable for p in part], 1.0)
                optimizer.step()
                step += 1
                advance(1)
    # Without ``mpnet.`` or ``heads.``, the names are those of the weights' file.
    weights = {
        name.split(".", 1)[1]: parameter.detach().float().cpu().numpy()
        for name, parameter in network.named_parameters()
    }
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise InputError("The training diverged: its weights are not finite. Correct the data.")
    weights |= {name: original[name] for name in original if name.endswith(SMOOTHING)}
    save_weights(target, weights)
    figures = _figures(network.eval(), [g for g in usable if g.tree in held_out], found_device)
    return {**asdict(settings), "groups": len(training), "steps": step, **figures}


def _network(weights: Unpacked, dropout: float) -> Any:
    import torch
    import transformers

    config = transformers.MPNetConfig(
        num_hidden_layers=count_layers(weights),
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5,
        max_position_embeddings=MAX_TOKENS + UNUSED_POSITIONS,
    )
    mpnet = transformers.MPNetModel(config, add_pooling_layer=False)
    heads = {name: torch.nn.Linear(WIDTH, 1) for name in (PASSAGE, TOKEN)}
    network = torch.nn.ModuleDict({"mpnet": mpnet, "heads": torch.nn.ModuleDict(heads)})
    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    for part in network.values():
        names = [name for name, _ in part.named_parameters()]
        part.load_state_dict({name: tensors[name] for name in names}, strict=False)
    mpnet.embeddings.requires_grad_(False)
    mpnet.encoder.relative_attention_bias.requires_grad_(False)
    return network.train()


def _sample(group: Group, settings: CrossEncoderSettings, rng: random.Random) -> Group:
    """Return a group with fewer passages, in random order, sometimes without its answers."""
    answers = {number for number, _ in group.gold}
    others = [number for number in range(len(group.passages)) if number not in answers]
    leaves_out_answers = bool(others) and rng.random() < settings.without_answer
    chosen = [] if leaves_out_answers else [*answers][: settings.passages]
    # Half of the groups get the best other passages of the search, which are the hardest.
    others = others if rng.random() < 0.5 else rng.sample(others, len(others))
    chosen += others[: settings.passages - len(chosen)]
    rng.shuffle(chosen)
    gold = {(chosen.index(n), part) for n, part in group.gold if n in chosen}
    return replace(
        group,
        passages=[group.passages[number] for number in chosen],
        scores=[group.scores[number] for number in chosen],
        gold=frozenset(gold),
    )


def _loss(network: Any, groups: Sequence[Group], device: torch.device) -> Tensor:
    """Return the sum of the losses: -log p of the gold parts, or of no answer, whose logit is 0."""
    import torch

    losses = []
    for group, logits in zip(groups, _logits(network, groups, device), strict=True):
        gold = [logits[number][part] for number, part in group.gold]
        no_answer = torch.zeros(1, device=device)
        total = torch.logsumexp(torch.cat([no_answer, *logits]), 0)
        right = torch.logsumexp(torch.stack(gold), 0) if gold else no_answer[0]
        losses.append(total - right)
    return torch.stack(losses).sum()


def _logits(network: Any, groups: Sequence[Group], device: torch.device) -> list[list[Tensor]]:
    """Return parts' logits by group and passage; a logit includes the passage's search score."""
    import torch

    pairs = [encode_pair(group.question, p) for group in groups for p in group.passages]
    width = max(len(pair.ids) for pair in pairs)
    ids = torch.full((len(pairs), width), PADDING)
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = torch.tensor(pair.ids)
    ids = ids.to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        states = network["mpnet"](ids, attention_mask=ids != PADDING).last_hidden_state
    states = states.float()
    heads = network["heads"]
    scores = torch.tensor([score for group in groups for score in group.scores], device=device)
    search_logits = SEARCH_WEIGHT * (scores[:, None] - USUAL_SCORE)
    passage_logits = heads[PASSAGE](states[:, 0]) + search_logits
    rows = zip(heads[TOKEN](states)[..., 0], passage_logits, pairs, strict=True)
    logits = (_part_logits(tokens, passage, pair.boundaries) for tokens, passage, pair in rows)
    return [[next(logits) for _ in group.passages] for group in groups]


def _part_logits(token_logits: Tensor, passage_logit: Tensor, boundaries: Sequence[int]) -> Tensor:
    """Return each part's logit: the log-mean-exp of its tokens' logits plus the passage's logit."""
    import torch

    unread = torch.full_like(passage_logit[0], UNREAD_LOGIT)
    parts = [
        torch.logsumexp(token_logits[start:end], 0) - np.log(end - start) + passage_logit[0]
        if start < end
        else unread
        for start, end in pairwise(boundaries)
    ]
    return torch.stack(parts) if parts else passage_logit[:0]


def _figures(network: Any, groups: Sequence[Group], device: torch.device) -> dict[str, float]:
    """Return how often the best part and its passage are right, and the AUC of answerability.

    ``first passage`` is the control: how often the first passage of the search is right.
    """
    import torch

    hits: list[tuple[bool, bool, bool]] = []
    log_odds: dict[bool, list[float]] = {True: [], False: []}  # by whether an answer is there
    for group in groups:
        with torch.no_grad():
            [logits] = _logits(network, [group], device)
        best = max(range(len(logits)), key=lambda n: max(logits[n].tolist(), default=UNREAD_LOGIT))
        log_odds[bool(group.gold)].append(float(torch.logsumexp(torch.cat(logits), 0)))
        if group.gold:
            numbers = {number for number, _ in group.gold}
            part = (best, int(logits[best].argmax()))
            hits.append((part in group.gold, best in numbers, 0 in numbers))
    names = ("right part", "right passage", "first passage")
    means = np.mean(hits, axis=0) if hits else []
    figures = {name: round(float(mean), 3) for name, mean in zip(names, means, strict=False)}
    if log_odds[True] and log_odds[False]:
        wins = np.array(log_odds[True])[:, None] > np.array(log_odds[False])
        figures["AUC of answerable"] = round(float(wins.mean()), 3)
    return figures
