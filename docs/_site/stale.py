"""Lists the tables of the benchmarks that are older than the code they measure."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "benchmarks"
#: What each command measures, beside its own files in bench.
MEASURED = {
    "answer": "graph planner stores serve",
    "backgammon": "domains/backgammon bench/ranking.py",
    "chat": "planner",
    "conversations": "planner domains/shopping",
    "decoding": "planner",
    "evidence": "domains/shopping stores tools",
    "executor": "graph",
    "feedback": "graph/feedback stores finetune/judge_sets",
    "frozen": "planner domains/shopping",
    "latency": "planner graph",
    "legal": "domains/legal stores",
    "legal-pairs": "domains/legal bench/legal/pair_writing.py",
    "math24": "domains/math24 bench/ranking.py",
    "narrowing": "planner finetune/corpus",
    "own-tools": "planner finetune/corpus",
    "planner": "planner domains/shopping finetune",
    "reaper": "planner finetune",
    "selection": "stores",
    "serve": "serve graph bench/service.py",
    "soak": "stores graph serve",
    "stores": "stores",
    "training": "finetune/training",
    "truthfulqa": "finetune/demonstrations stores",
    "unseen": "planner finetune/corpus",
}


def sections(page: str) -> Iterator[tuple[str, str | None]]:
    """Yield each section's command on a page, and the commit that printed its tables."""
    parts = re.split(r"(?m)^##+ `casewright bench ([\w-]+)", page)[1:]
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        found = re.search(r"Printed by `?([0-9a-f]{7,})", text)
        yield name, found and found[1]


def changed_since(root: Path, commit: str, paths: list[str]) -> str:
    """Return what changed in some paths since a commit, as git counts it; empty for nothing."""
    command = ["git", "-C", str(root), "diff", "--shortstat", commit, "--", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


def main() -> None:
    """Print a line for each table that is stale, or tells no commit."""
    for page in sorted(PAGES.glob("*.md")):
        for name, commit in sections(page.read_text(encoding="utf-8")):
            paths = [*MEASURED[name].split(), f":(glob)bench/{name.replace('-', '_')}*/**"]
            paths.append(f":(glob)bench/{name.replace('-', '_')}*.py")
            why = changed_since(ROOT, commit, paths) if commit else "no commit is told"
            if why:
                print(f"{page.name}: bench {name}: {why}")


if __name__ == "__main__":
    main()
