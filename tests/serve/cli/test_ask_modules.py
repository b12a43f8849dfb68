"""The number of modules that `casewright ask` runs and imports."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.serve.helpers import GALAXY, run_argv

PROGRAM = """
import sys
import threading
from pathlib import Path
from casewright.domains.registry import find_domain
from casewright.serve import cli
serve = str(Path(cli.__file__).parents[1])
domains, files = [], set()

def record_call(frame, event, _):
    code = frame.f_code
    if event != "call" or code.co_name == "<module>":
        return
    if code is find_domain.__code__:
        domains.append(frame.f_locals["name"])
    if code.co_filename.startswith(serve):
        files.add(code.co_filename)

sys.setprofile(record_call)
threading.setprofile(record_call)
try:
    cli.main()
finally:
    sys.setprofile(None)
    imported = [name for name in sys.modules if name.startswith("casewright.serve")]
    print("counted", len(files), len(imported), *domains, file=sys.stderr)
"""


def test_ask_runs_few_modules_of_serve_and_looks_up_its_domain_once(home: Path) -> None:
    completed = run_argv(home, [sys.executable, "-c", PROGRAM, "ask", GALAXY])
    executed, imported, *domains = completed.stderr.partition("counted")[2].split()
    # The lower bound shows that the profiler sees the calls.
    assert 5 < int(executed) <= 20, completed.stderr
    assert int(imported) <= 30, completed.stderr
    assert domains == ["shopping"]
