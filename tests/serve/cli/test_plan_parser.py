"""`casewright plan --planner parser`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.serve.cli.test_own_domain import PLANT, WARM
from tests.serve.helpers import run, run_argv

PROGRAM = """
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
    arguments = ["plan", WARM, "--domain", f"{file}:domain"]
    # The first plan exports the encoder of plan cases, which needs torch.
    assert run(home, *arguments).returncode == 0
    completed = run_argv(home, [sys.executable, "-c", PROGRAM, *arguments, "--planner", "parser"])
    assert completed.returncode == 0, completed.stderr
    assert "find_machine" in completed.stdout
    assert completed.stdout.endswith("\n[]\n")
