"""A plugin of pytest: annotated messages are a test, which fails where too few plans are right.

In the settings of pytest, ``casewright_plans`` names files of annotated messages and
``casewright_domain`` whose tools they are for. Each file is one test. What is right and wrong is
kept beside it by ``--casewright-accept``, and later runs tell which messages flipped since.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from casewright.serve.cli.evaluate import indented

if TYPE_CHECKING:
    from casewright.finetune.evaluation.outcome import Outcome

PLANS, DOMAIN, PLANNER, ADAPTER, GATE = (
    f"casewright_{name}" for name in ("plans", "domain", "planner", "adapter", "gate")
)
#: The share of whole plans that must be right, where the settings do not say.
DEFAULT_GATE = "0.8"
#: Under this name a test tells what flipped.
TOLD = "casewright"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings, and the option that accepts what is."""
    parser.addini(PLANS, "Files of annotated messages, JSON Lines, to plan for.", type="paths")
    parser.addini(DOMAIN, "Whose tools: FILE.py:NAME, from this file's folder, or a name.")
    parser.addini(PLANNER, "As for casewright ask; the domain's own by default.")
    parser.addini(ADAPTER, "What casewright finetune adapt wrote, from this file's folder.")
    parser.addini(
        GATE, "The share of whole plans that must be right, 0 to 1.", default=DEFAULT_GATE
    )
    parser.getgroup("casewright").addoption(
        "--casewright-accept",
        action="store_true",
        help="Keep which plans are right now; later runs tell what flipped since.",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the test of a file that the settings name."""
    if file_path in parent.config.getini(PLANS):
        made: pytest.Collector = PlanFile.from_parent(parent, path=file_path)
        return made
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell what flipped, also where the test passed."""
    reports = [one for kept in terminalreporter.stats.values() for one in kept]
    told = {
        one.nodeid: text
        for one in reports
        for name, text in getattr(one, "user_properties", ())
        if name == TOLD
    }
    for nodeid, text in told.items():
        terminalreporter.section(f"plans of {nodeid}")
        terminalreporter.write_line(text)


class WrongPlansError(Exception):
    """Too few plans are right."""


class PlanFile(pytest.File):
    """A file of annotated messages."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield its one test."""
        yield PlanItem.from_parent(self, name="plans")


class PlanItem(pytest.Item):
    """Plans for every message of a file, by its own graphs and arguments."""

    def runtest(self) -> None:
        """Plan, tell what flipped, and compare with the gate.

        Raises:
            WrongPlansError: Too few plans are right.
        """
        gate = _gate(str(self.config.getini(GATE)))
        outcomes = self._outcomes()
        kept = self.path.with_suffix(".accepted.json")
        before = _accepted(kept)
        right = sum(one.graph_arguments for one in outcomes)
        said = f"{right} of {len(outcomes)} whole plans are right; the gate is {gate:g}."
        told = "\n".join([said, *_flipped(outcomes, before)])
        self.user_properties.append((TOLD, told))
        if self.config.getoption("--casewright-accept"):
            now = {_name(one): one.graph_arguments for one in outcomes}
            kept.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if right < gate * len(outcomes):
            raise WrongPlansError(said)

    def _outcomes(self) -> Sequence[Outcome]:
        from casewright.domains.python_file import is_place
        from casewright.errors import InputError
        from casewright.planner.named import ModelSettings, of_adapter
        from casewright.serve.cli.evaluate import measured

        config = self.config
        folder = config.inipath.parent if config.inipath else config.rootpath
        domain, planner, adapter = (str(config.getini(n)) for n in (DOMAIN, PLANNER, ADAPTER))
        if not domain:
            raise InputError(f"{DOMAIN} is not set. Name the domain in the settings of pytest.")
        if is_place(domain):
            domain = str(folder / domain)
        given = str(folder / adapter) if adapter else None
        name, given = of_adapter(planner or None, given)
        found, _ = measured(domain, self.path, name, ModelSettings(adapter=given))
        (outcomes,) = found.outcomes.values()
        return outcomes

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return one line for what its user can mend."""
        from casewright.errors import CasewrightError

        if isinstance(excinfo.value, WrongPlansError | CasewrightError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the test is."""
        return self.path, None, "plans"


def _gate(text: str) -> float:
    from casewright.errors import InputError

    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise InputError(f"{GATE} is {text!r}. Give a share from 0 to 1.")
    return found


def _accepted(file: Path) -> Mapping[str, bool]:
    """Return which messages were right when a run was accepted; none where none was.

    Raises:
        InputError: The file holds something else.
    """
    from casewright.errors import InputError

    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{file} holds no accepted run. Remove it, and accept one anew.")
    return found


def _flipped(outcomes: Sequence[Outcome], before: Mapping[str, bool]) -> Iterator[str]:
    """Yield lines for each message that flipped since a run was accepted, or that is new and wrong.

    Of those that are wrong now, with the right plan beside what was written.
    """
    for one in outcomes:
        now, was = one.graph_arguments, before.get(_name(one))
        if now == (was is not False):
            continue
        changed = "wrong -> right" if now else "wrong" if was is None else "right -> wrong"
        yield f"{changed}  {_name(one)}: {one.item.query.query}"
        if not now:
            wrote = one.answered.error if one.result is None else str(one.result.plan)
            yield indented("right", str(one.item.query.plan))
            yield indented("wrote", wrote)


def _name(one: Outcome) -> str:
    record = one.item.query.record
    return str(record.query if record.id is None else record.id)
