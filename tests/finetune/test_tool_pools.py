from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.domains import find_domain
from casewright.errors import InputError
from casewright.finetune.tool_pools import key_of, read_pools
from casewright.tools import Toolbox
from tests.planner.helpers import SHOP
from tests.support.training_examples import shop_toolbox

FIND = {
    "names": ["look_for", "searchItems"],
    "descriptions": ["Searches for things to buy."],
    "parameters": {"query": {"names": ["words"], "descriptions": ["what to find"]}},
    "results": {"item_id": ["sku"], "title": ["name"]},
}


def write_pools(folder: Path, pools: Any) -> Path:
    path = folder / "pools.json"
    path.write_text(pools if isinstance(pools, str) else json.dumps(pools), encoding="utf-8")
    return path


def error_message(folder: Path, pools: Any, toolbox: Toolbox | None = None) -> str:
    path = write_pools(folder, pools)
    with pytest.raises(InputError) as error:
        read_pools(path, toolbox)
    assert str(path) in str(error.value)
    return str(error.value)


def test_read_pools_returns_the_names_and_descriptions_of_each_tool(tmp_path: Path) -> None:
    pools = read_pools(write_pools(tmp_path, {"find": FIND, "no_evidence": {}}), SHOP)
    assert pools["find"].names == ("look_for", "searchItems")
    assert pools["find"].parameters["query"].descriptions == ("what to find",)
    assert pools["find"].results["item_id"] == ("sku",)
    assert pools["no_evidence"].names == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["look for"]}, "find.names.0: 'look for' is no identifier"),
        ({"names": ["9th"]}, "find.names.0: '9th' is no identifier"),
        ({"names": ["context"]}, "find.names.0: 'context' means something else in a plan"),
        ({"parameters": {"query": {"names": ["s1"]}}}, "find.parameters.query.names.0: 's1' means"),
        ({"results": {"title": ["a-b"]}}, "find.results.title.0: 'a-b' is no identifier"),
        ({"descriptions": [" "]}, "find.descriptions.0: Description ' ' is empty"),
        ({"descriptions": ["two\nlines"]}, "several lines"),
        ({"descriptions": ["\ud800"]}, "find.descriptions.0: A text cannot be written as UTF-8"),
        ({"parameters": {"query": {"descriptions": [""]}}}, "find.parameters.query.descriptions"),
        ({"title": "x"}, "find.title: Extra inputs are not permitted"),
        ({"names": "look_for"}, "find.names"),
        ({"parameters": {"question": {}}}, "find.parameters: The tool has no 'question'"),
        ({"results": {"price": ["cost"]}}, "find.results: The tool has no 'price'; it has item_id"),
    ],
)
def test_invalid_pool_entry_is_refused_naming_its_place(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    assert message in error_message(tmp_path, {"find": {**FIND, **change}}, SHOP)


def test_pool_name_shared_by_two_tools_is_refused_in_any_case(tmp_path: Path) -> None:
    message = error_message(tmp_path, {"find": FIND, "own": {"names": ["LookFor"]}})
    assert "own.names: 'LookFor' could be the name of find too" in message


def test_pool_name_that_is_the_name_of_another_tool_is_refused(tmp_path: Path) -> None:
    message = error_message(tmp_path, {"own": {"names": ["find"]}, "find": {}})
    assert "own.names: 'find' could be the name of find too" in message


def test_pool_of_other_names_for_no_evidence_is_refused(tmp_path: Path) -> None:
    assert "keeps its name" in error_message(tmp_path, {"no_evidence": {"names": ["nothing"]}})


def test_pool_description_that_names_a_tool_is_refused(tmp_path: Path) -> None:
    pools = {"find_item": {}, "own": {"descriptions": ["Use it after find_item."]}}
    assert "names the tool find_item" in error_message(tmp_path, pools)
    # An ordinary word such as "find" does not count as the name of a tool.
    pools = {"find": {}, "own": {"descriptions": ["Use it to find what was bought."]}}
    assert read_pools(write_pools(tmp_path, pools))


def test_pool_of_a_tool_outside_the_toolbox_is_refused(tmp_path: Path) -> None:
    pools = {"sell": {"names": ["vend"]}}
    assert "The toolbox has no tool 'sell'. Its tools are find, own" in error_message(
        tmp_path, pools, SHOP
    )
    assert read_pools(write_pools(tmp_path, pools))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"find": []}', "[" * 100_000], ids=range(5))
def test_invalid_pool_file_is_refused(tmp_path: Path, text: str) -> None:
    error_message(tmp_path, text)


def test_missing_pool_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_pools(tmp_path / "none.json")


def test_shop_pools_fit_the_shop_tools_and_have_enough_variants() -> None:
    path = find_domain("shopping").tool_pools
    assert path is not None
    pools = read_pools(path, shop_toolbox())
    for tool in shop_toolbox():
        pool = pools[tool.name]
        assert len(set(pool.descriptions) - {tool.description}) >= 8
        if tool.name == "no_evidence":
            continue
        assert len(set(map(key_of, pool.names)) - {key_of(tool.name)}) >= 8
        assert any("_" in name for name in pool.names)
        assert any(name != name.lower() for name in pool.names)
        for parameter in tool.parameters:
            pool_part = pool.parameters[parameter.name]
            assert len(set(pool_part.names) - {parameter.name}) >= 5
            assert len(set(pool_part.descriptions)) >= 5
        for result in tool.results:
            assert len(set(pool.results[result]) - {result}) >= 5
