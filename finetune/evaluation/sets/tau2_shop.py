"""The read-only tools of tau2-bench's retail domain, replayed over its database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.evaluation.sets.converted import read_json
from casewright.finetune.evaluation.sets.tau2_tools import ADDRESS

Row = Mapping[str, Any]


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
