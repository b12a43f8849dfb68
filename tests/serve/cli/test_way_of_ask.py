"""The number of modules that `casewright ask` runs and imports."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.serve.helpers import GALAXY, run_this

CODE = """
import sys
import threading
from pathlib import Path
from casewright.domains.registry import find_domain
from casewright.serve import cli
serve = str(Path(cli.__file__).parents[1])
domains, walked = [], set()

def seen(frame, event, _):
    code = frame.f_code
    if event != "call" or code.co_name == "<module>":
        return
    if code is find_domain.__code__:
        domains.append(frame.f_locals["name"])
    if code.co_filename.startswith(serve):
        walked.add(code.co_filename)

sys.setprofile(seen)
threading.setprofile(seen)
try:
    cli.main()
finally:
    sys.setprofile(None)
    loaded = [name for name in sys.modules if name.startswith("casewright.serve")]
    print("counted", len(walked), len(loaded), *domains, file=sys.stderr)
"""


def test_ask_runs_few_modules_of_serve_and_looks_up_its_domain_once(home: Path) -> None:
    done = run_this(home, [sys.executable, "-c", CODE, "ask", GALAXY])
    walked, loaded, *domains = done.stderr.partition("counted")[2].split()
    # What runs between the command line and the answer, and what is imported for it.
    assert 5 < int(walked) <= 20, done.stderr
    assert int(loaded) <= 30, done.stderr
    assert domains == ["shopping"]
