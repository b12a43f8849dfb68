"""Trainings in processes of their own: one that is killed, and two processes that share one.

Arguments: the folder with the data, a folder to write to, and which of both, ``killed`` or
``shared``. Importing the libraries takes most of the time, so one process does it, and then forks.
The two have the environment that ``accelerate
launch`` gives its processes.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from casewright.finetune.training import log
from casewright.finetune.training.log import LOG
from casewright.finetune.training.train import train
from tests.support.trained import LORA, MODEL, training

KILLED, SHARED = "killed", "shared"
HANGS_AFTER = 5
#: Checkpoints after the second, fourth, sixth and eighth step.
SETTINGS = training(steps=8, save_steps=2)
#: Without dropout, which each process would draw for itself.
NO_DROPOUT = LORA.model_copy(update={"dropout": 0.0})


def hang(data: Path, output: Path) -> None:
    """Train, and stop for ever after some steps."""
    write_log = log.write_log

    def hanging(file: Path, entries: Sequence[Mapping[str, Any]], mode: str = "a") -> None:
        write_log(file, entries, mode)
        if any(entry["step"] == HANGS_AFTER for entry in entries):
            time.sleep(600)

    vars(log)["write_log"] = hanging
    train(MODEL, LORA, SETTINGS, data, output)


def share(data: Path, output: Path, rank: int, port: int) -> None:
    """Train as one of two processes, with half of each step's examples."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    train(MODEL, NO_DROPOUT, training(batch_per_device=2), data, output)


def forked(work: Callable[..., None], *args: Any) -> int:
    """Do something in a process of its own, and return its number."""
    if number := os.fork():
        return number
    work(*args)
    # Not the parent's way: an error ends the child as it ends any process.
    os._exit(0)


def kill(data: Path, output: Path) -> None:
    """Start a training and kill it in its fifth step."""
    doomed, file = forked(hang, data, output / KILLED), output / KILLED / LOG
    while not (file.is_file() and f'"step": {HANGS_AFTER},' in file.read_text(encoding="utf-8")):
        if os.waitpid(doomed, os.WNOHANG)[0]:
            sys.exit("The training ended before it was killed.")
        time.sleep(0.02)
    os.kill(doomed, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(doomed, 0)[1]) == -signal.SIGKILL


def share_one(data: Path, output: Path) -> None:
    """Let two processes share a training, and wait for both."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    both = [forked(share, data, output / SHARED, rank, port) for rank in (0, 1)]
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) for number in both))


def main(data: str, output: str, which: str) -> None:
    from trl.trainer.sft_trainer import SFTTrainer  # noqa: F401

    {KILLED: kill, SHARED: share_one}[which](Path(data), Path(output))


if __name__ == "__main__":
    main(*sys.argv[1:])
