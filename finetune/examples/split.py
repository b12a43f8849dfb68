"""Training and validation: what is alike stays on one side."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Hashable, Sequence

from casewright.errors import InputError


def validation_items(groups: Sequence[Hashable], share: float, *, seed: int = 0) -> frozenset[int]:
    """Draw whole groups for validation, up to a share of all items; return their items' indices.

    A group that would pass the share is left to training. Where even the smallest would, that one
    is drawn all the same, so that there is something to validate with.

    Args:
        share: Of all items, from 0 and below 1; 0 draws nothing.

    Raises:
        InputError: All items are one group, and a share above 0 was asked for.
    """
    if share == 0:
        return frozenset()
    members: dict[Hashable, list[int]] = defaultdict(list)
    for item, group in enumerate(groups):
        members[group].append(item)
    if len(members) < 2:
        raise InputError(
            f"The {len(groups)} queries cannot be split: they are one group of queries that are "
            "alike. Add other queries, or set validation = 0."
        )
    order = list(members.values())
    random.Random(f"{seed}:validation").shuffle(order)
    room = round(share * len(groups))
    drawn: list[int] = []
    # One group at least is left to train on.
    for items in order[1:]:
        if len(items) <= room - len(drawn):
            drawn += items
    smallest = min(order, key=len)
    return frozenset(drawn or smallest)


def in_validation(key: str, share: float, *, seed: int = 0) -> bool:
    """Say whether what has this key is for validation: a share of all keys, by their hashes."""
    digest = hashlib.blake2b(f"{seed}:{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64
