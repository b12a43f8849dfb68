"""Converts tables and JSON to lines of text; each line can be understood alone.

A row gets its table's column names, and a JSON value its key path. LlamaIndex's CSV readers drop
the header, and its JSON reader drops the nesting.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any

SEPARATORS = ",;\t|"
#: A longer key path is cut at its start to this many characters.
MAX_PATH_LENGTH = 200

#: A line of text, and the number of the file's line at which the row or value ends, if known.
Record = tuple[str, int | None]


def table_records(text: str) -> list[Record]:
    """Return each row of a table as ``column: value; …``; the first row has the column names."""
    separator = max(SEPARATORS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    header = [" ".join(name.split()) for name in next(reader, [])]
    return [(_row_text(header, row), reader.line_num) for row in reader if any(map(str.strip, row))]


def json_records(text: str) -> list[Record] | None:
    """Return JSON or JSON Lines as records with key paths; ``None`` for other text."""
    with suppress(ValueError):
        return [(line, None) for line in _value_lines(json.loads(text))]
    with suppress(ValueError):
        return [
            ("; ".join(_value_lines(json.loads(line))).replace("\n", " "), number)
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip()
        ]
    return None


def _row_text(header: list[str], row: list[str]) -> str:
    cells = zip_longest(header, (" ".join(cell.split()) for cell in row), fillvalue="")
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in cells if cell)


def _value_lines(value: Any, key_path: str = "") -> Iterator[str]:
    prefix = f"{key_path}: " if key_path else ""
    if isinstance(value, dict):
        for key, nested in value.items():
            nested_path = f"{key_path}.{key}"[-MAX_PATH_LENGTH:].removeprefix(".")
            yield from _value_lines(nested, nested_path)
    elif not isinstance(value, list):
        yield prefix + (value if isinstance(value, str) else json.dumps(value))
    elif any(isinstance(item, dict | list) for item in value):
        for item in value:
            yield prefix + "; ".join(_value_lines(item))
    else:
        yield prefix + ", ".join(str(item) for item in value)
