"""Public sets in the plan language, on invented records of their formats."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.evaluation.sets import Converted, read_nestful, read_tau2

#: The folder of the published sets, for the tests that read them.
DATA = Path(os.environ.get("CASEWRIGHT_DATA", "."))
needs_data = pytest.mark.skipif(
    "CASEWRIGHT_DATA" not in os.environ, reason="CASEWRIGHT_DATA is not set"
)

SPECIFICATION = [
    {
        "name": "Shops.Find",
        "description": "Finds shops.",
        "query_parameters": {
            "town": {"type": "String", "required": True, "description": "Where."},
            "sort": {"type": "string", "enum": ["near", "cheap"], "required": False},
            "most": {"type": "number", "required": False},
        },
        "output_parameters": {
            "shop_id": {"type": "string"},
            "Opening Hour": {"type": "string"},
            "place": {"type": "object", "properties": {"street": {"type": "string"}}},
            "wares": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
        },
    },
    {
        "name": "book",
        "description": "Books.",
        "arguments": {
            "shop_id": {"required": True, "description": "", "allowed_values": []},
            "at": {"required": False, "description": ""},
        },
        "output_parameters": {"ticket": {"description": ""}},
    },
    # The published specification contains some tools twice.
    {"name": "book", "description": "Books.", "arguments": {}, "output_parameters": {}},
]


def call(name: str, label: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "label": label}


FIND_CALL = call("Shops.Find", "var1", town="Kiel")


def nestful(folder: Path, *outputs: list[dict[str, Any]]) -> Converted:
    """Write a record per list of calls, and return the converted records."""
    lines = [
        json.dumps({"id": f"glaive-{n}", "input": "a shop in Kiel", "output": calls})
        for n, calls in enumerate(outputs)
    ]
    (folder / "glaive-dev.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "glaive-spec.json").write_text(json.dumps(SPECIFICATION), encoding="utf-8")
    return read_nestful(folder)


def test_nestful_calls_become_plan_steps_with_references(tmp_path: Path) -> None:
    calls = [
        call("Shops.Find", "var1", town="Kiel", sort="near", most=3),
        call("book", "var2", shop_id="$var1.shop_id$", at="$var1.Opening Hour$"),
        call("book", "var3", shop_id="$var1.place.street$", at=["a", "$var2.ticket$"]),
        call("var_result", "", all="$var1$"),
    ]
    result = nestful(tmp_path, calls)
    assert result.refused == []
    [item] = result.items
    assert str(item.query.plan) == (
        's1 = Shops_x2e_Find(town="Kiel", sort="near", most=3)\n'
        "s2 = book(shop_id=s1.shop_id, at=s1.Opening_x20_Hour)\n"
        's3 = book(shop_id=s1.place_x2e_street, at=["a", s2.ticket])'
    )
    assert item.query.label == "book"
    assert item.request.toolbox.names == ("Shops_x2e_Find", "book", "no_evidence")
    item.request.validate(item.query.plan)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (call("sell", "var2"), "a tool that is not in the specification"),
        (call("book", "var2", shop_id="$var1$"), "a reference to a whole output"),
        (call("book", "var2", shop_id="2 * $var1.shop_id$"), "arithmetic or text around"),
        (call("book", "var2", shop_id="$var1.wares[0].name$"), "an item of a list in a result"),
        (call("book", "var2", shop_id="var1.shop_id$"), "malformed"),
        (call("book", "var2", shop_id="$var4.shop_id$"), "a reference to no earlier call"),
        (call("book", "var2", shop_id={"id": 1}), "an object, or a list in a list"),
        (call("book", "var2", shop_id=None), "null"),
        (call("book", "var2", shop_id="$var1.colour$"), "a field that the results do not declare"),
        (call("book", "var2"), "a required argument is not given"),
        (call("book", "var2", shop_id="1", by="me"), "an argument that is not declared"),
        (call("Shops.Find", "var2", town=1), "of another type"),
        (call("Shops.Find", "var2", town="Kiel", sort="far"), "of another type"),
    ],
    ids=lambda value: value if isinstance(value, str) else "call",
)
def test_nestful_record_that_no_plan_can_express_is_refused_with_a_reason(
    tmp_path: Path, second: dict[str, Any], reason: str
) -> None:
    result = nestful(tmp_path, [FIND_CALL, second], [FIND_CALL])
    assert [str(item.query.record.id) for item in result.items] == ["glaive-1"]
    [(record_id, refusal)] = result.refused
    assert record_id == "glaive-0"
    assert reason in refusal
    assert result.to_json()["refused"] == {refusal: 1}
    assert result.to_json()["records"] == 2


def test_nestful_version_2_reads_tools_of_each_record_even_as_text(tmp_path: Path) -> None:
    flat = {"a": {"description": "", "type": "int or float"}}
    schema = {"type": "object", "properties": {"b": {"type": "string"}}, "required": []}
    tools = [
        {"name": "add", "parameters": flat, "output_parameter": {"result": {"type": "int"}}},
        {
            "name": "say",
            "parameters": schema,
            "output_parameters": {"properties": {"said": {"type": "string"}}},
        },
    ]
    calls = [
        {"name": "add", "label": "$var_1", "arguments": {"a": 2}},
        {"name": "say", "label": "$var_2", "arguments": {"b": "$var_1.result$"}},
    ]
    records = [
        {"sample_id": "one", "input": "two", "output": calls, "tools": tools},
        {"sample_id": "two", "input": "two", "output": repr(calls), "tools": repr(tools)},
        {"sample_id": "three", "input": "two", "output": "[f()]", "tools": tools},
        {"sample_id": "four", "input": "two", "output": [{"name": "add"}], "tools": tools},
    ]
    lines = "\n".join(map(json.dumps, records))
    (tmp_path / "v2_samples.jsonl").write_text(lines, encoding="utf-8")
    result = read_nestful(tmp_path)
    assert {str(item.query.plan) for item in result.items} == {
        "s1 = add(a=2)\ns2 = say(b=s1.result)"
    }
    assert [record_id for record_id, _ in result.refused] == ["three", "four"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no NESTFUL"),
        ({"sgd-dev.jsonl": "{}"}, "sgd-spec.json cannot be read"),
        ({"sgd-dev.jsonl": "{", "sgd-spec.json": "[]"}, "line 1 is no JSON"),
        ({"sgd-dev.jsonl": "{}", "sgd-spec.json": "{}"}, "another form"),
    ],
    ids=["nothing", "no specification", "no JSON", "no list"],
)
def test_invalid_nestful_folder_raises_input_error_naming_the_problem(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_nestful(tmp_path)


ADDRESS = {
    "address1": "1 Oak Road",
    "address2": "",
    "city": "Reno",
    "state": "NV",
    "country": "USA",
    "zip": "89501",
}
ITEMS = [
    {"item_id": "11", "product_id": "7", "name": "Lamp", "price": 9.5, "options": {"hue": "red"}},
    {"item_id": "12", "product_id": "8", "name": "Desk", "price": 80.0, "options": {}},
]
SHOP: dict[str, Any] = {
    "users": {
        "ann_low_1": {
            "user_id": "ann_low_1",
            "name": {"first_name": "Ann", "last_name": "Low"},
            "address": ADDRESS,
            "email": "ann@example.com",
            "payment_methods": {
                "card_1": {"source": "credit_card", "id": "card_1"},
                "gift_2": {"source": "gift_card", "id": "gift_2"},
                "gift_3": {"source": "gift_card", "id": "gift_3"},
            },
            "orders": ["#W1", "#W2"],
        }
    },
    "orders": {
        f"#W{n}": {
            "order_id": f"#W{n}",
            "user_id": "ann_low_1",
            "address": {**ADDRESS, "address1": "9 Elm Street"},
            "items": ITEMS,
            "status": "delivered",
            "fulfillments": [{"tracking_id": ["55"], "item_ids": ["11", "12"]}],
            "payment_history": [{"payment_method_id": "gift_2", "amount": 89.5}],
        }
        for n in (1, 2)
    },
    "products": {
        "7": {
            "name": "Lamp",
            "product_id": "7",
            "variants": {
                id_: {"item_id": id_, "options": {}, "available": True, "price": 9.5}
                for id_ in ("11", "21")
            },
        }
    },
}
KNOWN = "You are Ann Low, zip 89501."
USER = ("find_user_id_by_name_zip", {"first_name": "Ann", "last_name": "Low", "zip": "89501"})
PROFILE = ("get_user_details", {"user_id": "ann_low_1"})


def order(number: int) -> tuple[str, dict[str, Any]]:
    return "get_order_details", {"order_id": f"#W{number}"}


def tau2(folder: Path, *actions: tuple[str, dict[str, Any]], reason: str = "Help.") -> Converted:
    """Write a task with these gold actions, and return the converted test split."""
    instructions = {"reason_for_call": reason, "known_info": KNOWN, "task_instructions": "Secret."}
    task = {
        "id": "5",
        "user_scenario": {"instructions": instructions},
        "evaluation_criteria": {
            "actions": [{"name": name, "arguments": arguments} for name, arguments in actions]
        },
    }
    second = {**task, "id": "6"}
    for name, value in (
        ("tasks", [task, second]),
        ("db", SHOP),
        ("split_tasks", {"test": ["5"], "train": ["6"], "base": ["5", "6"]}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return read_tau2(folder)


def plan_of(result: Converted) -> list[str]:
    assert result.refused == []
    [item] = result.items
    item.request.validate(item.query.plan)
    return str(item.query.plan).split("\n")


def test_tau2_arguments_from_earlier_results_become_references(tmp_path: Path) -> None:
    arguments = {"order_id": "#W2", "item_ids": ["12", "11"], "payment_method_id": "gift_2"}
    result = tau2(tmp_path, USER, PROFILE, order(2), ("return_delivered_order_items", arguments))
    assert plan_of(result)[1:] == [
        "s2 = get_user_details(user_id=s1.user_id)",
        "s3 = get_order_details(order_id=s2[1].order_id)",
        "s4 = return_delivered_order_items(order_id=s2[1].order_id, "
        "item_ids=[s3[1].item_id, s3.item_id], payment_method_id=s2[1].payment_method_id)",
    ]
    assert result.items[0].query.query == f"Help. {KNOWN}"


def test_tau2_argument_from_the_question_stays_a_literal(tmp_path: Path) -> None:
    arguments = {"order_id": "#W1", "reason": "no longer needed"}
    result = tau2(tmp_path, order(1), ("cancel_pending_order", arguments), reason="Cancel #W1.")
    assert plan_of(result) == [
        's1 = get_order_details(order_id="#W1")',
        's2 = cancel_pending_order(order_id="#W1", reason="no longer needed")',
    ]


def test_tau2_order_id_may_be_stated_without_its_sign(tmp_path: Path) -> None:
    assert plan_of(tau2(tmp_path, order(1), reason="Where is W1?"))[0].endswith('(order_id="#W1")')


def test_tau2_product_variants_become_result_rows(tmp_path: Path) -> None:
    arguments = {
        "order_id": "#W1",
        "item_ids": ["11"],
        "new_item_ids": ["21"],
        "payment_method_id": "gift_3",
    }
    product = ("get_product_details", {"product_id": "7"})
    result = tau2(
        tmp_path, USER, PROFILE, order(1), product, ("exchange_delivered_order_items", arguments)
    )
    assert plan_of(result)[3:] == [
        "s4 = get_product_details(product_id=s3.product_id)",
        "s5 = exchange_delivered_order_items(order_id=s2.order_id, item_ids=[s3.item_id], "
        "new_item_ids=[s4[1].item_id], payment_method_id=s2[2].payment_method_id)",
    ]


def test_tau2_address_fields_all_come_from_one_source(tmp_path: Path) -> None:
    address = {"user_id": "ann_low_1", **ADDRESS, "address1": "9 Elm Street"}
    steps = (USER, PROFILE, order(1), ("modify_user_address", address))
    assert "address1=s3.address1, address2=s3.address2" in plan_of(tau2(tmp_path, *steps))[3]
    update = ("modify_user_address", {**address, "address1": "3 New Lane"})
    plan = plan_of(tau2(tmp_path, USER, update, reason="I moved to 3 New Lane, Reno."))
    assert 'address1="3 New Lane", address2="", city="Reno"' in plan[1]
    refusals = tau2(tmp_path, USER, update).refused
    assert [reason.split(" that")[0] for _, reason in refusals] == ["an address"]


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ((), "nothing is to be done"),
        ((order(1),), "an id that neither the question nor an earlier result holds"),
        ((USER, ("calculate", {"expression": "9.5 + 80"})), "a sum of numbers"),
        ((("dance", {}),), "a tool that is not declared"),
        (((USER,) * 17), "more steps than a plan may have"),
        (((USER[0], {"first_name": None}),), "a value that no plan can hold"),
    ],
    ids=["nothing", "id", "sum", "tool", "steps", "null"],
)
def test_tau2_task_that_no_plan_can_express_is_refused_with_a_reason(
    tmp_path: Path, actions: tuple[tuple[str, dict[str, Any]], ...], reason: str
) -> None:
    result = tau2(tmp_path, *actions)
    assert result.items == []
    [(task_id, refusal)] = result.refused
    assert task_id == "retail-5"
    assert reason in refusal


def test_read_tau2_reads_only_the_test_split(tmp_path: Path) -> None:
    result = tau2(tmp_path, USER)
    assert [str(item.query.record.id) for item in result.items] == ["retail-5"]
    (tmp_path / "split_tasks.json").write_text('{"train": ["6"]}', encoding="utf-8")
    with pytest.raises(InputError, match="holds no test tasks"):
        read_tau2(tmp_path)


def test_read_tau2_refuses_a_folder_without_its_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"db\.json cannot be read"):
        read_tau2(tmp_path)
    (tmp_path / "db.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="no database of tau2-bench"):
        read_tau2(tmp_path)


@needs_data
@pytest.mark.parametrize(
    ("name", "records", "converted"),
    [("nestful", 165, 105), ("tau2_retail", 40, 19)],
)
def test_public_sets_convert_the_documented_number_of_records(
    name: str, records: int, converted: int
) -> None:
    folder = DATA / name
    result = read_nestful(folder) if name == "nestful" else read_tau2(folder)
    assert result.to_json()["records"] == records
    assert len(result.items) == converted
    for item in result.items:
        item.request.validate(item.query.plan)
        assert item.query.label
