"""How much of the project a question on the command line goes through."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.serve.helpers import GALAXY, run_this

CODE = """
import sys
from casewright.domains.registry import find_domain
from casewright.serve.cli import main
found = []

def seen(frame, event, _):
    if event == "call" and frame.f_code is find_domain.__code__:
        found.append(frame.f_locals["name"])

sys.setprofile(seen)
try:
    main()
finally:
    sys.setprofile(None)
    own = [name for name in sys.modules if name.startswith("casewright.serve")]
    print(len(own), *found, file=sys.stderr)
"""


def test_ask_loads_few_modules_of_serve_and_finds_its_domain_once(home: Path) -> None:
    done = run_this(home, [sys.executable, "-c", CODE, "ask", GALAXY])
    modules, *found = done.stderr.split()
    assert int(modules) <= 30, done.stderr
    assert found == ["shopping"]
