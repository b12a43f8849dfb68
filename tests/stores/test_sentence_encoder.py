"""Encoders of sentence-transformers, with a BERT of dimension 32 that the tests create."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from casewright.errors import InputError
from casewright.stores import CachedEncoder, CaseSchema, CaseStore, as_encoder, text_facet
from casewright.stores.encoders.sentence_transformers import (
    PASSAGE_CUE,
    SentenceTransformersEncoder,
)
from tests.stores.helpers import note
from tests.support.tiny_bert import save_tiny_bert

WORDS = (
    "a red green apple pear query passage : represent this sentence for searching relevant passages"
)
ANGLE = "angle-bert-base-uncased-nli-en-v1"
TEXTS = ["a red apple", "a green pear", "pear"]


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("models") / "plain-bert", WORDS.split())


@pytest.fixture(scope="session")
def pickled_bert(bert: Path) -> Path:
    """Return the checkpoint as pytorch_model.bin, the format that AnglE's authors published."""
    import torch
    from safetensors import torch as tensors

    folder = copy_model(bert, f"pickled/{ANGLE}")
    weights = folder / "model.safetensors"
    torch.save(tensors.load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()
    return folder


def copy_model(bert: Path, name: str) -> Path:
    return Path(shutil.copytree(bert, bert.parent / name))


def add_prompts(bert: Path, name: str, prompts: dict[str, str], default: str) -> Path:
    """Return the folder of a copy of the model with prompts, as sentence-transformers saves it."""
    from sentence_transformers import SentenceTransformer

    folder = bert.parent / name
    SentenceTransformer(str(bert), device="cpu").save(str(folder))
    settings = folder / "config_sentence_transformers.json"
    content = json.loads(settings.read_text()) | {
        "prompts": prompts,
        "default_prompt_name": default,
    }
    settings.write_text(json.dumps(content))
    return folder


def token_vectors(bert: Path, text: str) -> Any:
    """Return the last layer's vectors of a text's tokens, as transformers computes them."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert)
    with torch.no_grad():
        output = AutoModel.from_pretrained(bert)(**tokenizer(text, return_tensors="pt"))
    return output.last_hidden_state[0].numpy()


def unit_vectors(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def cls_averages(bert: Path) -> Any:
    """Return AnglE's cls_avg of the texts, as transformers computes it."""
    layers = [token_vectors(bert, text) for text in TEXTS]
    return unit_vectors(np.stack([(layer[0] + layer.mean(axis=0)) / 2 for layer in layers]))


def test_plain_checkpoint_embeds_a_text_as_the_mean_of_its_tokens(bert: Path) -> None:
    encoder = as_encoder(str(bert))
    assert isinstance(encoder, SentenceTransformersEncoder)
    assert (encoder.dimension, encoder.cue) == (32, "")
    vectors = encoder.embed(TEXTS)
    expected = unit_vectors(np.stack([token_vectors(bert, text).mean(axis=0) for text in TEXTS]))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(encoder.embed_queries(TEXTS), expected, atol=1e-5)
    assert encoder.embed([]).shape == encoder.embed_queries([]).shape == (0, 32)


def test_angle_bert_uses_cls_avg_pooling_and_has_its_cue(bert: Path) -> None:
    encoder = SentenceTransformersEncoder(str(copy_model(bert, ANGLE)))
    assert encoder.cue == PASSAGE_CUE
    vectors = encoder.embed(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, cls_averages(bert), atol=1e-5)
    np.testing.assert_array_equal(encoder.embed_queries(TEXTS), vectors)
    assert CachedEncoder(encoder).cue == PASSAGE_CUE
    assert not np.allclose(vectors, SentenceTransformersEncoder(str(bert)).embed(TEXTS), atol=1e-3)


def test_cue_is_prepended_to_a_query_once_if_the_model_declares_it_too(bert: Path) -> None:
    prompts = {"query": PASSAGE_CUE, "document": "passage : "}
    plain = SentenceTransformersEncoder(str(bert))
    encoder = SentenceTransformersEncoder(str(add_prompts(bert, "UAE-Large-V1", prompts, "query")))
    assert encoder.cue == PASSAGE_CUE
    np.testing.assert_allclose(encoder.embed(TEXTS), plain.embed(TEXTS), atol=1e-6)
    facet = text_facet("question", encoder)
    vectors = facet.vectors([{"question": "a red apple"}], query=True)
    np.testing.assert_allclose(vectors, plain.embed([PASSAGE_CUE + "a red apple"]), atol=1e-6)


def test_model_with_prompts_embeds_queries_and_texts_with_separate_prompts(bert: Path) -> None:
    plain = SentenceTransformersEncoder(str(bert))
    prompts = {"query": "query : ", "passage": "passage : "}
    encoder = SentenceTransformersEncoder(str(add_prompts(bert, "prompted", prompts, "query")))
    assert encoder.cue == ""
    queries, texts = (
        plain.embed([f"{word} : {t}" for t in TEXTS]) for word in ("query", "passage")
    )
    np.testing.assert_allclose(encoder.embed_queries(TEXTS), queries, atol=1e-6)
    np.testing.assert_allclose(encoder.embed(TEXTS), texts, atol=1e-6)


def test_default_prompt_for_another_purpose_is_not_used(bert: Path) -> None:
    plain = SentenceTransformersEncoder(str(bert))
    encoder = SentenceTransformersEncoder(
        str(add_prompts(bert, "default", {"other": "represent this : "}, "other"))
    )
    np.testing.assert_allclose(encoder.embed(TEXTS), plain.embed(TEXTS), atol=1e-6)
    np.testing.assert_allclose(encoder.embed_queries(TEXTS), plain.embed(TEXTS), atol=1e-6)


def test_folder_with_other_weights_has_another_encoder_name(bert: Path) -> None:
    folder = copy_model(bert, "trained-anew")
    name = SentenceTransformersEncoder(str(folder)).name
    weights = folder / "model.safetensors"
    save_file({key: 1.5 * value for key, value in load_file(weights).items()}, weights)
    assert SentenceTransformersEncoder(str(folder)).name != name


def test_store_finds_a_case_by_a_plain_checkpoint(bert: Path) -> None:
    facet = text_facet("question", as_encoder(str(bert)))
    with CaseStore(CaseSchema("plain", (facet,))) as store:
        store.add([note(text, text) for text in TEXTS])
        (hit,) = store.search("a green pear", 1)
    assert (hit.case.solution, round(hit.score, 4)) == ("a green pear", 1.0)


def test_pickled_weights_are_refused_with_a_command_that_converts_them(
    bert: Path, pickled_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"no model\.safetensors.*pickle") as exc_info:
        as_encoder(str(pickled_bert))
    command = shlex.split(str(exc_info.value).split("then give the folder ")[1].split(": ", 1)[1])
    assert command[:2] == ["python", "-c"]
    monkeypatch.chdir(tmp_path)
    # Run the command's code here: a new process would import torch again, which takes seconds.
    exec(command[2], {})
    folder = tmp_path / "safetensors" / ANGLE
    assert (folder / "model.safetensors").exists()
    assert not list(folder.rglob("*.bin"))
    encoder = SentenceTransformersEncoder(str(folder))
    assert encoder.cue == PASSAGE_CUE
    np.testing.assert_allclose(encoder.embed(TEXTS), cls_averages(bert), atol=1e-5)


def test_hub_model_without_safetensors_is_refused_with_the_convert_command(
    pickled_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The files of a download: the loader then finds the model by its name without a network.
    cache = tmp_path / "models--someone--legal-bert"
    shutil.copytree(pickled_bert, cache / "snapshots" / ("0" * 40))
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        InputError,
        match=r"'someone/legal-bert' has no model\.safetensors.*'safetensors/legal-bert'",
    ):
        as_encoder("someone/legal-bert")


def test_folder_with_damaged_weights_is_refused(bert: Path) -> None:
    folder = copy_model(bert, "damaged")
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"damaged' could not be loaded"):
        as_encoder(str(folder))


def test_folder_with_a_tokenizer_only_is_refused(bert: Path) -> None:
    folder = copy_model(bert, "empty")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"empty' could not be loaded"):
        as_encoder(str(folder))


def test_loading_a_folder_prints_nothing(bert: Path, capfd: pytest.CaptureFixture[str]) -> None:
    as_encoder(str(bert)).embed(TEXTS)
    assert capfd.readouterr() == ("", "")
