"""The threads of an idle encoder, and callers that embed texts concurrently."""

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
    cpu_seconds = []
    for number in range(9):
        encoder.embed([f"Is item {number} there again, and for how much?"])
        before = time.process_time()
        time.sleep(PAUSE)
        cpu_seconds.append(time.process_time() - before)
    # The median, because threads of other tests may compute. Spinning threads use half a pause.
    assert np.median(cpu_seconds) < PAUSE / 6


@pytest.mark.parametrize("bits", [32, 8])
def test_texts_embedded_by_concurrent_threads_have_the_same_vectors_as_alone(bits: int) -> None:
    texts = [
        " ".join(["and where is item", str(number)] * (1 + number % 9)) for number in range(96)
    ]
    encoder = MiniLMEncoder(bits)
    expected = [encoder.embed([text])[0] for text in texts]
    with ThreadPoolExecutor(16) as pool:
        vectors = list(pool.map(lambda text: encoder.embed([text])[0], texts))
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
