from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores import CachedEncoder
from casewright.stores.encoders.cache import check_vectors, write_vectors
from tests.support.encoders import BrokenEncoder, HashingEncoder

TEXTS = [f"text number {i}" for i in range(20)]


def encoded_texts(encoder: HashingEncoder) -> list[str]:
    return [text for call in encoder.calls for text in call]


def are_embeddings_of(vectors: object, texts: list[str]) -> bool:
    return np.array_equal(np.asarray(vectors), HashingEncoder().embed(texts))


def test_cache_returns_the_vectors_of_its_encoder_in_order() -> None:
    cached = CachedEncoder(HashingEncoder())
    assert (cached.name, cached.dimension) == ("hashing-32", 32)
    assert are_embeddings_of(cached.embed(TEXTS), TEXTS)
    mixed = [TEXTS[3], "a new one", TEXTS[0], "a new one", ""]
    assert are_embeddings_of(cached.embed(mixed), mixed)
    assert cached.embed([]).shape == (0, 32)


def test_cached_text_is_not_encoded_again() -> None:
    encoder = HashingEncoder()
    cached = CachedEncoder(encoder)
    cached.embed([*TEXTS, *TEXTS])
    cached.embed([TEXTS[5], "new", TEXTS[7]])
    assert sorted(encoded_texts(encoder)) == sorted([*TEXTS, "new"])


def test_new_cache_object_reads_vectors_from_the_disk_cache(tmp_path: Path) -> None:
    CachedEncoder(HashingEncoder(), tmp_path / "new" / "folder").embed(TEXTS)
    encoder = HashingEncoder()
    assert are_embeddings_of(
        CachedEncoder(encoder, tmp_path / "new" / "folder").embed(TEXTS), TEXTS
    )
    assert encoder.calls == []


def test_disk_cache_returns_more_texts_than_one_sqlite_query_can_hold(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(1300)]
    CachedEncoder(HashingEncoder(), tmp_path).embed(texts)
    encoder = HashingEncoder()
    assert are_embeddings_of(CachedEncoder(encoder, tmp_path).embed(texts), texts)
    assert encoder.calls == []


def test_single_question_is_not_written_to_disk(tmp_path: Path) -> None:
    cached = CachedEncoder(HashingEncoder(), tmp_path)
    cached.embed(["a private question"])
    cached.embed(TEXTS)
    with sqlite3.connect(tmp_path / "embeddings.sqlite") as db:
        assert db.execute("SELECT count(*) FROM embedding").fetchone() == (len(TEXTS),)
    db.close()


def test_lent_vectors_are_used_only_for_the_encoder_of_the_same_name(tmp_path: Path) -> None:
    write_vectors(tmp_path / "lent", HashingEncoder(), TEXTS)
    for name, encodes in {"hashing-32": [], "another": TEXTS}.items():
        encoder = HashingEncoder(name=name)
        cached = CachedEncoder(encoder, tmp_path / "cache")
        cached.lend(tmp_path / "lent")
        assert are_embeddings_of(cached.embed(TEXTS), TEXTS)
        assert encoded_texts(encoder) == encodes


@pytest.mark.parametrize("content", [None, b"", b"damaged" * 40])
def test_texts_are_encoded_if_the_lent_vectors_cannot_be_read(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "lent").write_bytes(content)
    cached = CachedEncoder(HashingEncoder())
    cached.lend(tmp_path / "lent")
    assert are_embeddings_of(cached.embed(TEXTS), TEXTS)


def test_encoders_of_other_names_do_not_share_vectors(tmp_path: Path) -> None:
    CachedEncoder(HashingEncoder(name="one"), tmp_path).embed(TEXTS)
    other = HashingEncoder(name="two")
    CachedEncoder(other, tmp_path).embed(TEXTS)
    assert sorted(encoded_texts(other)) == sorted(TEXTS)


def test_encoder_with_same_name_and_other_dimension_gets_its_own_vectors(tmp_path: Path) -> None:
    CachedEncoder(HashingEncoder(16, name="same"), tmp_path).embed(TEXTS)
    vectors = CachedEncoder(HashingEncoder(32, name="same"), tmp_path).embed(TEXTS)
    assert are_embeddings_of(vectors, TEXTS)


@pytest.mark.parametrize("damage", [b"garbage" * 999, b""], ids=["garbage", "empty"])
def test_cache_with_a_damaged_file_still_returns_correct_vectors(
    tmp_path: Path, damage: bytes
) -> None:
    (tmp_path / "embeddings.sqlite").write_bytes(damage)
    cached = CachedEncoder(HashingEncoder(), tmp_path)
    assert are_embeddings_of(cached.embed(TEXTS), TEXTS)
    assert are_embeddings_of(cached.embed([*TEXTS, "new", "newer"]), [*TEXTS, "new", "newer"])


def test_cache_whose_table_is_dropped_while_open_still_returns_correct_vectors(
    tmp_path: Path,
) -> None:
    cached = CachedEncoder(HashingEncoder(), tmp_path)
    cached.embed(TEXTS)
    with sqlite3.connect(tmp_path / "embeddings.sqlite") as db:
        db.execute("DROP TABLE embedding")
    db.close()
    assert are_embeddings_of(cached.embed(["new", "newer"]), ["new", "newer"])


def test_cached_vector_of_wrong_length_is_encoded_again(tmp_path: Path) -> None:
    CachedEncoder(HashingEncoder(), tmp_path).embed(TEXTS)
    with sqlite3.connect(tmp_path / "embeddings.sqlite") as db:
        db.execute("UPDATE embedding SET vector = x'00'")
    db.close()
    assert are_embeddings_of(CachedEncoder(HashingEncoder(), tmp_path).embed(TEXTS), TEXTS)


@pytest.mark.parametrize("vector", [np.full(32, np.nan), np.zeros(32)], ids=["nan", "zeros"])
def test_damaged_cached_vector_is_detected_and_encoded_again(
    tmp_path: Path, vector: NDArray[np.float64]
) -> None:
    CachedEncoder(HashingEncoder(), tmp_path).embed(TEXTS)
    file = tmp_path / "embeddings.sqlite"
    damage = vector.astype(np.float32).tobytes()
    with sqlite3.connect(file) as db:
        db.execute(
            "UPDATE embedding SET vector = CAST(? || substr(vector, 129) AS BLOB)", (damage,)
        )
    db.close()
    assert check_vectors(file) == (len(TEXTS), len(TEXTS))
    assert are_embeddings_of(CachedEncoder(HashingEncoder(), tmp_path).embed(TEXTS), TEXTS)
    assert check_vectors(file) == (len(TEXTS), 0)


def test_cached_vector_under_the_key_of_another_text_is_encoded_again(tmp_path: Path) -> None:
    CachedEncoder(HashingEncoder(), tmp_path).embed(TEXTS)
    with sqlite3.connect(tmp_path / "embeddings.sqlite") as db:
        db.execute("UPDATE embedding SET vector = (SELECT vector FROM embedding LIMIT 1)")
    db.close()
    assert are_embeddings_of(CachedEncoder(HashingEncoder(), tmp_path).embed(TEXTS), TEXTS)


def test_damaged_cache_file_is_reported_and_can_be_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "embeddings.sqlite"
    file.write_bytes(b"garbage" * 999)
    assert are_embeddings_of(CachedEncoder(HashingEncoder(), tmp_path).embed(TEXTS), TEXTS)
    assert "casewright repair" in capsys.readouterr().err
    assert check_vectors(file, remove=True) is None
    CachedEncoder(HashingEncoder(), tmp_path).embed(TEXTS)
    assert check_vectors(file) == (len(TEXTS), 0)


def test_cache_whose_folder_cannot_be_created_still_returns_correct_vectors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert are_embeddings_of(CachedEncoder(HashingEncoder(), tmp_path / "file").embed(TEXTS), TEXTS)


def test_changing_a_returned_vector_does_not_change_the_cache(tmp_path: Path) -> None:
    cached = CachedEncoder(HashingEncoder(), tmp_path)
    for _ in range(3):
        vectors = cached.embed(TEXTS)
        assert are_embeddings_of(vectors, TEXTS)
        vectors[:] = 7


def test_cache_returns_correct_vectors_to_several_threads(tmp_path: Path) -> None:
    cached = CachedEncoder(HashingEncoder(), tmp_path)

    def check_worker(worker: int) -> bool:
        texts = [f"text {i}" for i in range(worker, worker + 60)]
        return all(are_embeddings_of(cached.embed(texts), texts) for _ in range(5))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(check_worker, range(0, 60, 10)))


class Asymmetric(HashingEncoder):
    """An encoder that embeds queries as the negatives of texts."""

    cue = "find: "

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return -self.embed([f"query {text}" for text in texts])


def test_queries_and_texts_of_an_asymmetric_encoder_are_cached_separately(tmp_path: Path) -> None:
    encoder = Asymmetric()
    for cached in (CachedEncoder(encoder, tmp_path), CachedEncoder(encoder, tmp_path)):
        for _ in range(2):
            assert are_embeddings_of(cached.embed(TEXTS), TEXTS)
            assert are_embeddings_of(
                -cached.embed_queries(TEXTS), [f"query {text}" for text in TEXTS]
            )
    assert len(encoder.calls) == 2


def test_queries_and_texts_of_a_symmetric_encoder_share_cached_vectors(tmp_path: Path) -> None:
    encoder = HashingEncoder()
    cached = CachedEncoder(encoder, tmp_path)
    assert are_embeddings_of(cached.embed_queries(TEXTS), TEXTS)
    assert are_embeddings_of(cached.embed(TEXTS), TEXTS)
    assert cached.embed_queries([]).shape == (0, 32)
    assert len(encoder.calls) == 1


def test_cache_has_the_cue_of_its_encoder() -> None:
    assert CachedEncoder(Asymmetric()).cue == "find: "
    assert CachedEncoder(HashingEncoder()).cue == ""


def test_cache_refuses_a_vector_that_is_not_finite_and_does_not_store_it(tmp_path: Path) -> None:
    texts = ["good", "broken"]
    with pytest.raises(InputError, match="text 2 of 2 with NaN"):
        CachedEncoder(BrokenEncoder(), tmp_path).embed(texts)
    assert are_embeddings_of(CachedEncoder(HashingEncoder(), tmp_path).embed(texts), texts)


def test_cache_refuses_fewer_vectors_than_texts() -> None:
    class Short(HashingEncoder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return super().embed(texts)[1:]

    with pytest.raises(InputError, match=r"shape \(19, 32\); expected \(20, 32\)"):
        CachedEncoder(Short()).embed(TEXTS)
