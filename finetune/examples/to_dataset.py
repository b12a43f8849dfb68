"""Training examples as a data set of Hugging Face's ``datasets``, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from casewright.errors import DependencyError
from casewright.finetune.examples.example import TrainingExample

if TYPE_CHECKING:
    from datasets import Dataset

#: The columns, and their types as Arrow names them.
COLUMNS = {
    "id": "string",
    "task": "string",
    "source": "string",
    "prompt": "string",
    "completion": "string",
    "seam": "int64",
}


def to_dataset(examples: Iterable[TrainingExample]) -> Dataset:
    """Return a data set with one row an example; ``prompt`` and ``completion`` are TRL's columns.

    The types are given, not guessed: of no rows, or of empty texts, ``datasets`` would make
    columns of nulls.

    Raises:
        DependencyError: ``datasets`` is not installed.
    """
    try:
        from datasets import Dataset, Features, Value
    except ImportError as error:
        raise DependencyError(
            "A data set needs the package datasets. Install casewright[finetune]."
        ) from error

    rows = [example.to_row() for example in examples]
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    features = Features({name: Value(kind) for name, kind in COLUMNS.items()})
    return Dataset.from_dict(columns, features=features)


def from_dataset(dataset: Dataset) -> list[TrainingExample]:
    """Return the examples of a data set that ``to_dataset`` made.

    Raises:
        InputError: A row has another form.
    """
    return [TrainingExample.from_row(row) for row in dataset]
