"""Training a plan parser on with some annotated messages for one toolbox."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.finetune.parser.episodes import EpisodeSettings, Source
from casewright.finetune.parser.sources import drawing
from casewright.finetune.parser.training import ParserSettings, train_parser

if TYPE_CHECKING:
    from casewright.finetune.corpus import CorpusToolbox
    from casewright.planner.parser.parser_network import ParserNetwork

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
    """Look whether a file has enough annotated messages, and not too many.

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
