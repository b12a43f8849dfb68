from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from casewright.errors import DependencyError, InputError
from casewright.finetune.reader_training import ReaderSettings
from casewright.planner import AnnotatedQuery, CasePlanner, Reader
from casewright.planner.reader import reader_tokenizer
from casewright.planner.reader_input import padded, read_input
from casewright.planner.reader_layers import ReaderLayers
from casewright.planner.reader_weights import (
    CARD,
    WEIGHTS,
    read_card,
    read_weights,
    save_reader,
)
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_export import quiet
from casewright.stores.encoders.onnx_graph import Bert
from tests.planner.helpers import SHOP
from tests.support.readers import Trained, quick, toy_queries, train

if TYPE_CHECKING:
    import torch

    from casewright.planner.reader_network import ReaderNetwork

#: Training takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)
Tensors = dict[str, "torch.Tensor"]
#: Few queries, so that tests can train on them several times.
FEW = toy_queries()[:24]


def check_near(result: Any, expected: Any) -> None:
    # Pointer logits of absent sub-queries exceed a hundred: hence the relative tolerance.
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


@pytest.fixture
def folder(trained_reader: Trained, tmp_path: Path) -> Path:
    """Return a copy of the reader that a test may change."""
    return Path(shutil.copytree(trained_reader.folder, tmp_path / "reader"))


def share_right(reader: Reader, queries: list[AnnotatedQuery]) -> float:
    planner = CasePlanner(None, reader)
    plans = [planner.plan(query.record.request(SHOP)).plan for query in queries]
    return float(np.mean([p == q.plan for p, q in zip(plans, queries, strict=True)]))


def load_network(folder: Path) -> ReaderNetwork:
    """Return a saved reader's network, in torch."""
    import torch
    from transformers import AutoModel

    from casewright.planner.reader_network import ReaderNetwork

    card = read_card(folder)
    base = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
    network = ReaderNetwork(base, len(card.templates)).eval()
    expected = network.state_dict()
    weights = read_weights(folder, card)
    network.load_state_dict({n: torch.from_numpy(w) for n, w in weights.items() if n in expected})
    return network


def weights_of(queries: list[AnnotatedQuery], settings: ReaderSettings) -> Tensors:
    network, _ = train(queries, settings)
    return dict(network.state_dict())


def test_trained_reader_plans_its_queries_far_better_than_an_untrained_one(
    trained_reader: Trained, untrained_reader: Reader
) -> None:
    queries = trained_reader.queries[::3]
    assert share_right(trained_reader.reader, queries) > 0.75
    assert share_right(untrained_reader, queries) < 0.35


def test_reader_card_describes_the_training_data(trained_reader: Trained) -> None:
    card = read_card(trained_reader.folder)
    assert card == trained_reader.card
    assert card.training["queries"] == len(trained_reader.queries)
    assert card.training["forms"] == len(card.templates)
    assert card.training["seed"] == 0
    forms = [template.template for template in trained_reader.reader.templates]
    assert len(set(forms)) == len(forms)
    assert 'find(query="")' in forms
    assert "no_evidence()" in forms


def test_sub_queries_with_extra_tools_of_a_row_give_no_templates(trained_reader: Trained) -> None:
    assert any(query.record.tools_extra for query in trained_reader.queries)
    tools = {tool for template in trained_reader.reader.templates for tool in template.tools}
    assert tools == {*SHOP.names}


def test_reader_learns_no_templates_that_occur_only_once() -> None:
    rare = AnnotatedQuery.read({"query": "sell and own", "plan": 's1 = find(query="once more")'})
    _, card = train([*FEW, rare], quick(epochs=0))
    assert "once more" not in str([example.plan for example in card.templates])


def test_reader_without_torch_gives_the_outputs_of_the_network(trained_reader: Trained) -> None:
    import torch

    reader = trained_reader.reader
    with quiet():
        network = load_network(trained_reader.folder)
    tokenizer = reader_tokenizer()
    weights = read_weights(trained_reader.folder, reader.card)
    encoder, layers = Bert(weights, "encoder."), ReaderLayers(weights)
    questions = ["hello", "do you sell wool socks? And how heavy is my old tent?", "is it 🙂 " * 90]
    inputs = [read_input(tokenizer, question, {"page": "home"}) for question in questions]
    ids, types, mask = padded(inputs)
    states = encoder(ids, types, mask)
    memory = layers.memory(states, mask)
    rng = np.random.default_rng(0)
    previous = rng.integers(0, layers.start + 1, (len(questions), 3))
    covered = rng.random((len(questions), 3, ids.shape[1]), dtype=np.float32) / ids.shape[1]
    result = layers.next_sub_queries(memory, previous, covered)
    form, slot = np.array([1, 2, len(reader.templates) + 1]), np.array([0, 1, 3])
    pointers = layers.point(memory, result.decoded, form, slot)
    with torch.no_grad():
        expected = network.encode(*map(torch.from_numpy, (ids, types, mask)))
        decoded = network.decode(expected, *map(torch.from_numpy, (mask, previous, covered)))[:, -1]
        own_latents = network.latents(decoded)
        own_scores = network.scores(own_latents)
        own_pointers = network.point(
            decoded, torch.from_numpy(form), torch.from_numpy(slot), expected
        )
    valid = mask.astype(bool)
    check_near(states[valid], expected.numpy()[valid])
    check_near(result.latents, own_latents.numpy())
    check_near(result.scores, own_scores.numpy())
    for logits, expected_logits in zip(pointers, own_pointers, strict=True):
        check_near(logits[valid], expected_logits.numpy()[valid])
    check_near(np.linalg.norm(result.latents, axis=1), 1)


def test_saving_a_reader_in_half_precision_changes_scores_little(trained_reader: Trained) -> None:
    import torch

    saved, trained = load_network(trained_reader.folder), trained_reader.network
    ids = torch.tensor([[101, 2079, 2017, 5271, 12121, 14829, 102]])
    inputs = (ids, torch.zeros_like(ids), torch.ones_like(ids))
    start, covered = torch.tensor([[trained.start]]), torch.zeros((1, 1, ids.shape[1]))
    with torch.no_grad():
        scores = [
            network.scores(
                network.latents(network.decode(network.encode(*inputs), inputs[2], start, covered))
            )
            for network in (saved, trained)
        ]
    torch.testing.assert_close(*scores, rtol=0, atol=0.1)


def test_equal_seeds_give_equal_reader_weights_and_other_seeds_others() -> None:
    import torch

    first, second, other = (weights_of(FEW, quick(epochs=1, seed=seed)) for seed in (3, 3, 4))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["prototypes"], other["prototypes"])


def test_reader_training_changes_adapters_and_heads_but_not_the_encoder(
    trained_reader: Trained,
) -> None:
    import torch

    start, end = (weights_of(FEW, quick(epochs=epochs)) for epochs in (0, 1))
    assert not any(start[name].any() for name in start if "lora_B" in name)
    changed = {name for name in start if not torch.equal(start[name], end[name])}
    assert "prototypes" in changed
    assert any("lora_B" in name for name in changed)
    assert all("lora_" in name for name in changed if name.startswith("encoder."))


def test_save_reader_refuses_a_folder_path_that_is_a_file(
    trained_reader: Trained, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("kept")
    for folder in (tmp_path / "file", tmp_path / "file" / "reader"):
        with pytest.raises(InputError, match="cannot be written"):
            save_reader(folder, trained_reader.network, trained_reader.card)
    assert (tmp_path / "file").read_text() == "kept"


def test_reader_files_are_safetensors_and_json_without_base_weights(
    trained_reader: Trained,
) -> None:
    from safetensors.torch import load_file

    files = {file.name: file for file in trained_reader.folder.iterdir()}
    assert set(files) == {WEIGHTS, CARD}
    assert sum(file.stat().st_size for file in files.values()) < 8_000_000
    tensors = load_file(files[WEIGHTS])
    assert all("lora_" in name for name in tensors if name.startswith("encoder."))
    card = json.loads(files[CARD].read_text(encoding="utf-8"))
    assert card["format"] == 1
    assert str(Path.home()) not in files[CARD].read_text(encoding="utf-8")


def _remove_tensors(part: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: t for name, t in tensors.items() if part not in name}


def _truncate_tensors(part: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {
        name: t[:1].clone() if part in name else t for name, t in tensors.items()
    }


TAMPERED: dict[str, Callable[[Tensors], Tensors]] = {
    "no prototypes": _remove_tensors("prototypes"),
    "half of the adapters": _remove_tensors("lora_B"),
    "no pointers": _remove_tensors("asked"),
    "too few prototypes": _truncate_tensors("prototypes"),
    "too small an adapter": _truncate_tensors("lora_A"),
    "something else besides": lambda tensors: {**tensors, "more": tensors["bias"].clone()},
    "an adapter of another layer": lambda tensors: {
        name.replace("layer.5.", "layer.6."): t for name, t in tensors.items()
    },
}


@pytest.mark.parametrize("name", TAMPERED)
def test_reader_weights_that_do_not_fit_raise_input_error(folder: Path, name: str) -> None:
    from safetensors.torch import load_file, save_file

    save_file(TAMPERED[name](load_file(folder / WEIGHTS)), folder / WEIGHTS)
    with pytest.raises(InputError, match=r"cannot be used: .*finetune reader") as caught:
        Reader(folder).read("hello", {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"no safetensors", b"\xff" * 64])
def test_damaged_reader_weights_raise_input_error(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(InputError, match="cannot be used"):
        Reader(folder).read("hello", {})


def test_folder_without_a_reader_raises_input_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=r"holds no reader .*finetune reader"):
            Reader(folder)


@pytest.mark.parametrize("missing", [WEIGHTS, CARD])
def test_reader_folder_that_lacks_a_file_raises_input_error(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(InputError, match="holds no reader"):
        Reader(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": 1}', '{"format": 1, "forms": [{}]}']
)
def test_invalid_reader_card_raises_input_error(folder: Path, text: str) -> None:
    (folder / CARD).write_text(text)
    with pytest.raises(InputError, match="holds no reader"):
        Reader(folder)


@pytest.mark.parametrize("form", [{"plan": "no plan"}, {"ask": 7}, {"plan": "s1 = a(x=s1.y)"}])
def test_reader_card_with_invalid_templates_raises_input_error(
    folder: Path, form: dict[str, Any]
) -> None:
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    card["forms"][0] |= form
    (folder / CARD).write_text(json.dumps(card))
    with pytest.raises(InputError, match="holds no reader"):
        Reader(folder)


@pytest.mark.parametrize("number", [0, 2, "1"])
def test_reader_of_another_format_raises_input_error_naming_the_format(
    folder: Path, number: Any
) -> None:
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    (folder / CARD).write_text(json.dumps({**card, "format": number}))
    with pytest.raises(InputError, match=rf"^The reader in .* has format {number}; .* reads 1"):
        Reader(folder)


@pytest.mark.parametrize("count", [0, 1, 19])
def test_reader_training_refuses_fewer_than_20_queries(count: int) -> None:
    with pytest.raises(InputError, match=rf"^{count} queries .*at least 20"):
        train(toy_queries()[:count], quick())


def test_reader_training_refuses_queries_with_one_plan_template() -> None:
    queries = [query for query in toy_queries() if query.plan.tools == ("find",)]
    assert len(queries) > 20
    with pytest.raises(InputError, match=rf"^{len(queries)} queries with 1 plan templates"):
        train(queries, quick())


def test_reader_training_without_peft_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(DependencyError, match=r"pip install 'casewright\[finetune\]'"):
        train(FEW, quick())


def test_reader_training_omits_queries_whose_plans_have_no_sub_queries() -> None:
    invalid = AnnotatedQuery.read({"query": "odd", "plan": "s1 = find(query=s2.title)"})
    _, card = train([*FEW, invalid], quick(epochs=0))
    assert card.training["queries"] == len(FEW)


def test_reader_training_with_extreme_settings_gives_finite_weights() -> None:
    import torch

    extreme = replace(
        quick(epochs=1), batch=7, smoothing=0.0, contrast=0.0, hidden=1.0, distracted=1.0
    )
    weights = weights_of(toy_queries()[90:116], extreme)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in weights.values())
