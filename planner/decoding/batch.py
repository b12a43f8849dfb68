"""Plans for several questions in steps that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import CasewrightError, DecodingError
from casewright.planner.decoding.choice import Choose
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.room import Room
from casewright.planner.decoding.steps import Columns
from casewright.planner.decoding.writing import Writing
from casewright.planner.decoding.written import Written

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import LanguageModel


class _Row:
    """One of the plans, what was not read yet of its prompt and of itself, and what ended it."""

    def __init__(self, writing: Writing, tail: Sequence[int]) -> None:
        self.writing = writing
        self.unread = list(tail)
        self.error: CasewrightError | None = None
        self._try(lambda: self.unread + writing.begin())

    @property
    def ended(self) -> bool:
        return self.writing.ended or self.error is not None

    def go_on(self, logits: NDArray[np.float32]) -> None:
        self._try(lambda: self.writing.go_on(logits))

    def _try(self, write: Callable[[], list[int]]) -> None:
        try:
            self.unread = write()
        except CasewrightError as error:
            self.error = error


def write_together(
    model: LanguageModel,
    room: Room,
    tails: Sequence[Sequence[int]],
    matchers: Sequence[Matcher],
    limits: Limits,
    choose: Choose,
    *,
    head_reused: bool,
) -> list[Written | CasewrightError]:
    """Write behind a head that the room holds for each row; see ``Decoder.write_many``."""
    rows = [
        _Row(Writing(model, matcher, room.length + len(tail), limits, choose), tail)
        for matcher, tail in zip(matchers, tails, strict=True)
    ]
    columns = Columns(room, len(rows))
    going = rows
    while left := [row for row in going if not row.ended]:
        # Finished rows leave once they are the most: what stays is copied then.
        if 2 * len(left) <= len(going):
            columns.keep([at for at, row in enumerate(going) if not row.ended])
            going = left
        try:
            # A finished row reads something as well; nobody looks at it.
            tokens = [[0] if row.ended else row.unread for row in going]
            logits = columns.read(model, tokens, limits)
        except DecodingError as error:
            for row in left:
                row.error = error
            break
        for row, own in zip(going, logits, strict=True):
            if not row.ended:
                row.go_on(own)
    return [row.error or row.writing.written(head_reused=head_reused) for row in rows]
