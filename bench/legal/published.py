"""The figures that CBR-RAG published; its table is read from where it is kept."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.bench.legal.measures import KS, Weighting
from casewright.errors import InputError

FILE = "cbr_rag_published_f1_at_k.csv"
#: How the paper's figures are called beside ours.
SOURCE = "CBR-RAG, section 6, F1@k"
#: The paper's cosine of answer and reference, by what the prompt held (section 6).
PUBLISHED_ANSWERS = {"no cases": 0.8967, "3 × full case": 0.9141}


@dataclass(frozen=True, slots=True)
class Published:
    """One row of the paper's table.

    Attributes:
        encoder: Its encoder.
        weights: Its weighting.
        scores: F1@k, one for each k.
    """

    encoder: str
    weights: Weighting
    scores: Sequence[float]


def read_published(data: Path | None) -> list[Published]:
    """Read the paper's table from a folder, or from ``alqa_partial`` in it; none is no error.

    Raises:
        InputError: The file is there and has another form.
    """
    for folder in () if data is None else (data, data / "alqa_partial"):
        if (file := folder / FILE).is_file():
            return _read(file)
    return []


def _read(file: Path) -> list[Published]:
    found = []
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                encoder, _, weights = row["algorithm"].partition(" ")
                first, second, third = (float(part) for part in weights.strip("[]").split(","))
                scores = [float(row[f"k{k}"]) for k in KS]
                found.append(Published(encoder, (first, second, third), scores))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} is not the paper's table ({type(error).__name__}: {error}). It has the "
            f"columns algorithm and {', '.join(f'k{k}' for k in KS)}."
        ) from error
    return found
