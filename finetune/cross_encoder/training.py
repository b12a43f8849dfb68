"""Training of the cross-encoder on groups, with figures of held-out trees."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.errors import InputError
from casewright.finetune.cross_encoder.groups import Group, check_trees
from casewright.planner.language_model.device import find_device
from casewright.stores.encoders.cross_encoder import UNREAD, encode_pair, save_weights
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_export import quiet
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Number of groups in one forward pass, which limits the memory.
CHUNK = 8


@dataclass(frozen=True, slots=True)
class CrossEncoderSettings:
    """The settings of a training.

    Attributes:
        minutes: Maximum duration. The rates fall until this time or ``epochs`` ends the training.
        epochs: Maximum number of passes over the groups.
        batch: Number of groups in a step.
        passages: Maximum number of passages of a group.
        rate: The highest learning rate of MiniLM's layers; its embeddings are not trained.
        head_rate: The highest learning rate of the two linear layers that give the logits.
        warm_up: Number of steps in which the learning rates rise.
        without_answer: Share of the groups from which the passages that answer are left out.
        kept_change: Share of the weights' change that is kept. The result is the weighted mean
            of the trained and the original weights (Wortsman et al. 2022, arXiv 2109.01903).
    """

    minutes: float = 60.0
    epochs: int = 14
    batch: int = 64
    passages: int = 12
    rate: float = 3e-4
    head_rate: float = 1e-3
    warm_up: int = 100
    dropout: float = 0.1
    without_answer: float = 0.25
    kept_change: float = 0.8
    seed: int = 0


def train_cross_encoder(
    groups: Sequence[Group],
    target: Path,
    settings: CrossEncoderSettings,
    *,
    held_out: Collection[str] = (),
    device: str | None = None,
) -> dict[str, Any]:
    """Train the packaged encoder on groups, write the weights' file, and return figures.

    Args:
        held_out: Trees that are not trained on, and whose groups give the figures.
        device: A PyTorch device, by default the first GPU or else the CPU.

    Raises:
        InputError: No group to train on has an answer, no group is of a held-out tree, or the
            machine lacks the device.
    """
    import torch

    place = find_device(device)
    check_trees(held_out, groups)
    usable = [g for g in groups if g.passages and (g.gold or g.unanswerable)]
    training = [group for group in usable if group.tree not in held_out]
    if not any(group.gold for group in training):
        raise InputError(
            "No question to train on has a quote that the search finds. Copy quotes from the trees "
            "character by character, and leave a tree that is not held out."
        )
    torch.manual_seed(settings.seed)
    network = _network(settings.dropout).to(place)
    original = {name: p.detach().cpu().clone() for name, p in network["bert"].named_parameters()}
    started, rng = time.monotonic(), random.Random(settings.seed)
    rates = ((network["bert"], settings.rate), (network["heads"], settings.head_rate))
    trained = [[p for p in part.parameters() if p.requires_grad] for part, _ in rates]
    optimizer = torch.optim.AdamW([{"params": parameters} for parameters in trained])
    steps = settings.epochs * -(-len(training) // settings.batch)
    step, done = 0, 0.0
    with progress_bar("Training the cross-encoder", steps) as advance:
        while done < 1:
            rng.shuffle(training)
            for start in range(0, len(training), settings.batch):
                done = max(step / steps, (time.monotonic() - started) / (60 * settings.minutes))
                if done >= 1:
                    break
                factor = min(1.0, (step + 1) / settings.warm_up) * (1 + np.cos(np.pi * done)) / 2
                for parameter_group, (_, rate) in zip(optimizer.param_groups, rates, strict=True):
                    parameter_group["lr"] = rate * factor
                drawn = [_drawn(g, settings, rng) for g in training[start : start + settings.batch]]
                optimizer.zero_grad()
                for first in range(0, len(drawn), CHUNK):
                    (_loss(network, drawn[first : first + CHUNK], place) / len(drawn)).backward()
                torch.nn.utils.clip_grad_norm_([p for part in trained for p in part], 1.0)
                optimizer.step()
                step += 1
                advance(1)
    with torch.no_grad():
        for name, parameter in network["bert"].named_parameters():
            parameter.lerp_(original[name].to(place), 1 - settings.kept_change)
    weights = {
        name.split(".", 1)[1]: parameter.detach().float().cpu().numpy()
        for name, parameter in network.named_parameters()
        if not name.startswith("bert.embeddings")
    }
    save_weights(target, weights)
    figures = _figures(network.eval(), [g for g in usable if g.tree in held_out], place)
    return {**asdict(settings), "groups": len(training), "steps": step, **figures}


def _network(dropout: float) -> Any:
    import torch
    import transformers

    with quiet():
        bert = transformers.AutoModel.from_pretrained(
            str(packaged_minilm()),
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=0.0,
        )
    bert.train()
    bert.embeddings.requires_grad_(False)
    # The pooler's weights would get no gradient.
    bert.pooler = None
    heads = {name: torch.nn.Linear(bert.config.hidden_size, 1) for name in ("cls", "part")}
    return torch.nn.ModuleDict({"bert": bert, "heads": torch.nn.ModuleDict(heads)})


def _drawn(group: Group, settings: CrossEncoderSettings, rng: random.Random) -> Group:
    """Return a group with fewer passages, in random order, sometimes without its answers."""
    answers = {number for number, _ in group.gold}
    others = [number for number in range(len(group.passages)) if number not in answers]
    leaves_out = bool(others) and rng.random() < settings.without_answer
    chosen = [] if leaves_out else [*answers][: settings.passages]
    # Half of the groups get the best other passages of the search, which are the hardest.
    others = others if rng.random() < 0.5 else rng.sample(others, len(others))
    chosen += others[: settings.passages - len(chosen)]
    rng.shuffle(chosen)
    gold = {(chosen.index(n), part) for n, part in group.gold if n in chosen}
    passages = [group.passages[number] for number in chosen]
    return Group(group.tree, group.question, passages, frozenset(gold), group.unanswerable)


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
    """Return the logits of the parts of each passage of each group, as ``CrossEncoder`` does."""
    import torch

    pairs = [encode_pair(group.question, p) for group in groups for p in group.passages]
    width = max(len(pair.ids) for pair in pairs)
    ids = torch.zeros(len(pairs), width, dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = torch.tensor(pair.ids)
        types[row, pair.passage_start : len(pair.ids)] = 1
        mask[row, : len(pair.ids)] = 1
    on_gpu = device.type == "cuda"
    with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        inputs = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
        states = network["bert"](**{n: t.to(device) for n, t in inputs.items()}).last_hidden_state
    states = states.float()
    heads = network["heads"]
    rows = zip(heads["part"](states)[..., 0], heads["cls"](states[:, 0]), pairs, strict=True)
    logits = (_part_logits(token, passage, pair.boundaries) for token, passage, pair in rows)
    return [[next(logits) for _ in group.passages] for group in groups]


def _part_logits(tokens: Tensor, passage: Tensor, boundaries: Sequence[int]) -> Tensor:
    import torch

    unread = torch.full_like(passage[0], UNREAD)
    parts = [
        torch.logsumexp(tokens[start:end], 0) - np.log(end - start) + passage[0]
        if start < end
        else unread
        for start, end in pairwise(boundaries)
    ]
    return torch.stack(parts) if parts else passage[:0]


def _figures(network: Any, groups: Sequence[Group], device: torch.device) -> dict[str, float]:
    """Return how often the best part and passage answer, and the AUC of answerable questions.

    ``first passage`` is the control: how often the first passage of the search answers.
    """
    import torch

    hits: list[tuple[bool, bool, bool]] = []
    log_odds: dict[bool, list[float]] = {True: [], False: []}
    for group in groups:
        with torch.no_grad():
            [logits] = _logits(network, [group], device)
        best = max(range(len(logits)), key=lambda n: max(logits[n].tolist(), default=UNREAD))
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
