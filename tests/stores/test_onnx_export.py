"""The output of an export is suppressed; the output of other threads is not."""

from __future__ import annotations

import sys
import threading

import pytest

from casewright.stores.encoders.onnx_export import quiet


def test_output_of_another_thread_during_an_export_is_not_suppressed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    export_started, output_written = threading.Event(), threading.Event()

    def export() -> None:
        with quiet():
            print("progress")
            print("more progress", file=sys.stderr)
            export_started.set()
            output_written.wait(10)

    export_thread = threading.Thread(target=export)
    export_thread.start()
    assert export_started.wait(10)
    print("an answer")
    print("a note", file=sys.stderr)
    output_written.set()
    export_thread.join()
    print("another")
    assert capsys.readouterr() == ("an answer\nanother\n", "a note\n")
