"""The encoder's own threads while nothing is asked of them, and threads that ask at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from casewright.stores.encoders.minilm import MiniLMEncoder

PAUSE = 0.03


def test_encoder_threads_use_no_cpu_after_an_embedding() -> None:
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


@pytest.mark.parametrize("bits", [32, 8])
def test_texts_embedded_by_concurrent_threads_have_the_same_vectors_as_alone(bits: int) -> None:
    texts = [
        " ".join(["and where is item", str(number)] * (1 + number % 9)) for number in range(96)
    ]
    encoder = MiniLMEncoder(bits)
    alone = [encoder.embed([text])[0] for text in texts]
    with ThreadPoolExecutor(16) as threads:
        together = list(threads.map(lambda text: encoder.embed([text])[0], texts))
    np.testing.assert_allclose(together, alone, atol=1e-6)
