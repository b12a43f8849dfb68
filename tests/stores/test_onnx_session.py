"""What the encoder's own threads do while nothing is asked of them."""

from __future__ import annotations

import time

import numpy as np

from casewright.stores.encoders.minilm import MiniLMEncoder

PAUSE = 0.03


def test_nothing_computes_after_a_question_is_embedded() -> None:
    encoder = MiniLMEncoder()
    encoder.embed(["The first loads the model."])
    computed = []
    for number in range(9):
        encoder.embed([f"Is item {number} there again, and for how much?"])
        before = time.process_time()
        time.sleep(PAUSE)
        computed.append(time.process_time() - before)
    # Of many, as other tests' threads may compute in some. Spinning ones take a half of each.
    assert np.median(computed) < PAUSE / 6
