"""The time to index a source tree, with the packaged encoder's weights as floats or integers."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from casewright.bench.harness import p50, timed
from casewright.bench.report import Report
from casewright.domains.code.domain import QUESTIONS
from casewright.domains.code.store import open_tree, source_tree
from casewright.stores import CachedEncoder
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.stores.encoders.onnx_graph import bits_for_cpu

NOTES = (
    "again: time to index once more when nothing has changed. question: the median time to encode "
    "an example question of the domain and search with it. cpu: the CPU time of this process; "
    "other processes read the files.",
)


def measure_index(source: Path) -> Report:
    """Index a source tree with each encoder in a new store, index it again, and search it.

    Raise ``InputError`` if the source is not a folder or has no readable source code, and
    ``DependencyError`` if the packages that read source code are not installed.
    """
    tree = source_tree(source)
    rows: list[dict[str, Any]] = []
    # On some processors, the integers have only seven bits.
    for name, bits in (("fp32", 32), ("int8", bits_for_cpu())):
        encoder = CachedEncoder(MiniLMEncoder(bits))
        encoder.embed(["This first text loads the weights."])
        with TemporaryDirectory() as folder:
            index = partial(_index, Path(folder), encoder, tree)
            cpu_start = time.process_time()
            case_count, index_ms = timed(index)
            cpu_s = time.process_time() - cpu_start
            _, again_ms = timed(index)
            with open_tree(Path(folder), encoder, tree) as store:
                search_ms = [timed(partial(store.search, text, 10))[1] for text in QUESTIONS]
        row = {"encoder": name, "cases": case_count, "index s": index_ms / 1000}
        row |= {"index cpu s": cpu_s, "cases a cpu s": case_count / cpu_s}
        rows.append({**row, "again s": again_ms / 1000, "question ms": p50(search_ms)})
    fp32_row, int8_row = rows
    ratio = int8_row["index cpu s"] / fp32_row["index cpu s"]
    figures = {"ratio_index_cpu_int8_over_fp32": ratio}
    return Report("index", {"source": source.name}, figures, rows, NOTES)


def _index(folder: Path, encoder: CachedEncoder, tree: Path) -> int:
    """Index a tree, or only the changes since the last call; return the number of cases."""
    with open_tree(folder, encoder, tree) as store:
        return store.count()
