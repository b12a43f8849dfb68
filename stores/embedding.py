"""Embedding a batch of cases, some of which may be impossible to embed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from casewright.errors import FacetError
from casewright.stores.case import Case
from casewright.stores.schema import CaseSchema


def embedded(
    schema: CaseSchema,
    batch: list[Case],
    on_error: Callable[[Case, FacetError], None] | None,
    stored: int,
) -> tuple[list[Case], NDArray[np.float32]]:
    """Embed cases together; where one cannot be, one by one if the others are to go in.

    Args:
        schema: Says how.
        batch: The cases, with their ids.
        on_error: Told of each that cannot be embedded; without it the first one raises.
        stored: How many cases before this batch are stored, for the message.

    Returns:
        The cases that could be embedded, and their vectors, array (n, sum of dimensions).

    Raises:
        FacetError: A case cannot be embedded, and there is no ``on_error``.
    """
    try:
        return batch, schema.vectors([case.problem for case in batch])
    except FacetError as error:
        if on_error is None:
            raise FacetError(
                f"The case {batch[error.row].id} cannot be added: {error} The {stored} cases of "
                "the batches before it are stored. Mend it, leave it out, or pass on_error= to go "
                "on without such cases.",
                error.facet,
                error.row,
            ) from error
    kept, rows = [], [np.zeros((0, schema.dimension - 1), dtype=np.float32)]
    for case in batch:
        try:
            rows.append(schema.vectors([case.problem]))
        except FacetError as error:
            on_error(case, error)
        else:
            kept.append(case)
    return kept, np.concatenate(rows)
