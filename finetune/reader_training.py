"""Trains the plan reader's network: the encoder's LoRA adapter, the decoder, and the pointers."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, InputError
from casewright.finetune.reader_data import (
    AddedToolExample,
    TrainingQuery,
    trained_templates,
    training_queries,
)
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

#: Number of batches in a bucket; a bucket's questions are sorted by length, to reduce padding.
BUCKET_BATCHES = 16
#: Default number of epochs, and minimum number of steps. Few queries get more epochs, since six
#: epochs of 200 queries would be only 78 steps, 60 of them warm-up.
EPOCHS, MIN_STEPS = 6, 200
#: Target of positions that the loss ignores; it is the default of torch.
IGNORED = -100
#: The logit of options that are not allowed.
EXCLUDED = -1e4


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Settings of a reader's training.

    Attributes:
        epochs: Number of epochs; ``None`` for the default of ``epoch_count``.
        head_rate: Learning rate of all weights outside the encoder; ``lora_rate`` is the adapter's.
        contrast: Weight of the contrastive loss of the sub-queries' vectors (Khosla et al. 2020).
        hidden: Share of earlier sub-queries whose template is hidden from the decoder.
        distracted: Share of queries with a distractor: a tool that another record adds.
        warm_up: Number of steps in which the learning rates rise.
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

    def epoch_count(self, queries: int) -> int:
        """Return the epochs for this many queries; by default six, or more for ``MIN_STEPS``."""
        if self.epochs is not None:
            return self.epochs
        return max(EPOCHS, math.ceil(MIN_STEPS / math.ceil(queries / self.batch)))


def train_reader(
    queries: Sequence[AnnotatedQuery],
    settings: ReaderSettings | None = None,
    *,
    progress: bool | None = None,
) -> tuple[ReaderNetwork, ReaderCard]:
    """Train a reader on annotated queries; return its network and its card.

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
    data = training_queries(queries, templates, reader_tokenizer())
    if len(data) < 20 or len(templates) < 2:
        raise InputError(
            f"{len(data)} queries with {len(templates)} plan templates are too few to train a "
            "reader. Annotate at least 20 queries, with at least two templates, twice each."
        )
    started = time.time()
    torch.manual_seed(settings.seed)
    adapter = LoraConfig(
        r=settings.rank,
        # The card's ``scale`` is this number divided by the rank.
        lora_alpha=2 * settings.rank,
        lora_dropout=0.05,
        target_modules=["query", "key", "value", "dense"],
    )
    with quiet():
        base: Any = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
        base = get_peft_model(base, adapter)
    network = ReaderNetwork(base, len(templates))
    _train(network, data, settings, progress)
    training_facts = {
        **asdict(settings),
        "epochs": settings.epoch_count(len(data)),
        "queries": len(data),
        "forms": len(templates),  # the former name of templates
        "seconds": round(time.time() - started),
        "torch": torch.__version__,
    }
    return network, ReaderCard(tuple(templates), scale=2.0, training=training_facts)


def _train(
    network: ReaderNetwork,
    data: Sequence[TrainingQuery],
    settings: ReaderSettings,
    progress: bool | None,
) -> None:
    import torch

    rng = random.Random(settings.seed)
    adapter_weights = [p for n, p in network.named_parameters() if "lora_" in n]
    head_weights = [p for n, p in network.named_parameters() if not n.startswith("encoder.")]
    adapter_group = {"params": adapter_weights, "lr": settings.lora_rate}
    head_group = {"params": head_weights, "lr": settings.head_rate}
    optimizer = torch.optim.AdamW([adapter_group, head_group], weight_decay=0.01)
    epochs = settings.epoch_count(len(data))
    step_count = epochs * math.ceil(len(data) / settings.batch)
    # The rates rise during the warm-up, and fall to 0 over the whole training.
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1, (step + 1) / settings.warm_up) * max(0, 1 - step / max(step_count, 1)),
    )
    tool_examples = list({e.tool: e for query in data for e in query.examples}.values())
    network.train()
    with progress_bar("Training the plan reader", step_count, show=progress) as advance:
        for _ in range(epochs):
            for batch in _batches(data, settings.batch, rng):
                loss = _loss(network, batch, tool_examples, settings, rng)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_([*adapter_weights, *head_weights], 1.0)
                optimizer.step()
                schedule.step()
                advance(1)
    network.eval()


def _batches(
    data: Sequence[TrainingQuery], size: int, rng: random.Random
) -> list[list[TrainingQuery]]:
    """Return batches of queries of similar length, in random order."""
    order = rng.sample(data, len(data))
    batches = []
    bucket_size = size * BUCKET_BATCHES
    for start in range(0, len(order), bucket_size):
        bucket = sorted(order[start : start + bucket_size], key=lambda query: len(query.input.ids))
        batches += [bucket[first : first + size] for first in range(0, len(bucket), size)]
    rng.shuffle(batches)
    return batches


def _loss(
    network: ReaderNetwork,
    batch: Sequence[TrainingQuery],
    tool_examples: Sequence[AddedToolExample],
    settings: ReaderSettings,
    rng: random.Random,
) -> Tensor:
    """Return the sum of four losses: of options, label smoothing, latents and pointers.

    The decoder chooses among numbered options: 0 is the end, 1 to ``network.unknown - 1`` are the
    templates, and the last numbers are the tools of the row's examples. The contrastive loss
    numbers its classes in the same way, but the last numbers are the tools of all rows' examples.
    """
    import torch
    from torch.nn import functional

    states, mask = _encode(network, [query.input for query in batch])
    width, template_count = states.shape[1], network.unknown - 1
    position_count = max(len(query.templates) for query in batch) + 1
    previous_templates = torch.zeros((len(batch), position_count), dtype=torch.long)
    options, classes = (torch.full((len(batch), position_count), IGNORED) for _ in range(2))
    literal_weights = torch.zeros((len(batch), position_count, width))
    row_examples = []
    for query in batch:
        is_distracted = bool(tool_examples) and rng.random() < settings.distracted
        distractors = [rng.choice(tool_examples)] if is_distracted else []
        own_tools = {example.tool for example in query.examples}
        row_examples.append([*query.examples, *(d for d in distractors if d.tool not in own_tools)])
    tool_names = dict.fromkeys(example.tool for example in chain(*row_examples))
    tool_classes = {tool: number for number, tool in enumerate(tool_names, template_count + 1)}
    for row, query in enumerate(batch):
        row_tools = [example.tool for example in row_examples[row]]
        previous_templates[row, 0] = network.start
        pairs = zip(query.templates, query.added_tools, strict=True)
        for index, (number, tool) in enumerate(pairs):
            if tool:
                options[row, index] = template_count + 1 + row_tools.index(tool)
                classes[row, index] = tool_classes[tool]
            elif number is not None:
                options[row, index] = classes[row, index] = number
            shown = None if rng.random() < settings.hidden else number
            previous_templates[row, index + 1] = network.unknown if shown is None else shown
            token_weights = query.input.token_weights(query.spans[index], width)
            literal_weights[row, index + 1] = torch.from_numpy(token_weights)
        options[row, len(query.templates)] = classes[row, len(query.templates)] = 0
    decoded = network.decode(states, mask, previous_templates, literal_weights)
    latents = network.latents(decoded)
    example_scores, example_latents, example_tools = _score_examples(network, latents, row_examples)
    logits = torch.cat([network.scores(latents), example_scores], dim=-1)
    for row, query in enumerate(batch):
        not_admitted = set(range(1, template_count + 1)) - query.admitted_templates
        logits[row, :, sorted(not_admitted)] = EXCLUDED
    loss: Tensor = functional.cross_entropy(logits.flatten(0, 1), options.flatten())
    if settings.smoothing:
        loss = loss + settings.smoothing * _smoothing_loss(logits, options)
    has_class = classes != IGNORED
    example_classes = torch.tensor([tool_classes[tool] for tool in example_tools], dtype=torch.long)
    contrastive = _contrastive_loss(
        torch.cat([latents[has_class], example_latents]),
        torch.cat([classes[has_class], example_classes]),
        settings.temperature,
    )
    pointing = _pointer_loss(network, decoded, states, mask, batch)
    return loss + settings.contrast * contrastive + pointing


def _encode(network: ReaderNetwork, inputs: Sequence[ReaderInput]) -> tuple[Tensor, Tensor]:
    import torch

    ids, types, mask = (torch.from_numpy(part) for part in padded(inputs))
    return network.encode(ids, types, mask), mask


def _score_examples(
    network: ReaderNetwork, latents: Tensor, examples_by_row: Sequence[Sequence[AddedToolExample]]
) -> tuple[Tensor, Tensor, list[str]]:
    """Return logits (batch, positions, examples), and the distinct examples' latents and tools."""
    import torch

    unique_examples = list({id(example): example for example in chain(*examples_by_row)}.values())
    scores = torch.full((*latents.shape[:2], max(map(len, examples_by_row))), EXCLUDED)
    if not unique_examples:
        return scores, latents.new_zeros((0, latents.shape[-1])), []
    states, mask = _encode(network, [example.input for example in unique_examples])
    start = torch.full((len(unique_examples), 1), network.start)
    no_literals = torch.zeros((len(unique_examples), 1, states.shape[1]))
    example_latents = network.latents(network.decode(states, mask, start, no_literals))[:, 0]
    index_of = {id(example): index for index, example in enumerate(unique_examples)}
    for row, examples in enumerate(examples_by_row):
        if examples:
            row_latents = example_latents[[index_of[id(example)] for example in examples]]
            scores[row, :, : len(examples)] = network.example_scores(latents[row], row_latents)
    return scores, example_latents, [example.tool for example in unique_examples]


def _smoothing_loss(logits: Tensor, options: Tensor) -> Tensor:
    """Return the loss of label smoothing: the mean of -log p over all options that are allowed."""
    from torch.nn import functional

    position_logits = logits.flatten(0, 1)[options.flatten() != IGNORED]
    allowed = position_logits > EXCLUDED / 2
    log_probabilities = functional.log_softmax(position_logits, dim=-1).masked_fill(~allowed, 0.0)
    return -(log_probabilities.sum(-1) / allowed.sum(-1)).mean()


def _contrastive_loss(latents: Tensor, classes: Tensor, temperature: float) -> Tensor:
    """Return the contrastive loss of latents (n, d); positive pairs have the same class (n,)."""
    import torch

    diagonal = torch.eye(len(latents), dtype=torch.bool)
    similarities = (latents @ latents.T / temperature).masked_fill(diagonal, EXCLUDED)
    log_probabilities = similarities.log_softmax(1)
    positive = (classes[:, None] == classes[None]) & ~diagonal
    has_positive = positive.any(1)
    if not bool(has_positive.any()):
        return latents.new_zeros(())
    sums = (log_probabilities * positive).sum(1)[has_positive]
    return -(sums / positive.sum(1)[has_positive]).mean()


def _pointer_loss(
    network: ReaderNetwork,
    decoded: Tensor,
    states: Tensor,
    mask: Tensor,
    batch: Sequence[TrainingQuery],
) -> Tensor:
    """Return the mean cross-entropy of the first and the last token of all literals."""
    import torch
    from torch.nn import functional

    literals = [
        (row, position, template, slot, *query.input.token_range(span))
        for row, query in enumerate(batch)
        for position, (template, spans) in enumerate(zip(query.templates, query.spans, strict=True))
        for slot, span in enumerate(spans[:MAX_SLOTS])
        if span is not None
    ]
    if not literals:
        return states.new_zeros(())
    rows, positions, templates, slots, starts, ends = map(list, zip(*literals, strict=True))
    numbers = torch.tensor([network.unknown if t is None else t for t in templates])
    logit_pair = network.point(decoded[rows, positions], numbers, torch.tensor(slots), states[rows])
    padding = mask[rows] == 0
    start_loss, end_loss = (
        functional.cross_entropy(logits.masked_fill(padding, EXCLUDED), torch.tensor(target))
        for logits, target in zip(logit_pair, (starts, ends), strict=True)
    )
    return 0.5 * (start_loss + end_loss)
