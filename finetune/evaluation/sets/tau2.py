"""tau2-bench's retail tasks (Barres et al. 2025, arXiv 2506.07982), converted to plans.

The gold actions of a task are the steps; those that change something count as tools to plan too.
Their arguments are literal. Where one came from is recovered by replaying the tools that only read:
an argument that an earlier result holds in the field of that name becomes a reference to it.

The bench is a conversation, in which an agent sees each result before its next call. A plan is
written before anything is seen, so which of several rows a reference must take often cannot be
known from the question: the tools of a plan say more of a planner than its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.sets.converted import (
    ConversionError,
    Converted,
    read_json,
    to_item,
)
from casewright.planner import ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Scalar, Value
from casewright.tools import Toolbox, toolbox_from_file

ADDRESS = ("address1", "address2", "city", "state", "country", "zip")
Row = Mapping[str, Any]


def retail_toolbox() -> Toolbox:
    """Return the tools that gold actions use; they can be planned with, not run."""
    return toolbox_from_file(Path(__file__).parent / "retail_tools.json")


class Shop:
    """The database as it is before a task.

    Args:
        file: ``db.json``.

    Raises:
        InputError: The file cannot be read, or holds no products, users and orders.
    """

    def __init__(self, file: Path) -> None:
        read = read_json(file)
        try:
            self._users, self._orders, products = (
                dict(read[name]) for name in ("users", "orders", "products")
            )
            self._products = {key: _variants(product) for key, product in products.items()}
            self._items = {row["item_id"]: row for rows in self._products.values() for row in rows}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{file} is no database of tau2-bench's retail domain: {error}."
            ) from error

    def rows(self, tool: str, arguments: Mapping[str, Any]) -> Sequence[Row]:
        """Return what a tool that only reads returns; nothing for any other."""
        match tool:
            case "find_user_id_by_name_zip":
                return [
                    {"user_id": id_}
                    for id_, user in self._users.items()
                    if _same(user["name"]["first_name"], arguments.get("first_name"))
                    and _same(user["name"]["last_name"], arguments.get("last_name"))
                    and user["address"]["zip"] == arguments.get("zip")
                ]
            case "find_user_id_by_email":
                return [
                    {"user_id": id_}
                    for id_, user in self._users.items()
                    if _same(user["email"], arguments.get("email"))
                ]
            case "get_user_details":
                user = self._users.get(arguments.get("user_id"))
                return _profile(user) if user else []
            case "get_order_details":
                order = self._orders.get(arguments.get("order_id"))
                return _order(order) if order else []
            case "get_product_details":
                return self._products.get(arguments.get("product_id"), [])
            case "get_item_details":
                item = self._items.get(arguments.get("item_id"))
                return [item] if item else []
            case _:
                return []


def _same(one: Any, other: Any) -> bool:
    return str(one).casefold() == str(other).casefold()


def _profile(user: Mapping[str, Any]) -> list[Row]:
    own = {
        "user_id": user["user_id"],
        **{name: user["name"][name] for name in ("first_name", "last_name")},
        "email": user["email"],
        **{name: user["address"][name] for name in ADDRESS},
    }
    methods = user["payment_methods"].values()
    return [
        {
            **own,
            "order_id": order,
            "payment_method_id": method and method["id"],
            "payment_source": method and method["source"],
        }
        for order, method in zip_longest(user["orders"], methods)
    ] or [own]


def _order(order: Mapping[str, Any]) -> list[Row]:
    whole = {
        **{name: order[name] for name in ("order_id", "user_id", "status")},
        **{name: order["address"][name] for name in ADDRESS},
    }
    if paid := order["payment_history"]:
        whole["payment_method_id"] = paid[0]["payment_method_id"]
    if sent := order["fulfillments"]:
        whole["tracking_id"] = ", ".join(sent[0]["tracking_id"])
    return [
        {
            **whole,
            **{name: item[name] for name in ("item_id", "product_id", "name", "price")},
            "options": _options(item),
        }
        for item in order["items"]
    ]


def _variants(product: Mapping[str, Any]) -> list[Row]:
    return [
        {
            "product_id": product["product_id"],
            "name": product["name"],
            **{name: variant[name] for name in ("item_id", "price", "available")},
            "options": _options(variant),
        }
        for variant in product["variants"].values()
    ]


def _options(item: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in item["options"].items())


#: Parameters that identify something, and the field of a result that they may come from.
_FIELDS = {
    "user_id": "user_id",
    "order_id": "order_id",
    "product_id": "product_id",
    "item_id": "item_id",
    "item_ids": "item_id",
    "new_item_ids": "item_id",
    "payment_method_id": "payment_method_id",
}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def read_tau2(folder: Path, split: str = "test") -> Converted:
    """Convert the tasks of one of upstream's splits.

    Args:
        folder: Holds ``tasks.json``, ``db.json`` and ``split_tasks.json``.
        split: ``test``, ``train`` or ``base``, which is both.

    Raises:
        InputError: A file cannot be read or has another form, or there is no such split.
    """
    shop, toolbox = Shop(folder / "db.json"), retail_toolbox()
    splits, tasks = read_json(folder / "split_tasks.json"), read_json(folder / "tasks.json")
    if not isinstance(splits, dict) or not isinstance(tasks, list):
        raise InputError(f"{folder} holds no tasks of tau2-bench's retail domain.")
    if split not in splits:
        raise InputError(f"There is no split {split!r}. There are: {', '.join(splits)}.")
    wanted = set(map(str, splits[split]))
    items: list[EvaluationItem] = []
    refused: list[tuple[str, str]] = []
    for task in tasks:
        id_ = str(task.get("id")) if isinstance(task, dict) else ""
        if id_ in wanted:
            try:
                items.append(_item(f"retail-{id_}", task, shop, toolbox))
            except ConversionError as error:
                refused.append((f"retail-{id_}", str(error)))
    return Converted(items, refused)


def _item(id_: str, task: Mapping[str, Any], shop: Shop, toolbox: Toolbox) -> EvaluationItem:
    try:
        facts = task["user_scenario"]["instructions"]
        parts = (facts["reason_for_call"], facts.get("known_info"))
        question = " ".join(part.strip() for part in parts if part)
        actions = [(str(a["name"]), dict(a["arguments"])) for a in _actions(task)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConversionError("the task has another form") from error
    if not actions:
        raise ConversionError("nothing is to be done")
    replay = _Replay(shop, question)
    return to_item(id_, question, toolbox, Plan(tuple(replay.step(*a) for a in actions)))


def _actions(task: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    actions: Sequence[Mapping[str, Any]] = task["evaluation_criteria"]["actions"] or ()
    return actions


@dataclass
class _Replay:
    """The steps so far: what each was given, and what it returned."""

    shop: Shop
    question: str
    given: list[set[str]] = field(default_factory=list)
    returned: list[Sequence[Row]] = field(default_factory=list)

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Step:
        results = {name: self._value(name, value) for name, value in arguments.items()}
        if "address1" in arguments:
            results |= self._address(arguments)
        self.given.append({str(value) for value in arguments.values()})
        self.returned.append(self.shop.rows(tool, arguments))
        return Step(tool, tuple(results.items()))

    def _value(self, name: str, value: Any) -> Value:
        if isinstance(value, list):
            return ListValue(tuple(self._scalar(name, item) for item in value))
        return self._scalar(name, value)

    def _scalar(self, name: str, value: Any) -> Scalar:
        if not isinstance(value, (str, int, float)):
            raise ConversionError("a value that no plan can hold")
        if name in _FIELDS:
            return self._found({_FIELDS[name]: value}) or self._stated(value)
        if name == "expression" and any(
            number not in self.question for number in _NUMBER.findall(str(value))
        ):
            raise ConversionError("a sum of numbers that only results hold")
        return Literal(value)

    def _found(self, wanted: Mapping[str, Any]) -> StepRef | None:
        """Return a reference to the first of these fields, in the first row that holds them all.

        What a step was given and returns is not its own: it comes from further back.
        """
        for number, rows in enumerate(self.returned, 1):
            if any(str(value) in self.given[number - 1] for value in wanted.values()):
                continue
            for index, row in enumerate(rows):
                if all(row.get(name) == value for name, value in wanted.items()):
                    return StepRef(number, next(iter(wanted)), index)
        return None

    def _stated(self, value: Any) -> Literal:
        # Customers leave the sign out that every order's id begins with; the tool tells it.
        if str(value).removeprefix("#") not in self.question:
            raise ConversionError("an id that neither the question nor an earlier result holds")
        return Literal(value)

    def _address(self, arguments: Mapping[str, Any]) -> dict[str, Value]:
        """Return the parts of an address, which comes from one place as a whole."""
        parts = {name: arguments[name] for name in ADDRESS if name in arguments}
        if reference := self._found(parts):
            return {name: StepRef(reference.step, name, reference.index) for name in parts}
        if str(parts["address1"]).casefold() not in self.question.casefold():
            raise ConversionError(
                "an address that neither the question nor an earlier result holds"
            )
        return {name: Literal(value) for name, value in parts.items()}
