"""Contrastive training of an encoder on a user's cases (proposed in CBR-RAG, section 7).

The training makes a case's shortest text, such as a question or title, more similar to the case's
other texts than to the texts of other cases. The training needs no annotation.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_export import quiet
from casewright.stores.progress import note

Pair = tuple[str, str]
#: Hard negatives are drawn from the ``NEAREST_COUNT`` most similar texts of other cases. Texts that
#: may match are omitted: their similarity is above (1 - ``MARGIN``) times the pair's similarity.
NEAREST_COUNT, MARGIN = 30, 0.05
#: Minimum number of pairs: the loss compares a pair with the other pairs of the batch.
MIN_PAIRS = 8


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """The settings of an encoder's training.

    Attributes:
        batch: Number of pairs in a batch.
        rate: The learning rate.
        tokens: Maximum number of tokens of a text; longer texts are cut.
        negatives: Number of hard negatives of each pair.
        pairs: Number of randomly chosen pairs to train on; ``None`` for all pairs.
    """

    epochs: int = 2
    batch: int = 16
    rate: float = 2e-5
    tokens: int = 128
    negatives: int = 1
    pairs: int | None = None
    seed: int = 0


def case_pairs(schema: CaseSchema, cases: Iterable[Case]) -> Iterator[Pair]:
    """Yield pairs of texts: each case's shortest text with each of its other texts.

    The texts of a case are one text per facet, and the solution if the solution is a text.
    """
    for case in cases:
        facets = [f for f in schema.facets if f.takes_text and f.reads(case.problem)]
        texts = [f.describe({name: case.problem[name] for name in f.components}) for f in facets]
        texts += [case.solution] if isinstance(case.solution, str) else []
        shortest, *others = sorted(dict.fromkeys(filter(str.strip, texts)), key=len) or [""]
        yield from ((shortest, other) for other in others)


def train_encoder(
    pairs: Sequence[Pair], target: Path, settings: EncoderSettings | None = None
) -> dict[str, Any]:
    """Train the packaged encoder, write it to the folder ``target``, and return the metrics.

    The loss (``MultipleNegativesRankingLoss`` of sentence-transformers) compares each pair with the
    other texts of the batch, and with hard negatives that the untrained encoder finds.

    Raises:
        InputError: There are too few pairs.
        DependencyError: The packaged encoder is not installed.
    """
    settings = settings or EncoderSettings()
    if len(pairs) < MIN_PAIRS:
        raise InputError(
            f"The cases have {len(pairs)} pairs of texts, and {MIN_PAIRS} are needed. Give cases "
            "with two or more texts, such as a question and its support."
        )
    import sentence_transformers as st
    from datasets import Dataset
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.util import mine_hard_negatives
    from transformers import PrinterCallback

    from casewright.finetune.training.log import reporting_callback

    sample_size = min(len(pairs), settings.pairs or len(pairs))
    sample = random.Random(settings.seed).sample(pairs, sample_size)
    anchors, positives = map(list, zip(*sample, strict=True))
    note(f"Training the encoder on {len(sample):,} of {len(pairs):,} pairs of texts …")
    with TemporaryDirectory() as folder:
        with quiet():
            model = st.SentenceTransformer(str(packaged_minilm()), device="cpu")
            packaged_max_length = model.max_seq_length
            model.max_seq_length = settings.tokens
            examples = mine_hard_negatives(
                Dataset.from_dict({"anchor": anchors, "positive": positives}),
                model,
                num_negatives=settings.negatives,
                range_max=NEAREST_COUNT,
                relative_margin=MARGIN,
                output_format="n-tuple",
                verbose=False,
            )
        arguments = st.SentenceTransformerTrainingArguments(
            folder,
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch,
            learning_rate=settings.rate,
            warmup_steps=0.1,
            seed=settings.seed,
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = st.SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=examples,
            loss=MultipleNegativesRankingLoss(model),
            callbacks=[reporting_callback(Path(folder, "log.jsonl"), show=None)],
        )
        trainer.remove_callback(PrinterCallback)
        result = trainer.train()
        model.max_seq_length = packaged_max_length
        with quiet():
            model.save(str(target))
    return {
        **asdict(settings),
        "pairs": len(pairs),
        "pairs_with_hard_negatives": len(examples),
        "steps": result.global_step,
        "loss": result.training_loss,
        "seconds": result.metrics["train_runtime"],
    }
