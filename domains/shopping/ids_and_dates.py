"""Generates the ids and dates of the shop's records from a seed and a fixed day "today".

The hand-written data have no ids and dates. They refer to products by slug and to customers by
name. Their days are numbers of days from today, their times are parts of the day, and their texts
have placeholders for days. So "yesterday" in a text agrees with the dates, whatever "today" is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from random import Random
from typing import Any

from casewright.errors import InputError

SEED = 1
TODAY = date(2026, 11, 21)
Row = Mapping[str, Any]  # a hand-written record
Record = dict[str, Any]  # a record with ids and dates
#: A function that returns a file's hand-written records.
Read = Callable[[str], Sequence[Row]]
#: The records of other files: by file, then by slug or name.
OtherRecords = Mapping[str, Mapping[str, Record]]

_ID_FORMS = {"products": "P{:03}", "reviews": "R{:04}", "help": "H{:03}", "customers": "C{:03}"}
_KEY_FIELD = {"products": "slug", "customers": "name"}
_REFERENCED_FILES = {"reviews": ("products",), "orders": ("products", "customers")}
# The minutes since midnight of each part of the day, in order, without overlaps. Authors of parcel
# events follow rules that are not checked: places are open from "early" to "afternoon"; couriers
# also deliver in the "evening"; sorting centres, depots and the online shop never close.
_DAY_PARTS = {
    "night": range(60, 300),
    "early": range(450, 525),
    "morning": range(540, 690),
    "just before noon": range(700, 716),
    "just after noon": range(725, 741),
    "lunchtime": range(750, 826),
    "afternoon": range(840, 1020),
    "evening": range(1080, 1190),
    "late": range(1230, 1425),
}
# A # is a digit, and a ? a consonant, so that no tracking number spells a word.
_TRACKING = {"NordPost": "NP6########HC", "Swiftbird": "SB-####-####-##", "Parcelry": "PY#?#?##??#"}
_CHARACTERS = {"#": "0123456789", "?": "BCDFGHJKLMNPQRSTVWXZ"}
# These names do not depend on the locale, as strftime does.
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS = "January February March April May June July August September October November December"
_DATE_FORMS: dict[str, Callable[[date], str]] = {
    "day": lambda day: f"{_DATE_FORMS['weekday'](day)}, {_DATE_FORMS['date'](day)}",
    "date": lambda day: f"{_DATE_FORMS['short'](day)} {day.year}",
    "short": lambda day: f"{day.day} {_MONTHS.split()[day.month - 1]}",
    "weekday": lambda day: _WEEKDAYS.split()[day.weekday()],
}


def complete(name: str, read: Read, *, seed: int = SEED, today: date = TODAY) -> list[Record]:
    """Return a file's hand-written records with ids and dates.

    ``read`` returns the hand-written records of this file and of the files that it refers to.
    ``seed`` determines order numbers, tracking numbers and times. Raise ``InputError`` if a record
    cannot be completed; the message names its line and the correction.
    """
    others = {other: _by_slug_or_name(other, read) for other in _REFERENCED_FILES.get(name, ())}
    records: list[Record] = []
    line_of: dict[str, int] = {}
    for line, row in enumerate(read(name), 1):
        try:
            if "id" in row:
                raise InputError("The record has an id. Leave it out: ids are generated.")
            if name in _KEY_FIELD:
                key = row[_KEY_FIELD[name]]
                if line_of.setdefault(key, line) != line:
                    raise InputError(f"{key!r} is also in line {line_of[key]}. Rename one of them.")
            if name == "orders":
                # Each order has its own random numbers, so a change of an order changes no other.
                fields = _order(row, others, Random(f"{seed} {line}"), today)
            elif name == "reviews":
                fields = _review(row, others, today)
            else:
                fields = {key: row[key] for key in row if key != "slug"}
        except KeyError as error:
            raise InputError(f"{name}.jsonl, line {line}: Add its {error}.") from error
        except InputError as error:
            raise InputError(f"{name}.jsonl, line {line}: {error}") from error
        records.append({"id": _ID_FORMS[name].format(line) if name in _ID_FORMS else "", **fields})
    if name == "orders":
        numbers = sorted(Random(seed).sample(range(1000, 10000), len(records)))
        by_date = sorted(records, key=lambda order: order["date"])
        for number, order in zip(numbers, by_date, strict=True):
            order["id"] = f"O{number}"
    return records


def _by_slug_or_name(file: str, read: Read) -> dict[str, Record]:
    records = complete(file, read)
    return {row[_KEY_FIELD[file]]: record for row, record in zip(read(file), records, strict=True)}


def _record(others: OtherRecords, file: str, key: str) -> Record:
    if key not in others[file]:
        from difflib import get_close_matches  # only for errors

        nearest = ", ".join(map(repr, get_close_matches(key, others[file], cutoff=0)))
        raise InputError(f"{file}.jsonl has no {key!r}. Write one that it has, such as {nearest}.")
    return others[file][key]


def _review(row: Row, others: OtherRecords, today: date) -> Record:
    return {
        "product_id": _record(others, "products", row["product"])["id"],
        **{key: row[key] for key in ("stars", "title", "text", "author")},
        "date": _day(row["day"], today).isoformat(),
    }


def _order(row: Row, others: OtherRecords, rng: Random, today: date) -> Record:
    items, parcel = [], row["parcel"]
    for slug, quantity in row["items"].items():
        product = _record(others, "products", slug)
        item = {"product_id": product["id"], "title": product["title"], "quantity": quantity}
        items.append({**item, "price": product["price"]})
    # Delivery costs are written only if they were charged: domestic delivery is free from 50 euros.
    delivery = row.get("delivery", 0)
    total = round(sum(item["price"] * item["quantity"] for item in items) + delivery, 2)
    days = {"ordered": _day(row["ordered"], today), "expected": _day(parcel["expected"], today)}
    if "delivered" in parcel:
        days["delivered"] = _day(parcel["delivered"], today)

    tracking = _tracking(parcel["carrier"], rng)
    times = _times(parcel["events"], rng, today)

    def placeholder_text(match: re.Match[str]) -> str:
        if match[1] == "total":
            return f"{total:.2f}"
        form, _, day_text = match[1].rpartition(":")
        try:
            day = days[day_text] if day_text in days else _day(int(day_text), today)
            return _DATE_FORMS[form or "day"](day)
        except (KeyError, ValueError):
            raise InputError(
                f"{match[0]} names no day. Write one of {', '.join(days)}, or days from today, "
                f"as in {{expected}} or {{short:-3}}; forms are {', '.join(_DATE_FORMS)}."
            ) from None

    def fill_placeholders(text: str) -> str:
        return re.sub(r"\{([^{}]*)\}", placeholder_text, text)

    return {
        "customer": _record(others, "customers", row["customer"])["id"],
        "date": days["ordered"].isoformat(),
        "items": items,
        "total": total,
        "paid_with": row["paid_with"],
        "parcel": {
            "carrier": parcel["carrier"],
            "tracking": tracking,
            "state": parcel["state"],
            "expected": days["expected"].isoformat(),
            "delivered": days["delivered"].isoformat() if "delivered" in days else None,
            "events": [
                {"at": at, "place": event["place"], "what": fill_placeholders(event["what"])}
                for at, event in zip(times, parcel["events"], strict=True)
            ],
            "note": fill_placeholders(parcel["note"]),
        },
    }


def _day(days: int, today: date) -> date:
    try:
        return today + timedelta(days=days)
    except (TypeError, OverflowError):
        raise InputError(f"{days!r} is not a number of days from today, such as -3.") from None


def _tracking(carrier: str, rng: Random) -> str:
    if carrier not in _TRACKING:
        raise InputError(f"There is no carrier {carrier!r}. Carriers are {', '.join(_TRACKING)}.")
    return "".join(rng.choice(_CHARACTERS.get(sign, sign)) for sign in _TRACKING[carrier])


def _times(events: Sequence[Row], rng: Random, today: date) -> Iterator[str]:
    """Yield a random time within each event's part of the day, in the order of the events."""
    parts = list(_DAY_PARTS)
    for event in events:
        if event["at"] not in parts:
            raise InputError(f"{event['at']!r} is not a part of the day: {', '.join(parts)}.")
    days_and_parts = [(_day(event["day"], today), parts.index(event["at"])) for event in events]
    if days_and_parts != sorted(days_and_parts):
        raise InputError("An event is earlier than the event before it. Write them in order.")
    for (day, part), group in groupby(days_and_parts):
        for minute in sorted(rng.sample(_DAY_PARTS[parts[part]], len(list(group)))):
            yield f"{day}T{minute // 60:02}:{minute % 60:02}"
