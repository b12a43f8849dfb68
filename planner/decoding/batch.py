"""Plans for several questions in steps that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import CasewrightError, DecodingError
from casewright.planner.decoding.choice import Choose
from casewright.planner.decoding.limits import Limits, check_positions
from casewright.planner.decoding.room import Room
from casewright.planner.decoding.steps import Columns
from casewright.planner.decoding.written import Written

if TYPE_CHECKING:
    from casewright.planner.grammar import PlanMatcher
    from casewright.planner.language_model import LanguageModel


class _Row:
    """One of the plans, and what it has not read yet of its prompt and of itself."""

    def __init__(
        self, model: LanguageModel, matcher: PlanMatcher, length: int, tail: Sequence[int]
    ) -> None:
        self._model = model
        self._matcher = matcher
        self._prompt_tokens = length + len(tail)
        self._written: list[int] = []
        self._forced = 0
        self._steps = 0
        self._error: CasewrightError | None = None
        self.unread = list(tail)
        self.ended = False

    def go_on(self, logits: NDArray[np.float32] | None, choose: Choose, limits: Limits) -> None:
        """Write a token, chosen by the logits after the last one, and those that are forced."""
        try:
            new: list[int] = []
            if logits is not None:
                self._steps += 1
                token = choose(logits, self._matcher)
                if token in self._model.ends:
                    self.ended = True
                    return
                self._matcher.consume(token)
                new, self.unread = [token], []
            forced = self._matcher.forced()
            self._forced += len(forced)
            new += forced
            self._written += new
            self.unread += new
            self.ended = self._matcher.finished
            limits.check_tokens(len(self._written))
            check_positions(self._model, self._prompt_tokens + len(self._written))
        except CasewrightError as error:
            self.fail(error)

    def fail(self, error: CasewrightError) -> None:
        """End without a plan."""
        self._error, self.ended = error, True

    def result(self, head_reused: bool) -> Written | CasewrightError:
        """Return the plan, or what ended it."""
        return self._error or Written(
            tuple(self._written), self._steps, self._forced, self._prompt_tokens, head_reused
        )


def write_together(
    model: LanguageModel,
    room: Room,
    tails: Sequence[Sequence[int]],
    matchers: Sequence[PlanMatcher],
    limits: Limits,
    choose: Choose,
    *,
    head_reused: bool,
) -> list[Written | CasewrightError]:
    """Write behind a head that the room holds for each row; see ``Decoder.write_many``."""
    rows = [
        _Row(model, matcher, room.length, tail)
        for matcher, tail in zip(matchers, tails, strict=True)
    ]
    columns = Columns(room, len(rows))
    for row in rows:
        row.go_on(None, choose, limits)
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
                row.fail(error)
            break
        for row, own in zip(going, logits, strict=True):
            if not row.ended:
                row.go_on(own, choose, limits)
    return [row.result(head_reused) for row in rows]
