"""Schemathesis finds no response that the service's OpenAPI document does not describe."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.service.helpers import ACME, ROOT, Served

pytest.importorskip("schemathesis")
#: Random requests for each operation, in addition to those that cover its schema.
EXAMPLES = 15


@pytest.mark.parametrize(
    ("phases", "paths", "min_operations"),
    [
        ("examples,coverage", "^/(ask|cases|threads/[^/]+)$", 4),
        ("examples,coverage", ".", 11),
        ("fuzzing", ".", 11),
    ],
    ids=["some paths", "all paths", "fuzzing"],
)
def test_generated_requests_are_answered_as_openapi_describes(
    service: Served, tmp_path: Path, phases: str, paths: str, min_operations: int
) -> None:
    # The default statuses lack 413, which refuses any body that is too large.
    (tmp_path / "schemathesis.toml").write_text(
        "[checks.negative_data_rejection]\n"
        "expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429]\n"
    )
    completed = subprocess.run(
        [
            sys.executable,
            *("-m", "schemathesis.cli", "run", f"{service.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {ACME}"),
            *("--max-examples", str(EXAMPLES), "--seed", "1", "--generation-deterministic"),
            *("--phases", phases, "--include-path-regex", paths, "--no-color"),
            # A question of blanks only fits the schema, but is refused with 422.
            *("--exclude-checks", "positive_data_acceptance"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )
    output = completed.stdout + completed.stderr
    assert completed.returncode == 0, output[-6000:]
    match = re.search(r"Tested: (\d+)", output)
    assert match is not None
    assert int(match[1]) >= min_operations
