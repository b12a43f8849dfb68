"""Which questions an offline judge may learn from, and which it is measured by."""

from __future__ import annotations

import hashlib


def is_training(question_id: str) -> bool:
    """Say whether a question is for training; those that are not are for testing.

    The half follows from the id alone (the parity of its SHA-256), so that it is the same in every
    set, with any limit, and on every machine: no run can measure by what another one trained on.
    """
    return hashlib.sha256(question_id.encode()).digest()[-1] % 2 == 0
