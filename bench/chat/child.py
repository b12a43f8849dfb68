"""`transformers serve` as a child process: it ends with its standard input, and so with its parent.

Run as ``python -m casewright.bench.chat.child serve FOLDER …`` with a pipe as standard input. A
parent that is killed can end nobody; the pipe is closed whatever happens to it.
"""

from __future__ import annotations

import os
import sys
import threading


def main() -> None:
    """Run the command line of transformers until it ends, or standard input does."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    from transformers.cli.transformers import main as command_line

    command_line()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
