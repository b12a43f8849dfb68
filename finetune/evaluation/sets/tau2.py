"""tau2-bench's retail tasks (Barres et al. 2025, arXiv 2506.07982), converted to plans.

The gold actions of a task become steps, including actions that change data. An action's arguments
are literal. A replay of the tools that only read finds references: if the matching field of an
earlier result has an argument's value, the argument becomes a reference to this field.

In the benchmark's conversations, an agent sees each result before its next call. A planner sees no
result, and often the question does not say which of several rows is meant. A plan's tools therefore
measure a planner better than its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.sets.converted import Converted, read_json, to_item
from casewright.finetune.tool_sets.calls import Unfit, unfit_on
from casewright.planner import ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Scalar, Value
from casewright.tools import Toolbox, toolbox_from_file

ADDRESS = ("address1", "address2", "city", "state", "country", "zip")
Row = Mapping[str, Any]


class _Shop:
    """The database ``db.json`` in its state before a task."""

    def __init__(self, file: Path) -> None:
        content = read_json(file)
        try:
            tables = (dict(content[name]) for name in ("users", "orders", "products"))
            self._users, orders, products = tables
            variants = {key: _variants(product) for key, product in products.items()}
            items = {row["item_id"]: [row] for rows in variants.values() for row in rows}
            #: For each reading tool, the parameter's name, and the result's rows by the argument.
            self._rows: Mapping[str, tuple[str, Mapping[str, list[Row]]]] = {
                "get_user_details": ("user_id", {k: _profile(v) for k, v in self._users.items()}),
                "get_order_details": ("order_id", {k: _order(v) for k, v in orders.items()}),
                "get_product_details": ("product_id", variants),
                "get_item_details": ("item_id", items),
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{file} is no database of tau2-bench's retail domain: {error}."
            ) from error

    def rows(self, tool: str, arguments: Mapping[str, Any]) -> Sequence[Row]:
        """Return the rows of a reading tool's result; none for tools that change data."""
        if tool not in _USER_SEARCHES:
            parameter, rows = self._rows.get(tool, ("", {}))
            return rows.get(arguments.get(parameter, ""), [])

        def searched_values(source: Mapping[str, Any]) -> list[str]:
            return [str(source.get(name)).casefold() for name in _USER_SEARCHES[tool]]

        given = searched_values(arguments)
        users = {id_: {**u, **u["name"], **u["address"]} for id_, u in self._users.items()}
        return [{"user_id": id_} for id_, user in users.items() if searched_values(user) == given]


#: For each tool that finds a user, the parameters; a user has fields with the same names.
_USER_SEARCHES = {
    "find_user_id_by_name_zip": ("first_name", "last_name", "zip"),
    "find_user_id_by_email": ("email",),
}


def _select(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a dictionary with these fields of a record."""
    return {name: record[name] for name in names}


def _profile(user: Mapping[str, Any]) -> list[Row]:
    shared = {
        "user_id": user["user_id"],
        **_select(user["name"], "first_name", "last_name"),
        "email": user["email"],
        **_select(user["address"], *ADDRESS),
    }
    methods = user["payment_methods"].values()
    # A row has one order and one payment method, which need not belong together.
    return [
        {
            **shared,
            "order_id": order,
            "payment_method_id": method and method["id"],
            "payment_source": method and method["source"],
        }
        for order, method in zip_longest(user["orders"], methods)
    ] or [shared]


def _order(order: Mapping[str, Any]) -> list[Row]:
    shared = _select(order, "order_id", "user_id", "status") | _select(order["address"], *ADDRESS)
    if payments := order["payment_history"]:
        shared["payment_method_id"] = payments[0]["payment_method_id"]
    if fulfillments := order["fulfillments"]:
        shared["tracking_id"] = ", ".join(fulfillments[0]["tracking_id"])
    names, items = ("item_id", "product_id", "name", "price"), order["items"]
    return [{**shared, **_select(item, *names), "options": _options(item)} for item in items]


def _variants(product: Mapping[str, Any]) -> list[Row]:
    shared, names = _select(product, "product_id", "name"), ("item_id", "price", "available")
    variants = product["variants"].values()
    return [{**shared, **_select(item, *names), "options": _options(item)} for item in variants]


def _options(item: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in item["options"].items())


#: For each parameter that takes an id, the field that holds this id in a result.
_FIELD_OF = {
    **{n: n for n in ("user_id", "order_id", "product_id", "item_id", "payment_method_id")},
    "item_ids": "item_id",
    "new_item_ids": "item_id",
}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def read_tau2(folder: Path) -> Converted:
    """Return the test tasks of a folder with ``tasks.json``, ``db.json`` and ``split_tasks.json``.

    ``InputError`` if a file cannot be read or is malformed.
    """
    shop = _Shop(folder / "db.json")
    # The file specifies the tools of gold actions, without functions to run.
    toolbox = toolbox_from_file(Path(__file__).parent / "retail_tools.json")
    splits, tasks = read_json(folder / "split_tasks.json"), read_json(folder / "tasks.json")
    if not isinstance(splits, dict) or "test" not in splits or not isinstance(tasks, list):
        raise InputError(f"{folder} holds no test tasks of tau2-bench's retail domain.")
    test_ids = {f"retail-{id_}" for id_ in splits["test"]}
    task_by_id = {f"retail-{task.get('id')}": task for task in tasks if isinstance(task, dict)}
    ids = (id_ for id_ in task_by_id if id_ in test_ids)
    return Converted.of((i, partial(_item, i, task_by_id[i], shop, toolbox)) for i in ids)


def _item(id_: str, task: Mapping[str, Any], shop: _Shop, toolbox: Toolbox) -> EvaluationItem:
    errors = (KeyError, TypeError, ValueError, AttributeError)
    with unfit_on(*errors, reason="the task has another form"):
        instructions = task["user_scenario"]["instructions"]
        texts = (instructions["reason_for_call"], instructions.get("known_info"))
        question = " ".join(text.strip() for text in texts if text)
        gold = task["evaluation_criteria"]["actions"] or ()
        actions = [(str(action["name"]), dict(action["arguments"])) for action in gold]
    if not actions:
        raise Unfit("nothing is to be done")
    replay = _Replay(shop, question)
    return to_item(id_, question, toolbox, Plan(tuple(replay.step(*a) for a in actions)))


@dataclass
class _Replay:
    """The conversion of one task's actions.

    ``steps`` holds, for each earlier step, the arguments as texts and the rows of the result.
    """

    shop: _Shop
    question: str
    steps: list[tuple[set[str], Sequence[Row]]] = field(default_factory=list)

    def step(self, tool: str, arguments: Mapping[str, Any]) -> Step:
        values = {name: self._value(name, value) for name, value in arguments.items()}
        if "address1" in arguments:
            values |= self._address(arguments)
        self.steps.append((set(map(str, arguments.values())), self.shop.rows(tool, arguments)))
        return Step(tool, tuple(values.items()))

    def _value(self, name: str, value: Any) -> Value:
        if isinstance(value, list):
            return ListValue(tuple(self._scalar(name, item) for item in value))
        return self._scalar(name, value)

    def _scalar(self, name: str, value: Any) -> Scalar:
        if not isinstance(value, (str, int, float)):
            raise Unfit("a value that no plan can hold")
        if name in _FIELD_OF:
            if reference := self._reference({_FIELD_OF[name]: value}):
                return reference
            # Customers omit the # at the start of an order's id.
            if str(value).removeprefix("#") not in self.question:
                raise Unfit("an id that neither the question nor an earlier result holds")
        # The parameter ``expression`` of ``calculate``: its numbers must be in the question.
        numbers = _NUMBER.findall(str(value)) if name == "expression" else ()
        if any(number not in self.question for number in numbers):
            raise Unfit("a sum of numbers that only results hold")
        return Literal(value)

    def _reference(self, fields: Mapping[str, Any]) -> StepRef | None:
        """Return a reference to the first of ``fields``, in the first row with all their values.

        Steps that have one of the values as an argument are skipped.
        """
        for number, (arguments, rows) in enumerate(self.steps, 1):
            if arguments.isdisjoint(map(str, fields.values())):
                for index, row in enumerate(rows):
                    if fields.items() <= row.items():
                        return StepRef(number, next(iter(fields)), index)
        return None

    def _address(self, arguments: Mapping[str, Any]) -> dict[str, Value]:
        """Return the address's arguments, all from one result or all from the question."""
        address = {name: arguments[name] for name in ADDRESS if name in arguments}
        if reference := self._reference(address):
            return {name: StepRef(reference.step, name, reference.index) for name in address}
        if str(address["address1"]).casefold() not in self.question.casefold():
            raise Unfit("an address that neither the question nor an earlier result holds")
        return {name: Literal(value) for name, value in address.items()}
