from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from casewright.planner.reader_export import ASK, ENCODE, POINT
from tests.support.readers import Taught

#: As a command starts: the encoder and the reader are prepared by two threads at once. Their
#: graphs are there already: torch's exporter, which needs a minute for them, hands them out.
START = """
import sys, threading
from pathlib import Path
import torch
from casewright.planner import Reader
from casewright.stores import default_encoder

reader, *graphs = map(Path, sys.argv[1:])
by_output = dict(zip(["sentence_embedding", "states", "decoded", "start"], graphs, strict=True))

class Program:
    def __init__(self, graph):
        self.graph = graph
    def save(self, name, external_data):
        Path(name).write_bytes(self.graph.read_bytes())

def export(module, example, *, output_names, **options):
    print("noise")
    print("noise", file=sys.stderr)
    return Program(by_output.pop(output_names[0]))

torch.onnx.export = export
reader = Reader(reader)
default_encoder().encoder.preload()
reader.preload()
print(len(reader.read("where is my parcel", {}).next_asks([()]).latents))
print(default_encoder().embed(["where is my parcel"]).shape)
"""


def test_encoder_and_reader_that_are_prepared_at_once_are_prepared_once(
    taught_reader: Taught, tmp_path: Path
) -> None:
    taught_reader.reader.read("hello", {})
    (encoder,) = (Path(os.environ["CASEWRIGHT_HOME"]) / "cache" / "encoders").glob("*.onnx")
    graphs = [encoder, *(taught_reader.graphs / name for name in (ENCODE, ASK, POINT))]
    run = subprocess.run(
        [sys.executable, "-c", START, str(taught_reader.folder), *map(str, graphs)],
        env={**os.environ, "CASEWRIGHT_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "1\n(1, 384)\n"), run.stderr
    # Lines that say how long it takes come now and then.
    told = sorted(line for line in run.stderr.splitlines() if " once" in line)
    assert len(told) == 2, run.stderr
    assert told[0].startswith("Preparing the offline encoder, once")
    assert told[1].startswith("Preparing the plan reader, once")
