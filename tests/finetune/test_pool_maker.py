from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel, SimpleChatModel
from langchain_core.messages import AIMessage, BaseMessage

from casewright.errors import InputError
from casewright.finetune.examples.pool_maker import PoolMaker, PoolsMade
from casewright.finetune.tool_pools import ToolPool, read_pools
from casewright.tools import Toolbox
from tests.planner.helpers import DESK, FIND

BOX = Toolbox([FIND, DESK])
FOUND = {
    "names": ["seek", "searchShop"],
    "descriptions": ["Searches for products to buy."],
    "parameters": {"query": {"names": ["words"], "descriptions": ["what to find"]}},
    "results": {"item_id": ["sku"], "title": ["label"]},
}
ASKED = {"names": ["help_desk"], "descriptions": ["The rules of the shop."]}
NOTHING = {"descriptions": ["Nothing to look up."]}


class Scripted(SimpleChatModel):
    """Answers by what it is asked, and keeps it."""

    answers: list[Any]
    heard: list[str]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _call(self, messages: list[BaseMessage], *args: Any, **more: Any) -> str:
        self.heard.append(str(messages[-1].text))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps(answer)


def make(folder: Path, *answers: Any, toolbox: Toolbox = BOX, **more: Any) -> PoolsMade:
    model = Scripted(answers=list(answers), heard=[])
    return PoolMaker(model, **more).make(toolbox, folder / "pools.json")


def one(folder: Path, answer: Any) -> tuple[ToolPool, int]:
    """Return the pool of the first tool of the box, and how many entries were dropped."""
    made = make(folder, answer, ASKED, NOTHING)
    return made.pools["find"], made.dropped["find"]


def test_every_tool_is_asked_for_once_and_the_file_can_be_read(tmp_path: Path) -> None:
    model = Scripted(answers=[FOUND, ASKED, NOTHING], heard=[])
    told: list[str] = []
    made = PoolMaker(model, tell=told.append).make(BOX, tmp_path / "pools.json")
    assert told == list(made.pools) == ["find", "desk", "no_evidence"]
    assert (made.failed, set(made.dropped.values())) == ({}, {0})
    assert read_pools(tmp_path / "pools.json", BOX) == made.pools
    assert made.pools["find"].parameters["query"].names == ("words",)
    assert "Finds products." in model.heard[0]
    assert "Give 12 other names" in model.heard[0]
    assert "no other of these tools: desk, no_evidence." in model.heard[0]


def test_any_langchain_chat_model_makes_pools(tmp_path: Path) -> None:
    answers: Iterable[Any] = (AIMessage(json.dumps(answer)) for answer in (FOUND, ASKED, NOTHING))
    model = GenericFakeChatModel(messages=iter(answers))
    assert set(PoolMaker(model).make(BOX, tmp_path / "p.json").pools) == set(BOX.names)


def test_words_and_fences_around_the_answer_do_not_matter(tmp_path: Path) -> None:
    pool, _ = one(tmp_path, f"Here you are:\n```json\n{json.dumps(FOUND)}\n```\nAnything else?")
    assert pool.names == ("seek", "searchShop")


@pytest.mark.parametrize(
    "name",
    ["find it", "2nd", "context", "DESK", "no_evidence", "find", "Search_Shop", "", 7, None],
    ids=str,
)
def test_a_name_that_cannot_be_used_is_dropped_and_counted(tmp_path: Path, name: Any) -> None:
    pool, dropped = one(tmp_path, {**FOUND, "names": ["searchShop", name]})
    assert (pool.names, dropped) == (("searchShop",), 1)


@pytest.mark.parametrize(
    "text", ["", "Finds products", "what it does first.", 3, "See no_evidence."]
)
def test_a_description_that_cannot_be_used_is_dropped_and_counted(
    tmp_path: Path, text: Any
) -> None:
    pool, dropped = one(tmp_path, {**FOUND, "descriptions": ["What it does first", text]})
    assert (pool.descriptions, dropped) == (("What it does first",), 1)


def test_a_name_of_another_tools_pool_is_dropped(tmp_path: Path) -> None:
    made = make(tmp_path, FOUND, {**ASKED, "names": ["SEEK", "help"]}, NOTHING)
    assert made.pools["desk"].names == ("help",)
    assert made.dropped["desk"] == 1


def test_the_plan_for_nothing_to_look_up_gets_no_other_name(tmp_path: Path) -> None:
    made = make(tmp_path, FOUND, ASKED, {**NOTHING, "names": ["skip"]})
    assert made.pools["no_evidence"].names == ()
    assert made.dropped["no_evidence"] == 1


def test_what_the_tool_does_not_have_is_left_out(tmp_path: Path) -> None:
    more = {"parameters": {"colour": {"names": ["hue"]}}, "results": "none", "other": 1}
    pool, _ = one(tmp_path, {**FOUND, **more})
    assert set(pool.parameters) == {"query"}
    assert pool.results == {"item_id": (), "title": ()}


@pytest.mark.parametrize("answer", ["I cannot.", "[]", "{", "}{", "{" * 5000, "{}"], ids=range(6))
def test_a_tool_whose_answer_is_of_no_use_is_told_and_asked_for_again(
    tmp_path: Path, answer: str
) -> None:
    made = make(tmp_path, answer, ASKED, NOTHING)
    assert set(made.failed) == {"find"}
    assert set(made.pools) == {"desk", "no_evidence"}
    again = make(tmp_path, FOUND)
    assert (set(again.pools), again.failed) == (set(BOX.names), {})


def test_what_was_made_before_the_model_failed_is_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tool desk: The model failed: ValueError: no credit"):
        make(tmp_path, FOUND, ValueError("no credit"))
    assert set(read_pools(tmp_path / "pools.json")) == {"find"}
    assert set(make(tmp_path, ASKED, NOTHING).pools) == set(BOX.names)


def test_a_model_that_hangs_is_given_up_in_time(tmp_path: Path) -> None:
    class Slow(Scripted):
        def _call(self, messages: list[BaseMessage], *args: Any, **more: Any) -> str:
            time.sleep(3)
            return ""

    started = time.perf_counter()
    with pytest.raises(InputError, match="No pool for the tool find"):
        PoolMaker(Slow(answers=[], heard=[]), seconds=0.2).make(BOX, tmp_path / "pools.json")
    assert time.perf_counter() - started < 2


def test_a_file_that_is_no_file_of_pools_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "pools.json"
    path.write_text("my notes")
    with pytest.raises(InputError, match="cannot be read"):
        make(tmp_path, FOUND)
    assert path.read_text() == "my notes"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        make(tmp_path / "none", FOUND)
