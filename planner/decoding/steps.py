"""Calls of the network: some tokens in, the logits after the last or after several of them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.room import Room

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Tokens that are read in one call, so that a deadline is looked at in a long prompt too.
CHUNK = 512


def read(
    model: LanguageModel,
    room: Room,
    tokens: Sequence[int],
    limits: Limits,
    places: Sequence[int] | None = None,
) -> NDArray[np.float32]:
    """Read the tokens of one row behind what the room holds.

    Args:
        model: Reads.
        room: Holds the states of what was read before; those of the tokens are added.
        tokens: At least one.
        limits: For the deadline.
        places: Which of the tokens logits are wanted after, ascending; the last by default.

    Returns:
        Logits of shape ``(places, vocabulary)``.

    Raises:
        DecodingError: The deadline was over between two calls.
    """
    import torch

    wanted = [len(tokens) - 1] if places is None else places
    found: list[Any] = []
    with torch.no_grad():
        for start in range(0, len(tokens), CHUNK):
            limits.check_time()
            chunk = torch.tensor([tokens[start : start + CHUNK]], device=model.device)
            positions = torch.arange(room.length, room.length + chunk.shape[1]).to(model.device)
            here = places_in(wanted, start, CHUNK)
            last = here in ([], [chunk.shape[1] - 1])
            logits = model.network(
                input_ids=chunk,
                position_ids=positions[None],
                past_key_values=room,
                use_cache=True,
                logits_to_keep=1 if last else torch.tensor(here, device=model.device),
            ).logits[0]
            found.append(logits[: len(here)])
    return on_host(torch.cat(found))


def places_in(places: Sequence[int], start: int, size: int) -> list[int]:
    """Return those of the places that lie in a chunk, counted from its start."""
    return [place - start for place in places if start <= place < start + size]


def on_host(logits: Any) -> NDArray[np.float32]:
    """Return logits of any device and type as an array."""
    array: NDArray[np.float32] = logits.float().cpu().numpy()
    return array


class Columns:
    """The columns of rows that are read together, and which of them hold a token of which row.

    Rows get as many columns a step as the row with the most new tokens needs; those of the others
    stand at the right end of theirs, so that every row's last token is in the last column. What is
    left of them is masked.
    """

    def __init__(self, room: Room, rows: int) -> None:
        self._room = room
        self._held = np.ones((rows, room.length), bool)
        self._positions = np.full(rows, room.length)

    def read(
        self, model: LanguageModel, tokens: Sequence[Sequence[int]], limits: Limits
    ) -> NDArray[np.float32]:
        """Read each row's new tokens, at least one a row.

        Returns:
            Logits after the last token of each row; shape ``(rows, vocabulary)``.

        Raises:
            DecodingError: The deadline was over between two calls.
        """
        import torch

        width = max(map(len, tokens))
        ids = np.zeros((len(tokens), width), np.int64)
        new = np.zeros((len(tokens), width), bool)
        for row, own in enumerate(tokens):
            ids[row, width - len(own) :] = own
            new[row, width - len(own) :] = True
        positions = self._positions[:, None] + np.maximum(np.cumsum(new, axis=1) - 1, 0)
        self._positions = self._positions + new.sum(axis=1)
        logits: Any = None
        with torch.no_grad():
            for start in range(0, width, CHUNK):
                limits.check_time()
                part = slice(start, start + CHUNK)
                self._held = np.concatenate([self._held, new[:, part]], axis=1)
                logits = model.network(
                    input_ids=torch.from_numpy(ids[:, part]).to(model.device),
                    attention_mask=torch.from_numpy(self._held).to(model.device),
                    position_ids=torch.from_numpy(positions[:, part]).to(model.device),
                    past_key_values=self._room,
                    use_cache=True,
                    logits_to_keep=1,
                ).logits[:, -1]
        assert logits is not None
        return on_host(logits)

    def keep(self, rows: Sequence[int]) -> None:
        """Forget all other rows."""
        self._room.keep(rows)
        self._held = self._held[list(rows)]
        self._positions = self._positions[list(rows)]
