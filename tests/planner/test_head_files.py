"""The prefix cache in files: processes share prompt heads, and damaged files are ignored."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from casewright.planner import ModelPlanner, PlanRequest, render_prompt
from casewright.planner.decoding import Decoder, Written
from casewright.planner.decoding.prefix_cache import PrefixFiles
from casewright.planner.grammar import PlanGrammar
from casewright.planner.language_model import LanguageModel, load_language_model
from tests.planner.helpers import SHOP
from tests.support.tiny_mistral import save_tiny, tiny_mistral


@pytest.fixture
def model(tmp_path: Path) -> LanguageModel:
    return load_language_model(save_tiny(tmp_path / "model", 3, initializer_range=0.3))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "heads"


def request_of(left_out: str = "desk") -> PlanRequest:
    return PlanRequest("Where is my blue tent?", SHOP.without(left_out), max_steps=2)


def write(model: LanguageModel, folder: Path | None, request: PlanRequest | None = None) -> Written:
    """Write a plan by a new decoder, as a new process would."""
    request = request or request_of()
    matcher = PlanGrammar(model.grammar_tokenizer).plan_matcher(request)
    return Decoder(model, prefix_folder=folder).write(model.encode(render_prompt(request)), matcher)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*"))


def test_second_decoder_loads_the_head_file_and_writes_the_same_plan(
    model: LanguageModel, folder: Path
) -> None:
    first = write(model, folder)
    assert not first.prefix_cached
    head = len(model.encode(render_prompt(request_of())).head)
    input_lengths: list[int] = []
    model.network.register_forward_pre_hook(
        lambda _, args, kwargs: input_lengths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    second = write(model, folder)
    assert second.prefix_cached
    assert second.tokens == first.tokens
    assert sum(input_lengths) < head
    assert write(model, None).tokens == first.tokens
    assert sum(input_lengths) > head


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def flip_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-7] ^= 0x40
    file.write_bytes(content)


def break_header(file: Path) -> None:
    file.write_bytes(b"PK" + file.read_bytes()[2:])


@pytest.mark.parametrize("damage", [truncate, empty, flip_bit, break_header])
def test_damaged_head_file_is_ignored_and_written_again(
    model: LanguageModel, folder: Path, damage: Callable[[Path], None]
) -> None:
    first = write(model, folder)
    (file,) = files(folder)
    damage(file)
    second = write(model, folder)
    assert not second.prefix_cached
    assert second.tokens == first.tokens
    assert files(folder) == [file]
    assert write(model, folder).prefix_cached


def test_file_with_another_prompt_head_is_ignored(model: LanguageModel, folder: Path) -> None:
    write(model, folder)
    (file,) = files(folder)
    other = write(model, folder, request_of("fact"))
    (new_file,) = set(files(folder)) - {file}
    new_file.write_bytes(file.read_bytes())
    second = write(model, folder, request_of("fact"))
    assert not second.prefix_cached
    assert second.tokens == other.tokens


def test_new_weights_and_another_dtype_use_separate_head_files(
    tmp_path: Path, folder: Path
) -> None:
    saved = save_tiny(tmp_path / "model", 3)
    write(load_language_model(saved), folder)
    assert not write(load_language_model(saved, dtype="bfloat16"), folder).prefix_cached
    assert write(load_language_model(saved, dtype="bfloat16"), folder).prefix_cached
    save_tiny(saved, 4)
    assert not write(load_language_model(saved), folder).prefix_cached
    assert len(files(folder)) == 3


def test_head_files_beyond_the_bound_are_removed_least_recently_used_first(
    model: LanguageModel, folder: Path
) -> None:
    prompts = [model.encode(render_prompt(request_of(name))) for name in ("desk", "fact", "own")]
    decoder = Decoder(model)
    states = []
    for prompt in prompts:
        with decoder.session(prompt.head):
            head_states = decoder.prefixes.get(prompt.head)
            assert head_states is not None
            states.append(head_states)
    max_bytes = int(2.5 * max(state.bytes for state in states))
    prefix_files = PrefixFiles(folder, model, max_bytes)
    for age, (prompt, state) in enumerate(zip(prompts[:2], states[:2], strict=True)):
        prefix_files.save(prompt.head, state)
        newest = max(files(folder), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (1000 + age, 1000 + age))
    (folder / "left.part").write_bytes(b"x" * 100)
    os.utime(folder / "left.part", (0, 0))
    # Reading the oldest file makes it the newest.
    assert prefix_files.load(prompts[0].head) is not None
    prefix_files.save(prompts[2].head, states[2])
    assert [prefix_files.load(prompt.head) is not None for prompt in prompts] == [True, False, True]
    assert sum(file.stat().st_size for file in files(folder)) <= max_bytes
    assert len(files(folder)) == 2


def test_decoder_writes_the_same_plan_when_the_head_folder_cannot_be_created(
    model: LanguageModel, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("here")
    assert write(model, tmp_path / "file" / "heads").tokens == write(model, None).tokens


def test_planner_keeps_head_files_in_the_cache_folder_by_default(
    model: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_CACHE_FOLDER", str(tmp_path / "cache"))
    ModelPlanner(model, head_folder=None).plan(request_of())
    ModelPlanner(tiny_mistral(3)).plan(request_of())
    assert not (tmp_path / "cache").exists()
    ModelPlanner(model).plan(request_of())
    assert len(files(tmp_path / "cache" / "heads")) == 1
    ModelPlanner(model, head_folder=tmp_path / "own").plan(request_of())
    assert len(files(tmp_path / "own")) == 1
