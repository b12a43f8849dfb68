"""Parts of a text that can be quoted by themselves."""

from __future__ import annotations

import pytest

from casewright.stores.documents.quotable import quotables

LIST = "The mill has:\n\n- a stone\n- a wheel\n  of oak"
CODE = "Oil it:\n\n```python\noil()\n\nstop()\n```"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It turns. It stops at noon.", ["It turns.", "It stops at noon."]),
        (LIST, ["The mill has:\n- a stone\n- a wheel\n  of oak"]),
        (CODE, ["Oil it:\n```python\noil()\n\nstop()\n```"]),
        ("  ```\n  oil()\n  ```", ["```\noil()\n```"]),
        (
            "| part | oil |\n| --- | --- |\n| mill | red |\n| saw | |",
            ["part: mill; oil: red", "part: saw; oil: "],
        ),
        ("See [the guide](guide.md#oil) first.", ["See the guide first."]),
        (
            "A long line of this paragraph that was\nwrapped. Then",
            ["A long line of this paragraph that was wrapped.", "Then"],
        ),
        (
            'Oil it, e.g. Castor oil.\n\n!!! tip "Good to know"\n\n> It squeaks.\n\nMill\n====',
            ["Oil it, e.g. Castor oil.", "It squeaks.", "Mill"],
        ),
        ("The rule:\n\n| --- | --- |\n\nThe end.", ["The end."]),
        ("", []),
    ],
)
def test_quotable_parts_are_sentences_lists_table_rows_and_code_blocks(
    text: str, parts: list[str]
) -> None:
    assert [part.text for part in quotables(text)] == parts


def test_items_of_a_long_list_are_separate_parts_with_the_introduction() -> None:
    items = "\n".join(f"- wheel {number} " + "turns " * 20 for number in range(9))
    parts = quotables(f"It has:\n{items}")
    assert len(parts) == 9
    assert all(part.text.startswith(f"It has: wheel {n}") for n, part in enumerate(parts))


def test_quotable_parts_have_the_heading_above_them() -> None:
    parts = quotables("# Mill\n\nIt turns.\n\n## `speed`\n\nTwelve.")
    assert [(part.heading, part.text) for part in parts] == [
        ("Mill", "It turns."),
        ("speed", "Twelve."),
    ]


def test_rows_of_a_table_without_a_header_have_no_column_names() -> None:
    assert [part.text for part in quotables("| `a` | 1 |\n| `b` | 2 |")] == ["`a`; 1", "`b`; 2"]


def test_escaped_bar_does_not_end_a_table_cell() -> None:
    table = r"| name | type |" + "\n|---|---|\n" + r"| idle | float \| none |"
    assert [part.text for part in quotables(table)] == ["name: idle; type: float | none"]
