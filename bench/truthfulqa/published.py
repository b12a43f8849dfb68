"""The paper's tables, which a user gives as a file: they are not part of this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from casewright.errors import InputError

#: Model to retriever to measure to what the paper printed.
Published = Mapping[str, Mapping[str, Mapping[str, float]]]
#: How the paper calls what the rows have.
MEASURES = ("DPO", "MC1", "MC2", "MC3")


def read_published(file: Path, retrievers: tuple[str, ...]) -> Published:
    """Read ``{"Mistral-7B": {"relevance": {"DPO": …, "MC1": …, "MC2": …, "MC3": …}}}``.

    Raises:
        InputError: The file cannot be read, or names another retriever or measure.
    """
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
        made = {
            str(model): {
                str(row): {str(name): float(value) for name, value in figures.items()}
                for row, figures in rows.items()
            }
            for model, rows in read.items()
        }
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} has no published figures. Write {{model: {{retriever: {{measure: number}}}}}}."
        ) from error
    for model, rows in made.items():
        for row, figures in rows.items():
            if row not in retrievers or not set(figures) <= set(MEASURES):
                raise InputError(
                    f"{file}, {model}: {row!r} with {sorted(figures)}. Retrievers are "
                    f"{', '.join(retrievers)}; measures are {', '.join(MEASURES)}."
                )
    return made
