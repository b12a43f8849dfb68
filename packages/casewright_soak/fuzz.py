"""Trials with hostile input, which a parser must read or refuse with a ``CasewrightError``."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from casewright.errors import CasewrightError, one_line
from casewright.planner import AnnotatedQuery, PlanRequest, parse_plan
from casewright.stores.documents.file_walk import kind_of
from casewright.stores.documents.reader import read_document
from casewright.stores.documents.splitter import split
from casewright.tools import Toolbox
from casewright_soak.trials import Bounds, Counts

#: Number of inputs between two checks of ``Bounds``.
BATCH_SIZE = 200
#: Valid texts, which ``_hostile_text`` changes.
TEXTS = (
    's1 = find(query="mill")\ns2 = read(id=s1.id, n=3)',
    "<div><h1>A</h1><pre>x</pre><table><tr><td>1</table><!-- c --><a href='x'>",
    "# A\n\n- item\n\n```\ncode\n```\n\n## B\n\nwords and words.\n",
    "def f(x):\n    return [x, {1: (2)}]\n\n\nclass A:\n    pass\n",
    '{"id": "1", "query": "where", "plan": "s1 = find(query=question)", "context": {"a": [1]}}',
    "%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\nxref\n0 1\ntrailer<</Root 1 0 R>>",
)
#: Texts that ``_hostile_text`` inserts.
INSERTIONS = ["\0", "\ud800", "\u202e", "[" * 50, "(" * 50, '"', "'", "\\", "<", "9" * 400]
INSERTIONS += ["\n", "𝔸", "﷽"]
#: Names of hostile texts that are read as documents; the ending determines the reader.
FILE_NAMES = ("a.md", "a.html", "a.txt", "a.py", "a.js", "a.json", "a.csv", "a.pdf")


def fuzz_parsers(bounds: Bounds, folder: Path) -> Counts:
    """Parse hostile texts as plans, documents, questions, contexts and annotated messages."""
    counts, rng = Counts("hostile input"), random.Random(bounds.seed)
    parsers: Mapping[str, Callable[[str], Any]] = {
        "plan": parse_plan,
        "question": lambda text: PlanRequest(text, Toolbox([])),
        "context": lambda text: PlanRequest("where", Toolbox([]), {"text": text, text: [text]}),
        "annotated": _read_annotated,
        **{name: partial(_split_document, name) for name in FILE_NAMES},
    }
    # A document takes a hundred times as long as another input, so documents are rarer.
    weights = [60, 30, 30, 20, *(1 for _ in FILE_NAMES)]
    for _ in bounds.trials(counts):
        for name in rng.choices(list(parsers), weights, k=BATCH_SIZE):
            text = _hostile_text(rng)
            try:
                parsers[name](text)
                counts.add("sound", trial="")
            except CasewrightError:
                counts.add("told", trial="")
            except Exception as error:  # noqa: BLE001
                counts.add(one_line(error), f"{bounds.seed} {name} {text!a:.200}")
    return counts


def _hostile_text(rng: random.Random) -> str:
    text = rng.choice(TEXTS)
    for _ in range(rng.randrange(1, 6)):
        start, end = sorted(rng.choices(range(len(text) + 1), k=2))
        part, character = text[start:end], chr(rng.randrange(0x3000))
        inserted = rng.choice((rng.choice(INSERTIONS), part, character, ""))
        part_or_nothing = rng.choice((part, ""))
        text = text[:start] + inserted + part_or_nothing + text[end:]
    return text


def _split_document(name: str, text: str) -> Any:
    kind = kind_of(name)
    assert kind is not None
    return split(read_document(text.encode("utf-8", "surrogatepass"), kind))


def _read_annotated(text: str) -> Any:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        # Text that is not JSON is tried as a query and as its plan.
        record = {"id": "1", "query": text, "plan": text}
    return AnnotatedQuery.read(record)
