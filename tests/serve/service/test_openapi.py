"""Schemathesis over the service's own OpenAPI: no status but those it documents, and no 5xx."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.service.helpers import ACME, ROOT, Served

pytest.importorskip("schemathesis")
#: Made-up requests of each operation, beside those that each rule of its schema asks for.
EXAMPLES = 15


@pytest.mark.parametrize(
    ("phases", "paths", "least"),
    [
        ("examples,coverage", "^/(ask|cases|threads/[^/]+)$", 4),
        ("examples,coverage", ".", 11),
        ("fuzzing", ".", 11),
    ],
    ids=["some paths", "all paths", "fuzzing"],
)
def test_generated_requests_are_answered_as_openapi_describes(
    service: Served, tmp_path: Path, phases: str, paths: str, least: int
) -> None:
    # Its own list lacks 413, by which a body is refused that is too large whatever it holds.
    (tmp_path / "schemathesis.toml").write_text(
        "[checks.negative_data_rejection]\n"
        "expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429]\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "schemathesis.cli", "run", f"{service.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {ACME}"),
            *("--max-examples", str(EXAMPLES), "--seed", "1", "--generation-deterministic"),
            *("--phases", phases, "--include-path-regex", paths, "--no-color"),
            # A question of nothing but blanks fits the schema, and is refused with 422.
            *("--exclude-checks", "positive_data_acceptance"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told[-6000:]
    operations = re.search(r"Tested: (\d+)", told)
    assert operations is not None
    assert int(operations[1]) >= least
