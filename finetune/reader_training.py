"""Training the plan reader: LoRA on the packaged encoder, decoder and pointers from scratch."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, InputError
from casewright.finetune.reader_data import Example, Lesson, lessons, trained_forms
from casewright.planner import AnnotatedQuery
from casewright.planner.reader import reader_tokenizer
from casewright.planner.reader_input import ReaderInput, padded
from casewright.planner.reader_weights import ReaderCard
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_export import quiet
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from torch import Tensor

    from casewright.planner.reader_network import ReaderNetwork

#: Batches whose questions are sorted by length together, so that little is padding.
BUCKET = 16
#: Passes over queries in their thousands.
EPOCHS = 6
#: Of training, at least: with 200 queries six epochs are 78 steps, 60 of them warming up.
STEPS = 200
#: Target of what is not to be learned; torch's own choice.
IGNORED = -100
OUT = -1e4


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Settings of a training of a reader.

    Attributes:
        epochs: Passes over the queries; ``None`` for ``passes``.
        contrast: Weight of the contrastive loss over latents (Khosla et al. 2020).
        hidden: Share of asks before that are shown as an unknown form.
        distracted: Share of queries that are shown another record's tool as well.
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
        """Return the number of epochs: six, or more where so few steps would hardly warm up."""
        if self.epochs is not None:
            return self.epochs
        return max(EPOCHS, -(-STEPS // -(-queries // self.batch)))


def train_reader(
    queries: Sequence[AnnotatedQuery],
    settings: ReaderSettings | None = None,
    *,
    progress: bool | None = None,
) -> tuple[ReaderNetwork, ReaderCard]:
    """Train a reader on annotated queries.

    Args:
        queries: What to learn from; at least 20, of at least two forms.
        settings: ``None`` for those of the shipped reader.
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

    chosen = settings or ReaderSettings()
    forms = trained_forms(queries)
    tokenizer = reader_tokenizer()
    taught = lessons(queries, forms, tokenizer)
    if len(taught) < 20 or len(forms) < 2:
        raise InputError(
            f"{len(taught)} queries with {len(forms)} forms of plans are too few to train a "
            "reader. Annotate at least 20 queries, with at least two kinds of plans, twice each."
        )
    started = time.time()
    torch.manual_seed(chosen.seed)
    with quiet():
        base: Any = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
        base = get_peft_model(
            base,
            LoraConfig(
                r=chosen.rank,
                lora_alpha=2 * chosen.rank,
                lora_dropout=0.05,
                target_modules=["query", "key", "value", "dense"],
            ),
        )
    network = ReaderNetwork(base, len(forms))
    _fit(network, taught, chosen, progress)
    facts = {
        **asdict(chosen),
        "epochs": chosen.passes(len(taught)),
        "queries": len(taught),
        "forms": len(forms),
        "seconds": round(time.time() - started),
        "torch": torch.__version__,
    }
    return network, ReaderCard(tuple(forms), 2.0, facts)


def _fit(
    network: ReaderNetwork, taught: Sequence[Lesson], chosen: ReaderSettings, progress: bool | None
) -> None:
    import torch

    draw = random.Random(chosen.seed)
    adapters = [p for n, p in network.named_parameters() if "lora_" in n]
    heads = [p for n, p in network.named_parameters() if not n.startswith("encoder.")]
    optimizer = torch.optim.AdamW(
        [
            {"params": adapters, "lr": chosen.lora_rate},
            {"params": heads, "lr": chosen.head_rate},
        ],
        weight_decay=0.01,
    )
    epochs = chosen.passes(len(taught))
    total = epochs * (-(-len(taught) // chosen.batch))

    def rate(step: int) -> float:
        return min(1.0, (step + 1) / chosen.warm_up) * max(0.0, 1 - step / max(total, 1))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    tools = list({e.tool: e for lesson in taught for e in lesson.examples}.values())
    network.train()
    with progress_bar("Training the plan reader", total, show=progress) as advance:
        for _ in range(epochs):
            for batch in _batches(taught, chosen.batch, draw):
                loss = _loss(network, batch, tools, chosen, draw)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_([*adapters, *heads], 1.0)
                optimizer.step()
                schedule.step()
                advance(1)
    network.eval()


def _batches(taught: Sequence[Lesson], size: int, draw: random.Random) -> list[list[Lesson]]:
    """Deal the lessons to batches of similar length, in random order."""
    order = draw.sample(range(len(taught)), len(taught))
    results = []
    for start in range(0, len(order), size * BUCKET):
        bucket = sorted(order[start : start + size * BUCKET], key=lambda i: len(taught[i].read.ids))
        results += [bucket[at : at + size] for at in range(0, len(bucket), size)]
    draw.shuffle(results)
    return [[taught[i] for i in batch] for batch in results]


def _loss(
    network: ReaderNetwork,
    batch: Sequence[Lesson],
    tools: Sequence[Example],
    chosen: ReaderSettings,
    draw: random.Random,
) -> Tensor:
    """Forms, contrast of latents, and pointers."""
    import torch
    from torch.nn import functional

    states, mask = _encoded(network, [lesson.read for lesson in batch])
    width, forms = states.shape[1], network.unknown - 1
    asks = max(len(lesson.forms) for lesson in batch) + 1
    before = torch.zeros((len(batch), asks), dtype=torch.long)
    wanted = torch.full((len(batch), asks), IGNORED)
    covered = torch.zeros((len(batch), asks, width))
    shown = [_shown(lesson, tools, chosen, draw) for lesson in batch]
    for row, lesson in enumerate(batch):
        names = [example.tool for example in shown[row]]
        before[row, 0] = network.start
        for index, (form, tool) in enumerate(zip(lesson.forms, lesson.tools, strict=True)):
            if tool:
                wanted[row, index] = forms + 1 + names.index(tool)
            elif form is not None:
                wanted[row, index] = form
            hidden = draw.random() < chosen.hidden
            before[row, index + 1] = network.unknown if hidden or form is None else form
            covered[row, index + 1] = torch.from_numpy(
                lesson.read.coverage(lesson.spans[index], width)
            )
        wanted[row, len(lesson.forms)] = 0
    decoded = network.decode(states, mask, before, covered)
    latents = network.latents(decoded)
    likeness, examples, owners = _examples(network, latents, shown)
    logits = torch.cat([network.scores(latents), likeness], dim=-1)
    for row, lesson in enumerate(batch):
        barred = [n for n in range(1, forms + 1) if n not in lesson.admitted]
        logits[row, :, barred] = OUT
    loss: Tensor = functional.cross_entropy(
        logits.flatten(0, 1), wanted.flatten(), label_smoothing=0.0
    )
    if chosen.smoothing:
        loss = loss + chosen.smoothing * _evenness(logits, wanted)
    loss = loss + chosen.contrast * _contrast(
        latents, wanted, shown, examples, owners, forms, chosen.temperature
    )
    return loss + _pointers(network, decoded, states, mask, batch)


def _shown(
    lesson: Lesson, tools: Sequence[Example], chosen: ReaderSettings, draw: random.Random
) -> list[Example]:
    """Return the examples that a lesson shows: its own, and now and then another record's."""
    shown = list(lesson.examples)
    if tools and draw.random() < chosen.distracted:
        other = draw.choice(tools)
        if other.tool not in {example.tool for example in shown}:
            shown.append(other)
    return shown


def _encoded(network: ReaderNetwork, read: Sequence[ReaderInput]) -> tuple[Tensor, Tensor]:
    import torch

    ids, types, mask = (torch.from_numpy(part) for part in padded(read))
    return network.encode(ids, types, mask), mask


def _examples(
    network: ReaderNetwork, latents: Tensor, shown: Sequence[Sequence[Example]]
) -> tuple[Tensor, Tensor, list[str]]:
    """Return logits (batch, asks, most shown) of the examples, their latents, their tools."""
    import torch

    flat = list({id(example): example for example in chain(*shown)}.values())
    most = max(map(len, shown))
    likeness = torch.full((*latents.shape[:2], most), OUT)
    if not flat:
        return likeness, latents.new_zeros((0, latents.shape[-1])), []
    states, mask = _encoded(network, [example.read for example in flat])
    start = torch.full((len(flat), 1), network.start)
    nothing = torch.zeros((len(flat), 1, states.shape[1]))
    own = network.latents(network.decode(states, mask, start, nothing))[:, 0]
    positions = {id(example): number for number, example in enumerate(flat)}
    for row, examples in enumerate(shown):
        if examples:
            chosen = own[[positions[id(example)] for example in examples]]
            likeness[row, :, : len(examples)] = network.likeness(latents[row], chosen)
    return likeness, own, [example.tool for example in flat]


def _evenness(logits: Tensor, wanted: Tensor) -> Tensor:
    """Label smoothing over the admitted forms alone."""
    from torch.nn import functional

    kept = wanted.flatten() != IGNORED
    flat = logits.flatten(0, 1)[kept]
    admitted = flat > OUT / 2
    likely = functional.log_softmax(flat, dim=-1).masked_fill(~admitted, 0.0)
    return -(likely.sum(-1) / admitted.sum(-1)).mean()


def _contrast(
    latents: Tensor,
    wanted: Tensor,
    shown: Sequence[Sequence[Example]],
    examples: Tensor,
    owners: Sequence[str],
    forms: int,
    temperature: float,
) -> Tensor:
    """Supervised contrast: asks of one form are near to each other, those of others far."""
    import torch

    kept, labels = [], []
    tools = {tool: forms + 1 + number for number, tool in enumerate(dict.fromkeys(owners))}
    for row, numbers in enumerate(wanted.tolist()):
        for index, number in enumerate(numbers):
            if number == IGNORED:
                continue
            own = number > forms
            kept.append(latents[row, index])
            labels.append(tools[shown[row][number - forms - 1].tool] if own else number)
    points = torch.cat([torch.stack(kept), examples])
    label = torch.tensor([*labels, *(tools[tool] for tool in owners)])
    same_one = torch.eye(len(points), dtype=torch.bool)
    likeness = (points @ points.T / temperature).masked_fill(same_one, OUT)
    likely = likeness - likeness.logsumexp(1, keepdim=True)
    together = (label[:, None] == label[None]) & ~same_one
    some = together.any(1)
    if not bool(some.any()):
        return latents.new_zeros(())
    return -((likely * together).sum(1)[some] / together.sum(1)[some]).mean()


def _pointers(
    network: ReaderNetwork,
    decoded: Tensor,
    states: Tensor,
    mask: Tensor,
    batch: Sequence[Lesson],
) -> Tensor:
    """Cross-entropy of where each literal starts and ends."""
    import torch
    from torch.nn import functional

    from casewright.planner.reader_limits import MAX_SLOTS

    rows, places, forms, slots, starts, ends = [], [], [], [], [], []
    for row, lesson in enumerate(batch):
        for index, (form, spans) in enumerate(zip(lesson.forms, lesson.spans, strict=True)):
            for slot, span in enumerate(spans[:MAX_SLOTS]):
                if span is not None:
                    rows.append(row)
                    places.append(index)
                    forms.append(network.unknown if form is None else form)
                    slots.append(slot)
                    starts.append(lesson.read.first[span[0]])
                    ends.append(lesson.read.last[span[1]])
    if not rows:
        return states.new_zeros(())
    start, end = network.point(
        decoded[rows, places], torch.tensor(forms), torch.tensor(slots), states[rows]
    )
    padding = mask[rows] == 0
    return 0.5 * sum(
        (
            functional.cross_entropy(logits.masked_fill(padding, OUT), torch.tensor(target))
            for logits, target in ((start, starts), (end, ends))
        ),
        start=states.new_zeros(()),
    )
