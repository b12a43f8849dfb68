"""The tools of tau2-bench's retail domain, as far as its gold actions use them.

What a tool returns is nested there; here every result is a row of plain fields. A profile is a row
for each order or payment method, an order one for each of its items, a product one for each
variant; what belongs to the whole stands in every row.
"""

from __future__ import annotations

from casewright.tools import Parameter, Source, Toolbox, ToolSpec

ADDRESS = ("address1", "address2", "city", "state", "country", "zip")
USER_FIELDS = (
    *("user_id", "first_name", "last_name", "email", *ADDRESS),
    *("order_id", "payment_method_id", "payment_source"),
)
ORDER_FIELDS = (
    *("order_id", "user_id", "status", *ADDRESS),
    *("item_id", "product_id", "name", "price", "options", "payment_method_id", "tracking_id"),
)
VARIANT_FIELDS = ("product_id", "name", "item_id", "price", "available", "options")

_TEXT = frozenset({Source.LITERAL, Source.STEP})
_WORDS = {
    "first_name": "The customer's first name.",
    "last_name": "The customer's last name.",
    "email": "The customer's e-mail address.",
    "user_id": "The customer's user id.",
    "order_id": "The order's id; it starts with #W.",
    "product_id": "The id of a kind of product, not of a variant.",
    "item_id": "The id of a variant of a product.",
    "item_ids": "Ids of the items concerned.",
    "new_item_ids": "Ids of the variants that they become, in the same order.",
    "payment_method_id": "The id of the payment method to charge or to refund.",
    "expression": "Numbers, + - * / and brackets.",
    "summary": "What the customer wants.",
    "address1": "Street and number.",
    "address2": "Flat or suite.",
}
_REASONS = ("no longer needed", "ordered by mistake")


def retail_toolbox() -> Toolbox:
    """Return the tools; they can be planned with, not run."""
    return Toolbox(
        [
            _tool(
                *("find_user_id_by_name_zip", "Finds a customer by name and zip code."),
                *(("first_name", "last_name", "zip"), ("user_id",)),
            ),
            _tool(
                *("find_user_id_by_email", "Finds a customer by e-mail address."),
                *(("email",), ("user_id",)),
            ),
            _tool(
                *("get_user_details", "The customer's profile, orders and payment methods."),
                *(("user_id",), USER_FIELDS),
            ),
            _tool(
                *("get_order_details", "Status, address, payment and items of an order."),
                *(("order_id",), ORDER_FIELDS),
            ),
            _tool(
                *("get_product_details", "The variants of a product, with price and options."),
                *(("product_id",), VARIANT_FIELDS),
            ),
            _tool(
                *("get_item_details", "One variant of a product, with price and options."),
                *(("item_id",), VARIANT_FIELDS),
            ),
            _tool("calculate", "Works out a sum.", ("expression",), ("result",)),
            _tool(
                *("return_delivered_order_items", "Returns items of a delivered order."),
                *(("order_id", "item_ids", "payment_method_id"), ORDER_FIELDS),
            ),
            _tool(
                *("exchange_delivered_order_items", "Exchanges items of a delivered order."),
                *(("order_id", "item_ids", "new_item_ids", "payment_method_id"), ORDER_FIELDS),
            ),
            _tool(
                *("modify_pending_order_items", "Changes items of a pending order."),
                *(("order_id", "item_ids", "new_item_ids", "payment_method_id"), ORDER_FIELDS),
            ),
            _tool(
                *("modify_pending_order_address", "Changes where a pending order is sent."),
                *(("order_id", *ADDRESS), ORDER_FIELDS),
            ),
            _tool(
                *("modify_pending_order_payment", "Changes how a pending order is paid."),
                *(("order_id", "payment_method_id"), ORDER_FIELDS),
            ),
            _tool(
                *("cancel_pending_order", "Cancels a pending order."),
                *(("order_id", "reason"), ORDER_FIELDS),
            ),
            _tool(
                *("modify_user_address", "Changes the customer's default address."),
                *(("user_id", *ADDRESS), USER_FIELDS),
            ),
            _tool(
                *("transfer_to_human_agents", "Hands the customer over to a person."),
                *(("summary",), ("evidence",)),
            ),
        ]
    )


def _tool(
    name: str, description: str, parameters: tuple[str, ...], results: tuple[str, ...]
) -> ToolSpec:
    return ToolSpec(name, description, tuple(map(_parameter, parameters)), results)


def _parameter(name: str) -> Parameter:
    if name == "reason":
        return Parameter(name, "Why.", "string", choices=_REASONS)
    kind = "array" if name.endswith("_ids") else "string"
    return Parameter(name, _WORDS.get(name, ""), kind, _TEXT)
