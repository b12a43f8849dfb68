"""`casewright plan --planner parser`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.serve.cli.test_own_domain import PLANT, WARM
from tests.serve.helpers import run, run_this

CODE = """
import sys
from casewright.serve.cli import main
sys.argv[0] = "casewright"
try:
    main()
finally:
    print(sorted({"torch", "transformers"} & set(sys.modules)))
"""


def test_a_plan_of_the_parser_imports_no_torch(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "plant.py"
    file.write_text(PLANT, encoding="utf-8")
    words = ["plan", WARM, "--domain", f"{file}:domain"]
    # The encoder of plan cases is exported by torch once.
    assert run(home, *words).returncode == 0
    done = run_this(home, [sys.executable, "-c", CODE, *words, "--planner", "parser"])
    assert done.returncode == 0, done.stderr
    assert "find_machine" in done.stdout
    assert done.stdout.endswith("\n[]\n")
