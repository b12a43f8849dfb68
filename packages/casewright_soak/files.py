"""Trials on damaged text files, checkpoints and conversations; each must be read or refused."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from casewright.errors import CasewrightError, one_line
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.finetune.training.run import last_complete, write_hashes
from casewright.graph import Answer, build_graph
from casewright.graph.run_file import read_run, save_run
from casewright.planner.annotated import read_annotated
from casewright.stores.feedback.offline_judge import JudgeModel
from casewright.tools import Toolbox, tool_from_function, toolbox_from_file, toolbox_to_records
from casewright_soak.damage import damage_copy
from casewright_soak.service import KEY_HEADER, QuestionPlanner, run_service
from casewright_soak.trials import Bounds, Counts, in_child

#: The functions that read the files of ``write_texts``, by file name. The files have no checksums,
#: so a damaged file that is read without an error counts as sound.
READER_BY_FILE: Mapping[str, Callable[[Path], Any]] = {
    "run.json": read_run,
    "toolbox.json": toolbox_from_file,
    "queries.jsonl": read_annotated,
    "judge.json": JudgeModel.load,
    "recipe.toml": lambda file: Recipe.read(file, check_files=False),
}
#: On average, every tenth trial damages a training's checkpoint instead of a text file.
CHECKPOINT_EVERY = 10
#: The question contains the plan, for ``QuestionPlanner``.
REQUEST = {"question": "please plan: s1 = look(text=question)", "thread_id": "t"}


def damaged_texts(bounds: Bounds, folder: Path) -> Counts:
    """Damage text files, which must be read or refused, or a checkpoint, which must be refused."""
    write_texts(folder / "texts")
    checkpoint = folder / "training" / "checkpoint-1"
    checkpoint.mkdir(parents=True)
    (checkpoint / "weights").write_bytes(random.Random(bounds.seed).randbytes(50_000))
    write_hashes(checkpoint)

    def judge(number: int, original: Path, copy: Path, description: str) -> str:
        if original.name == "training":
            undamaged_checkpoint, _ = last_complete(copy)
            return "told" if undamaged_checkpoint is None else "damage not detected"
        _, name, *_ = description.split()
        try:
            READER_BY_FILE[name](copy / name)
        except CasewrightError:
            return "told"
        except Exception as error:  # noqa: BLE001
            return one_line(error)
        return "sound"

    names = ["texts"] * (CHECKPOINT_EVERY - 1) + ["training"]
    return damage_copy(bounds, Counts("damaged text or checkpoint"), folder, *names, judge=judge)


def write_texts(folder: Path) -> None:
    """Write an undamaged file for each name in ``READER_BY_FILE``."""
    folder.mkdir()

    def look(text: str) -> str:
        """Looks a text up."""
        return f"seen: {text}"

    toolbox = Toolbox([tool_from_function(look)])
    state = build_graph(toolbox, QuestionPlanner()).invoke({"question": REQUEST["question"]})
    save_run(folder / "run.json", Answer.from_json(state["answer"]), REQUEST["question"])
    (folder / "toolbox.json").write_text(json.dumps(toolbox_to_records(toolbox), indent=1))
    record = {"query": "where is the mill", "plan": "s1 = look(text=question)"}
    lines = [json.dumps({"id": str(number), **record}) + "\n" for number in range(20)]
    (folder / "queries.jsonl").write_text("".join(lines))
    JudgeModel.shipped().save(folder / "judge.json")
    shutil.copy(find_recipe("small"), folder / "recipe.toml")


def damaged_threads(bounds: Bounds, folder: Path) -> Counts:
    """Damage a closed service's files; a new service must give the same answer or a clear error."""
    (folder / "threads").mkdir()
    _, right_state = in_child(partial(thread_state, new_thread=True), folder / "threads")
    for name in ("log", "threads.db.lock"):  # only the files with threads are to be damaged
        (folder / "threads" / name).unlink(missing_ok=True)

    def judge(number: int, original: Path, copy: Path, description: str) -> str:
        ending, state = in_child(thread_state, copy)
        # After the removal of the file, the service has no threads, which is right.
        if ending == "done" and (state == right_state or description.startswith("remove")):
            return "sound"
        is_clear = ending == "told" or "damaged" in str(state)
        return "told" if is_clear else f"{ending} {state!r:.300}"

    return damage_copy(bounds, Counts("damaged threads"), folder, "threads", judge=judge)


async def thread_state(folder: Path, *, new_thread: bool = False) -> Any:
    """Return a thread's state and a reply to ``REQUEST``; create the thread if ``new_thread``."""
    async with run_service(folder) as client:
        if new_thread:
            await client.post("/ask", json=REQUEST, headers=KEY_HEADER)
        state = (await client.get("/threads/t")).json()
        return state, (await client.post("/ask", json=REQUEST, headers=KEY_HEADER)).json()
