"""Training in child processes: a training that is killed, and one shared by two processes.

Arguments: the folder with the data, a folder to write to, and the job, ``killed`` or ``shared``.
Importing the libraries takes most of the time, so one process imports them and then forks.
The two processes have the environment that ``accelerate launch`` sets.
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
#: No dropout, since each process would draw its own.
NO_DROPOUT = LORA.model_copy(update={"dropout": 0.0})


def train_and_hang(data: Path, output: Path) -> None:
    """Train, and sleep after the log entry of step ``HANGS_AFTER``."""
    write_log = log.write_log

    def write_and_hang(file: Path, entries: Sequence[Mapping[str, Any]], mode: str = "a") -> None:
        write_log(file, entries, mode)
        if any(entry["step"] == HANGS_AFTER for entry in entries):
            time.sleep(600)

    vars(log)["write_log"] = write_and_hang
    train(MODEL, LORA, SETTINGS, data, output)


def train_as_rank(data: Path, output: Path, rank: int, port: int) -> None:
    """Train as one of two processes, with half of each step's examples."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    train(MODEL, NO_DROPOUT, training(batch_per_device=2), data, output)


def fork(function: Callable[..., None], *args: Any) -> int:
    """Call a function in a child process, and return the child's process id."""
    if number := os.fork():
        return number
    function(*args)
    # The child must not return into the code of its parent.
    os._exit(0)


def run_killed(data: Path, output: Path) -> None:
    """Start a training in a child process, and kill it in its fifth step."""
    child, file = fork(train_and_hang, data, output / KILLED), output / KILLED / LOG
    while not (file.is_file() and f'"step": {HANGS_AFTER},' in file.read_text(encoding="utf-8")):
        if os.waitpid(child, os.WNOHANG)[0]:
            sys.exit("The training ended before it was killed.")
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def run_shared(data: Path, output: Path) -> None:
    """Let two processes share a training, and wait for both."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    children = [fork(train_as_rank, data, output / SHARED, rank, port) for rank in (0, 1)]
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))


def main(data: str, output: str, job: str) -> None:
    from trl.trainer.sft_trainer import SFTTrainer  # noqa: F401

    {KILLED: run_killed, SHARED: run_shared}[job](Path(data), Path(output))


if __name__ == "__main__":
    main(*sys.argv[1:])
