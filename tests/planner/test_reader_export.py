from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from casewright.domains import find_domain

#: As a command starts: the encoder and the reader are prepared by two threads at once.
START = """
import sys
from pathlib import Path
from casewright.planner import Reader
from casewright.stores import default_encoder

reader = Reader(Path(sys.argv[1]))
default_encoder().encoder.preload()
reader.preload()
print(len(reader.read("where is my parcel", {}).next_asks([()]).latents))
"""


def test_encoder_and_reader_that_are_prepared_at_once_are_prepared_once(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", START, str(find_domain("shopping").reader)],
        env={**os.environ, "CASEWRIGHT_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "1\n"), run.stderr
    assert run.stderr.count("Preparing the plan reader") == 1
    assert run.stderr.count("Preparing the offline encoder") == 1
