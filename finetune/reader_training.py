"""Training of the plan reader: LoRA on the packaged encoder, and a new decoder and pointers."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, InputError
from casewright.finetune.reader_data import Lesson, OwnToolExample, lessons, trained_templates
from casewright.planner import AnnotatedQuery
from casewright.planner.reader import reader_tokenizer
from casewright.planner.reader_input import MAX_SLOTS, ReaderInput, padded
from casewright.planner.reader_weights import ReaderCard
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_export import quiet
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from torch import Tensor

    from casewright.planner.reader_network import ReaderNetwork

#: Number of batches whose questions are sorted by length together, to reduce padding.
BUCKET = 16
#: Number of epochs for thousands of queries.
EPOCHS = 6
#: Minimum number of steps. Six epochs of 200 queries would be only 78 steps, 60 of them warm-up.
STEPS = 200
#: The target that the loss ignores, torch's default.
IGNORED = -100
#: The logit of options that are not allowed.
EXCLUDED = -1e4


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Settings of a training of a reader.

    Attributes:
        epochs: Number of passes over the queries; ``None`` for the default of ``passes``.
        contrast: Weight of the contrastive loss of latents (Khosla et al. 2020).
        hidden: Share of previous sub-queries whose template is hidden from the decoder.
        distracted: Share of queries that get a tool of another record as a distractor.
    """

    epochs: int | None = None
    batch: int = 16
    rank: int = 32
    lora_rate: float = 1e-3
    head_rate: float = 5e-4
    smoothing: float = 0.05
    contrast: float = 0.2
    temperature: float = 0.07
    hidden: float = 0.1
    distracted: float = 0.15
    warm_up: int = 60
    seed: int = 0

    def passes(self, queries: int) -> int:
        """Return the number of epochs: by default six, or more for ``STEPS`` steps."""
        if self.epochs is not None:
            return self.epochs
        return max(EPOCHS, -(-STEPS // -(-queries // self.batch)))


def train_reader(
    queries: Sequence[AnnotatedQuery],
    settings: ReaderSettings | None = None,
    *,
    progress: bool | None = None,
) -> tuple[ReaderNetwork, ReaderCard]:
    """Return a reader that is trained on annotated queries, and its card.

    Args:
        queries: At least 20 queries, with at least two templates.
        settings: ``None`` for the settings of the packaged reader.
        progress: Show a bar on stderr; ``None`` shows it on a terminal.

    Raises:
        InputError: There are too few queries.
        DependencyError: peft is not installed.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise DependencyError(
            "Training needs peft. Run: pip install 'casewright[finetune]'"
        ) from error
    import torch
    from transformers import AutoModel

    from casewright.planner.reader_network import ReaderNetwork

    settings = settings or ReaderSettings()
    templates = trained_templates(queries)
    data = lessons(queries, templates, reader_tokenizer())
    if len(data) < 20 or len(templates) < 2:
        raise InputError(
            f"{len(data)} queries with {len(templates)} plan templates are too few to train a "
            "reader. Annotate at least 20 queries, with at least two templates, twice each."
        )
    started = time.time()
    torch.manual_seed(settings.seed)
    adapter = LoraConfig(
        r=settings.rank,
        lora_alpha=2 * settings.rank,
        lora_dropout=0.05,
        target_modules=["query", "key", "value", "dense"],
    )
    with quiet():
        base: Any = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
        base = get_peft_model(base, adapter)
    network = ReaderNetwork(base, len(templates))
    _fit(network, data, settings, progress)
    facts = {
        **asdict(settings),
        "epochs": settings.passes(len(data)),
        "queries": len(data),
        "forms": len(templates),
        "seconds": round(time.time() - started),
        "torch": torch.__version__,
    }
    return network, ReaderCard(tuple(templates), 2.0, facts)


def _fit(
    network: ReaderNetwork, data: Sequence[Lesson], settings: ReaderSettings, progress: bool | None
) -> None:
    import torch

    draw = random.Random(settings.seed)
    adapters = [p for n, p in network.named_parameters() if "lora_" in n]
    heads = [p for n, p in network.named_parameters() if not n.startswith("encoder.")]
    groups = ((adapters, settings.lora_rate), (heads, settings.head_rate))
    optimizer = torch.optim.AdamW(
        [{"params": parameters, "lr": rate} for parameters, rate in groups], weight_decay=0.01
    )
    epochs = settings.passes(len(data))
    total = epochs * (-(-len(data) // settings.batch))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1, (step + 1) / settings.warm_up) * max(0, 1 - step / max(total, 1)),
    )
    tools = list({e.tool: e for lesson in data for e in lesson.examples}.values())
    network.train()
    with progress_bar("Training the plan reader", total, show=progress) as advance:
        for _ in range(epochs):
            for batch in _batches(data, settings.batch, draw):
                loss = _loss(network, batch, tools, settings, draw)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_([*adapters, *heads], 1.0)
                optimizer.step()
                schedule.step()
                advance(1)
    network.eval()


def _batches(data: Sequence[Lesson], size: int, draw: random.Random) -> list[list[Lesson]]:
    """Return batches of lessons of similar length, in random order."""
    order = draw.sample(data, len(data))
    results = []
    for start in range(0, len(order), size * BUCKET):
        bucket = sorted(order[start : start + size * BUCKET], key=lambda item: len(item.read.ids))
        results += [bucket[first : first + size] for first in range(0, len(bucket), size)]
    draw.shuffle(results)
    return results


def _loss(
    network: ReaderNetwork,
    batch: Sequence[Lesson],
    tools: Sequence[OwnToolExample],
    settings: ReaderSettings,
    draw: random.Random,
) -> Tensor:
    """Return the sum of the losses of templates, label smoothing, latents and pointers."""
    import torch
    from torch.nn import functional

    states, mask = _encoded(network, [lesson.read for lesson in batch])
    width, count = states.shape[1], network.unknown - 1
    positions = max(len(lesson.templates) for lesson in batch) + 1
    previous = torch.zeros((len(batch), positions), dtype=torch.long)
    target = torch.full((len(batch), positions), IGNORED)
    literal_weights = torch.zeros((len(batch), positions, width))
    shown = [_shown(lesson, tools, settings, draw) for lesson in batch]
    for row, lesson in enumerate(batch):
        names = [example.tool for example in shown[row]]
        previous[row, 0] = network.start
        for index, (template, tool) in enumerate(zip(lesson.templates, lesson.tools, strict=True)):
            if tool:
                target[row, index] = count + 1 + names.index(tool)
            elif template is not None:
                target[row, index] = template
            hidden = draw.random() < settings.hidden
            previous[row, index + 1] = network.unknown if hidden or template is None else template
            weights = lesson.read.coverage(lesson.spans[index], width)
            literal_weights[row, index + 1] = torch.from_numpy(weights)
        target[row, len(lesson.templates)] = 0
    decoded = network.decode(states, mask, previous, literal_weights)
    latents = network.latents(decoded)
    example_scores, examples, owners = _examples(network, latents, shown)
    logits = torch.cat([network.scores(latents), example_scores], dim=-1)
    for row, lesson in enumerate(batch):
        excluded = [n for n in range(1, count + 1) if n not in lesson.admitted]
        logits[row, :, excluded] = EXCLUDED
    loss: Tensor = functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    if settings.smoothing:
        loss = loss + settings.smoothing * _smoothing_loss(logits, target)
    loss = loss + settings.contrast * _contrast(
        latents, target, shown, examples, owners, count, settings.temperature
    )
    return loss + _pointers(network, decoded, states, mask, batch)


def _shown(
    lesson: Lesson, tools: Sequence[OwnToolExample], settings: ReaderSettings, draw: random.Random
) -> list[OwnToolExample]:
    """Return a lesson's examples, with a random example of another record as a distractor."""
    shown = list(lesson.examples)
    if tools and draw.random() < settings.distracted:
        other = draw.choice(tools)
        if other.tool not in {example.tool for example in shown}:
            shown.append(other)
    return shown


def _encoded(network: ReaderNetwork, read: Sequence[ReaderInput]) -> tuple[Tensor, Tensor]:
    import torch

    ids, types, mask = (torch.from_numpy(part) for part in padded(read))
    return network.encode(ids, types, mask), mask


def _examples(
    network: ReaderNetwork, latents: Tensor, shown: Sequence[Sequence[OwnToolExample]]
) -> tuple[Tensor, Tensor, list[str]]:
    """Return the logits (batch, positions, examples), latents and tools of the examples."""
    import torch

    flat = list({id(example): example for example in chain(*shown)}.values())
    scores = torch.full((*latents.shape[:2], max(map(len, shown))), EXCLUDED)
    if not flat:
        return scores, latents.new_zeros((0, latents.shape[-1])), []
    states, mask = _encoded(network, [example.read for example in flat])
    start = torch.full((len(flat), 1), network.start)
    no_literals = torch.zeros((len(flat), 1, states.shape[1]))
    points = network.latents(network.decode(states, mask, start, no_literals))[:, 0]
    rows = {id(example): number for number, example in enumerate(flat)}
    for row, examples in enumerate(shown):
        if examples:
            own = points[[rows[id(example)] for example in examples]]
            scores[row, :, : len(examples)] = network.example_scores(latents[row], own)
    return scores, points, [example.tool for example in flat]


def _smoothing_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Return the loss of label smoothing over the admitted templates."""
    from torch.nn import functional

    flat = logits.flatten(0, 1)[target.flatten() != IGNORED]
    admitted = flat > EXCLUDED / 2
    log_probabilities = functional.log_softmax(flat, dim=-1).masked_fill(~admitted, 0.0)
    return -(log_probabilities.sum(-1) / admitted.sum(-1)).mean()


def _contrast(
    latents: Tensor,
    target: Tensor,
    shown: Sequence[Sequence[OwnToolExample]],
    examples: Tensor,
    owners: Sequence[str],
    count: int,
    temperature: float,
) -> Tensor:
    """Return the supervised contrastive loss of latents, whose classes are the templates."""
    import torch

    selected, labels = [], []
    tools = {tool: count + 1 + number for number, tool in enumerate(dict.fromkeys(owners))}
    for row, numbers in enumerate(target.tolist()):
        for index, number in enumerate(numbers):
            if number == IGNORED:
                continue
            is_example = number > count
            selected.append(latents[row, index])
            labels.append(tools[shown[row][number - count - 1].tool] if is_example else number)
    points = torch.cat([torch.stack(selected), examples])
    label = torch.tensor([*labels, *(tools[tool] for tool in owners)])
    diagonal = torch.eye(len(points), dtype=torch.bool)
    similarities = (points @ points.T / temperature).masked_fill(diagonal, EXCLUDED)
    log_shares = similarities.log_softmax(1)
    positive = (label[:, None] == label[None]) & ~diagonal
    has_positive = positive.any(1)
    if not bool(has_positive.any()):
        return latents.new_zeros(())
    sums = (log_shares * positive).sum(1)[has_positive]
    return -(sums / positive.sum(1)[has_positive]).mean()


def _pointers(
    network: ReaderNetwork,
    decoded: Tensor,
    states: Tensor,
    mask: Tensor,
    batch: Sequence[Lesson],
) -> Tensor:
    """Return the cross-entropy of each literal's first and last token."""
    import torch
    from torch.nn import functional

    literals = [
        (
            *(row, index, network.unknown if template is None else template, slot),
            *(lesson.read.first[span[0]], lesson.read.last[span[1]]),
        )
        for row, lesson in enumerate(batch)
        for index, (template, spans) in enumerate(zip(lesson.templates, lesson.spans, strict=True))
        for slot, span in enumerate(spans[:MAX_SLOTS])
        if span is not None
    ]
    if not literals:
        return states.new_zeros(())
    rows, positions, templates, slots, starts, ends = map(list, zip(*literals, strict=True))
    start, end = network.point(
        decoded[rows, positions], torch.tensor(templates), torch.tensor(slots), states[rows]
    )
    padding = mask[rows] == 0
    first, last = (
        functional.cross_entropy(logits.masked_fill(padding, EXCLUDED), torch.tensor(target))
        for logits, target in ((start, starts), (end, ends))
    )
    return 0.5 * (first + last)
