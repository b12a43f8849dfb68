from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from copy import deepcopy
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from casewright.domains.shopping import domain
from casewright.domains.shopping.data import records, source_records
from casewright.domains.shopping.ids_and_dates import SEED, TODAY, complete
from casewright.errors import InputError
from tests.support.encoders import HashingEncoder

NAMES = ("products", "reviews", "help", "customers", "orders")
SEEDS = (1, 2, 3, 20261121)
MONTHS = "January February March April May June July August September October November December"
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
MONTH, WEEKDAY = (names.replace(" ", "|") for names in (MONTHS, WEEKDAYS))
NAMED_DAY = re.compile(rf"(?:({WEEKDAY}), )?(\d+) ({MONTH}) (\d{{4}})")
Record = dict[str, Any]
Shop = dict[str, list[Record]]


def dump(rows: Iterable[Record]) -> str:
    return json.dumps(list(rows), ensure_ascii=False)


def orders(seed: int = SEED, today: date = TODAY) -> list[Record]:
    return complete("orders", source_records, seed=seed, today=today)


def named_days(text: str) -> list[date]:
    """Return the days that a text names with a year, and check their weekdays."""
    days = []
    for weekday, day, month, year in NAMED_DAY.findall(text):
        days.append(date(int(year), MONTHS.split().index(month) + 1, int(day)))
        assert weekday in ("", WEEKDAYS.split()[days[-1].weekday()]), text
    return days


def texts(order: Record) -> Iterator[str]:
    yield order["parcel"]["note"]
    yield from (event["what"] for event in order["parcel"]["events"])


def small_shop() -> Shop:
    """Return the source records of a shop with one order, for tests to break."""
    product = {"title": "Ash desk lamp", "price": 30.0, "specs": {}, "qna": []}
    event = {"day": -2, "at": "morning", "place": "Port Ellery warehouse", "what": "Packed"}
    parcel = {
        "carrier": "NordPost",
        "state": "in transit",
        "expected": 1,
        "events": [event, event | {"at": "afternoon", "what": "Handed over"}],
        "note": "It comes on {expected}.",
    }
    order = {"customer": "Mara", "ordered": -3, "items": {"ash-lamp": 2}, "paid_with": "card"}
    review = {"stars": 5, "title": "Bright", "text": "It is.", "author": "Jo P.", "day": -40}
    return {
        "products": [{"slug": "oak-table"} | product, {"slug": "ash-lamp"} | product],
        "customers": [{"name": "Tomas"}, {"name": "Mara"}],
        "reviews": [review | {"product": "oak-table"}, review | {"product": "ash-lamp"}],
        "orders": [order | {"parcel": parcel}],
    }


def derive(name: str, shop: Shop, today: date = TODAY) -> list[Record]:
    return complete(name, shop.__getitem__, today=today)


def test_same_seed_and_today_give_the_same_records_byte_for_byte() -> None:
    dumps = {name: dump(complete(name, source_records, seed=SEED, today=TODAY)) for name in NAMES}
    assert dumps == {name: dump(records(name)) for name in NAMES}
    code = (
        "import hashlib, json\nfrom casewright.domains.shopping.data import records\n"
        f"told = [json.dumps(records(n), ensure_ascii=False) for n in {NAMES}]\n"
        "print(hashlib.sha256(''.join(told).encode()).hexdigest())"
    )
    env = os.environ | {"PYTHONHASHSEED": "12345"}
    process = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    expected = hashlib.sha256("".join(dumps[name] for name in NAMES).encode()).hexdigest()
    assert process.stdout.strip() == expected


def test_another_seed_changes_order_numbers_tracking_numbers_and_times_only() -> None:
    for name in NAMES[:-1]:
        assert complete(name, source_records, seed=SEED + 1) == complete(name, source_records)
    first, second = orders(), orders(SEED + 1)
    changing = [
        [(o["id"], o["parcel"]["tracking"], o["parcel"]["events"][0]["at"]) for o in group]
        for group in (first, second)
    ]
    for values in zip(*(zip(*group, strict=True) for group in changing), strict=True):
        assert values[0] != values[1]
    for order in (*first, *second):
        order["id"] = order["parcel"]["tracking"] = ""
        for event in order["parcel"]["events"]:
            event["at"] = event["at"][:10]
    assert first == second


@pytest.mark.parametrize("today", [date(2024, 2, 29), date(2026, 11, 22), date(2031, 1, 1)])
def test_another_today_shifts_every_date_of_records_and_notes(today: date) -> None:
    shift = today - TODAY
    for before, after in zip(orders(), orders(today=today), strict=True):
        assert [
            (d, e) for d, e in zip(*map(dates, (before, after)), strict=True) if e - d != shift
        ] == []
        for text, shifted in zip(texts(before), texts(after), strict=True):
            assert [day + shift for day in named_days(text)] == named_days(shifted)
            if not re.search(rf"\d ({MONTH})|{WEEKDAY}", text):
                assert text == shifted
    reviewed = zip(
        records("reviews"), complete("reviews", source_records, today=today), strict=True
    )
    for original, moved in reviewed:
        assert date.fromisoformat(moved["date"]) - date.fromisoformat(original["date"]) == shift
        assert original | {"date": ""} == moved | {"date": ""}


def dates(order: Record) -> list[date]:
    parcel = order["parcel"]
    days = [order["date"], parcel["expected"], parcel["delivered"] or parcel["expected"]]
    return [date.fromisoformat(d[:10]) for d in days + [e["at"] for e in parcel["events"]]]


@pytest.mark.parametrize("form", ["{delivered}", "{day:-3}", "{day:delivered}", "{-3}"])
def test_placeholder_names_a_day_in_full(form: str) -> None:
    shop = small_shop()
    shop["orders"][0]["parcel"] |= {"delivered": -3, "note": f"It came on {form}."}
    assert derive("orders", shop)[0]["parcel"]["note"] == "It came on Wednesday, 18 November 2026."


def test_placeholders_name_short_days_and_the_total() -> None:
    shop = small_shop()
    note = "{date:ordered}, {short:20}, {weekday:0}, {total} euros"
    shop["orders"][0]["parcel"]["note"] = note
    completed_note = derive("orders", shop)[0]["parcel"]["note"]
    assert completed_note == "18 November 2026, 11 December, Saturday, 60.00 euros"


def test_no_placeholder_is_left_in_a_record() -> None:
    assert not re.search(r"[{}]", "".join(text for order in orders() for text in texts(order)))


@pytest.mark.parametrize("seed", SEEDS)
def test_order_numbers_and_tracking_numbers_are_unique_and_orders_are_numbered_by_date(
    seed: int,
) -> None:
    completed = orders(seed)
    for values in ([o["id"] for o in completed], [o["parcel"]["tracking"] for o in completed]):
        assert len(set(values)) == len(completed)
    dates = [order["date"] for order in sorted(completed, key=lambda order: str(order["id"]))]
    assert dates == sorted(dates)
    forms = {
        "NordPost": r"NP6\d{8}HC",
        "Swiftbird": r"SB-\d{4}-\d{4}-\d\d",
        "Parcelry": r"PY\d[A-Z]\d[A-Z]\d\d[A-Z][A-Z]\d",
    }
    for order in completed:
        assert re.fullmatch(r"O\d{4}", order["id"])
        parcel = order["parcel"]
        assert re.fullmatch(forms[parcel["carrier"]], parcel["tracking"])


def test_products_reviews_articles_and_customers_are_numbered_by_position() -> None:
    forms = {"products": "P{:03}", "reviews": "R{:04}", "help": "H{:03}", "customers": "C{:03}"}
    for name, form in forms.items():
        ids = [record["id"] for record in records(name)]
        assert ids == [form.format(n) for n in range(1, len(ids) + 1)]


@pytest.mark.parametrize("seed", SEEDS)
def test_clock_times_increase_and_keep_opening_hours(seed: int) -> None:
    for order in orders(seed):
        events = order["parcel"]["events"]
        times = [event["at"] for event in events]
        assert times == sorted(set(times))
        for event in events:
            clock, place = event["at"][11:], event["place"]
            if re.search(r"warehouse|returns centre|customs|pick-up|locker", place):
                assert "07:30" <= clock < "18:00", event
            elif not re.search(r"sorting centre|depot|online shop", place):
                assert "08:00" <= clock < "20:00", event


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("words", "day", "earliest", "latest"),
    [
        ("just after noon", None, "12:00", "12:30"),
        ("shortly before noon", None, "11:30", "12:00"),
        ("on the evening of", None, "18:00", "22:00"),
        ("on the afternoon of", None, "12:30", "18:00"),
        ("on the morning of", None, "06:00", "12:00"),
        ("last night", -1, "20:00", "24:00"),
        ("early this morning", 0, "00:00", "07:00"),
        ("yesterday afternoon", -1, "12:00", "18:00"),
        ("are being packed in our Port Ellery warehouse this morning", 0, "06:00", "12:00"),
    ],
)
def test_time_of_day_in_a_parcel_note_matches_its_last_event(
    seed: int, words: str, day: int | None, earliest: str, latest: str
) -> None:
    parcels = [order["parcel"] for order in orders(seed) if words in order["parcel"]["note"]]
    assert parcels
    for parcel in parcels:
        time = parcel["events"][-1]["at"]
        assert earliest <= time[11:] < latest, parcel
        if day is not None:
            assert time[:10] == (TODAY + timedelta(days=day)).isoformat(), parcel
        else:
            assert named_days(parcel["note"]) == [date.fromisoformat(time[:10])], parcel


def test_notes_name_only_days_of_their_order() -> None:
    for order in source_records("orders"):
        parcel = order["parcel"]
        known = {"ordered", "expected", "delivered", "total"}
        known |= {str(event["day"]) for event in parcel["events"]}
        # An event may name a future day: "Ready for collection until ...".
        for event in parcel["events"]:
            known |= {field.split(":")[-1] for field in re.findall(r"\{(.*?)\}", event["what"])}
        # A note may call a day today or tomorrow.
        known |= {str(n) for n, word in ((0, "today"), (1, "tomorrow")) if word in parcel["note"]}
        for field in re.findall(r"\{(.*?)\}", parcel["note"]):
            assert field.split(":")[-1] in known, parcel["note"]


@pytest.mark.parametrize("name", NAMES)
def test_source_records_have_no_generated_ids_dates_or_numbers(name: str) -> None:
    generated_keys = {"id", "product_id", "order_id", "date", "tracking", "total"}

    def walk(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            assert not generated_keys & set(value), value
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                yield from walk(part)
        elif isinstance(value, str):
            yield value

    for text in walk(source_records(name)):
        assert not re.search(r"\d{4}-\d\d-\d\d", text), text
        assert not re.search(r"\bNP\d{6}|\bSB-\d{4}|\bPY\d[A-Z]\d", text), text
        assert not re.search(r"\b(O\d{4}|P\d{3}|R\d{4}|H\d{3}|C\d{3})\b", text), text
        if name == "orders":
            assert not re.search(rf"\b(20\d\d|{WEEKDAY}|{MONTH})\b", text), text


def test_items_of_an_order_cost_what_the_catalogue_says() -> None:
    shop = small_shop()
    shop["products"][1] |= {"title": "Ash lamp", "price": 12.25}
    shop["orders"][0]["delivery"] = 4.9
    order = derive("orders", shop)[0]
    item = {"product_id": "P002", "title": "Ash lamp", "quantity": 2, "price": 12.25}
    assert (order["items"], order["total"], order["customer"]) == ([item], 29.4, "C002")


def test_complete_does_not_change_the_source_records() -> None:
    shop = small_shop()
    before = deepcopy(shop)
    for name in shop:
        derive(name, shop)
    assert shop == before


def test_unknown_slug_is_an_error_with_file_line_and_the_nearest_slug() -> None:
    shop = small_shop()
    shop["reviews"][1]["product"] = "ash-lamb"
    with pytest.raises(InputError, match=r"^reviews\.jsonl, line 2: .*'ash-lamb'.*'ash-lamp'"):
        derive("reviews", shop)
    shop["orders"][0]["items"] = {"oak-tabel": 1}
    with pytest.raises(InputError, match=r"^orders\.jsonl, line 1: .*'oak-tabel'.*'oak-table'"):
        derive("orders", shop)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("products", {"slug": "ash-lamp"}, r"line 2: 'ash-lamp' is also in line 1\. Rename one"),
        ("products", {"id": "P001"}, r"line 1: The record has an id\. Leave it out"),
        ("customers", {"name": "Mara"}, r"line 2: 'Mara' is also in line 1"),
        (
            "reviews",
            {"day": "2026-01-01"},
            r"'2026-01-01' is not a number of days from today, such as -3",
        ),
        ("orders", {"customer": "Marta"}, r"no 'Marta'\. Write .*'Mara'"),
        ("orders", {"ordered": None}, r"None is not a number of days"),
        ("orders", {"ordered": 10**9}, r"is not a number of days"),
    ],
)
def test_invalid_source_record_raises_an_error_with_file_line_and_correction(
    name: str, change: Record, message: str
) -> None:
    shop = small_shop()
    shop[name][0] |= change
    with pytest.raises(InputError, match=rf"^{name}\.jsonl, line \d: .*" + message.split(": ")[-1]):
        derive(name, shop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"carrier": "Owl"}, r"'Owl'\. Carriers are NordPost, Swiftbird, Parcelry"),
        ({"note": "On {someday}."}, r"\{someday\} names no day\. Write .*\{expected\}"),
        ({"note": "On {delivered}."}, r"\{delivered\} names no day"),
        ({"note": "On {long:-3}."}, r"forms are day, date, short, weekday"),
        ({"note": "On {day:99999999}."}, r"names no day"),
        ({"note": "On {}."}, r"\{\} names no day"),
    ],
)
def test_invalid_parcel_is_refused_with_a_correction(change: Record, message: str) -> None:
    shop = small_shop()
    shop["orders"][0]["parcel"] |= change
    with pytest.raises(InputError, match=r"^orders\.jsonl, line 1: .*" + message):
        derive("orders", shop)


def test_event_at_no_part_of_the_day_or_back_in_time_is_refused() -> None:
    shop = small_shop()
    events = shop["orders"][0]["parcel"]["events"]
    events[0] = events[0] | {"at": "10:30"}
    with pytest.raises(InputError, match=r"line 1: '10:30' is not a part of the day: night, early"):
        derive("orders", shop)
    events[0] = events[0] | {"at": "evening"}
    with pytest.raises(
        InputError, match=r"line 1: An event is earlier than the event before it\. Write"
    ):
        derive("orders", shop)


@pytest.mark.parametrize("key", ["carrier", "events", "note", "expected", "state"])
def test_missing_parcel_key_raises_an_error_with_file_and_line(key: str) -> None:
    shop = small_shop()
    del shop["orders"][0]["parcel"][key]
    with pytest.raises(InputError, match=rf"^orders\.jsonl, line 1: Add its '{key}'\.$"):
        derive("orders", shop)


def test_digest_of_the_shop_includes_ids_and_dates_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class DigestError(Exception):
        pass

    def raise_names(files: Iterable[Any], schemas: object) -> str:
        raise DigestError({file.name for file in files})

    monkeypatch.setattr(domain, "digest", raise_names)
    with pytest.raises(DigestError) as raised:
        domain.open_shopping(tmp_path, HashingEncoder())
    assert {"ids_and_dates.py", "orders.jsonl"} <= raised.value.args[0]
