"""What exporting a model prints, and what others print meanwhile."""

from __future__ import annotations

import sys
import threading

import pytest

from casewright.stores.encoders.onnx_export import quiet


def test_output_of_another_thread_during_an_export_is_not_suppressed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    inside, done = threading.Event(), threading.Event()

    def export() -> None:
        with quiet():
            print("progress")
            print("more progress", file=sys.stderr)
            inside.set()
            done.wait(10)

    exporting = threading.Thread(target=export)
    exporting.start()
    assert inside.wait(10)
    print("an answer")
    print("a note", file=sys.stderr)
    done.set()
    exporting.join()
    print("another")
    assert capsys.readouterr() == ("an answer\nanother\n", "a note\n")
