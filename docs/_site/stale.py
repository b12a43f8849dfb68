"""Lists the benchmark tables in the docs that are older than the code that they measure."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "benchmarks"
#: The paths of the code that each command measures. ``main`` adds the command's own files,
#: ``bench/<command>*``.
CODE_BY_COMMAND = {
    "answer": "graph planner stores serve",
    "answers": "graph/chat_generator.py graph/groundedness.py stores/documents/quotable.py",
    "backgammon": "packages/casewright_backgammon packages/casewright_mcbr",
    "chat": "planner graph/chat_generator.py graph/feedback/chat_judge.py",
    "conversations": "planner domains/shopping",
    "decoding": "planner bench/scripts.py bench/models.py",
    "documents": "stores domains/documents graph/extractive.py",
    "encoder": "packages/casewright_legal/bench_encoder.py stores/encoders",
    "evidence": "domains/gold_plans.py domains/shopping stores tools",
    "executor": "graph",
    "feedback": "graph/feedback stores finetune/judge_sets",
    "frozen": "planner domains/shopping",
    "index": "domains/code stores",
    "injection": "graph/chat_generator.py graph/groundedness.py graph/feedback/chat_judge.py",
    "latency": "planner graph bench/scripts.py bench/models.py",
    "legal": "packages/casewright_legal stores",
    "math24": "packages/casewright_math24 packages/casewright_mcbr",
    "narrowing": "planner finetune/corpus",
    "own-tools": "planner finetune/corpus",
    "plan-cache": "serve/service/planning.py serve/service/answers.py stores",
    "planner": "planner domains/shopping finetune",
    "reaper": "packages/casewright_studies/reaper.py planner finetune",
    "replan": "planner graph domains/shopping",
    "selection": "stores",
    "serve": "serve graph bench/service.py",
    "small-talk": "packages/casewright_studies/small_talk.py planner",
    "soak": "packages/casewright_soak stores graph serve",
    "stores": "stores",
    "truthfulqa": "packages/casewright_studies/truthfulqa.py finetune/demonstrations stores",
    "unseen": "planner finetune/corpus",
}
_COMMIT = re.compile(r"(?i)printed\s+by\s+(?:(?:the\s+code\s+of|commit)\s+)?`([0-9a-f]{7,})")


def sections(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each section's command, and the commits whose code printed the section's tables."""
    parts = re.split(r"(?m)^##+ `casewright bench ([\w-]+)", page)[1:]
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        yield name, list(dict.fromkeys(_COMMIT.findall(text)))


def changed_since(root: Path, commit: str, paths: list[str]) -> str:
    """Return git's summary of the changes to some paths since a commit; empty for no changes."""
    command = ["git", "-C", str(root), "diff", "--shortstat", commit, "--", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


def main() -> None:
    """Print a line for each table that is out of date, or has no commit."""
    for page in sorted(PAGES.glob("*.md")):
        for name, commits in sections(page.read_text(encoding="utf-8")):
            paths = [*CODE_BY_COMMAND[name].split(), f":(glob)bench/{name.replace('-', '_')}*/**"]
            paths.append(f":(glob)bench/{name.replace('-', '_')}*.py")
            if not commits:
                print(f"{page.name}: bench {name}: no commit is named")
            for commit in commits:
                if changes := changed_since(ROOT, commit, paths):
                    print(f"{page.name}: bench {name}, since {commit}: {changes}")


if __name__ == "__main__":
    main()
