"""A pytest plugin that tests a planner on files of messages with their right plans.

In pytest's settings, ``casewright_plans`` names the files, and ``casewright_domain`` names the
domain with the tools. Each file is a test, which fails if too few plans are right. The option
``--casewright-accept`` saves each test's results; later runs list the results that have changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from casewright.errors import CasewrightError, InputError
from casewright.serve.cli.evaluate import indent_plan

if TYPE_CHECKING:
    from casewright.finetune.evaluation.outcome import PlanOutcome

#: Names of the plugin's settings.
PLANS, DOMAIN, PLANNER, ADAPTER, GATE = (
    f"casewright_{name}" for name in ("plans", "domain", "planner", "adapter", "gate")
)
#: Name of the pytest user property that holds a test's report.
REPORT = "casewright"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings and the option of this plugin."""
    parser.addini(PLANS, "Files of annotated messages, JSON Lines.", type="paths")
    parser.addini(DOMAIN, "A domain name, or FILE.py:NAME relative to the settings file's folder.")
    parser.addini(PLANNER, "A planner, as for casewright ask; by default the domain's.")
    parser.addini(
        ADAPTER, "A folder of `casewright finetune adapt`, relative to the settings file's folder."
    )
    parser.addini(GATE, "The required share of right plans, 0 to 1.", default="0.8")
    parser.getgroup("casewright").addoption(
        "--casewright-accept",
        action="store_true",
        help="Save the results; later runs list the results that have changed.",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the collector of a file that the settings name; ``None`` for other files."""
    if file_path in parent.config.getini(PLANS):
        collector: pytest.Collector = PlanFile.from_parent(parent, path=file_path)
        return collector
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the reports of all tests, passed or failed."""
    texts = {
        result.nodeid: text
        for results in terminalreporter.stats.values()
        for result in results
        for name, text in getattr(result, "user_properties", ())
        if name == REPORT
    }
    for nodeid, text in texts.items():
        terminalreporter.section(f"plans of {nodeid}")
        terminalreporter.write_line(text)


class WrongPlansError(Exception):
    """The share of right plans is below the gate."""


class PlanFile(pytest.File):
    """A file of annotated messages."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the file's only test."""
        yield PlanItem.from_parent(self, name="plans")


class PlanItem(pytest.Item):
    """The test of a file: it compares each plan's graph and arguments with the right plan's."""

    def runtest(self) -> None:
        """Report changed results; raise ``WrongPlansError`` if too few plans are right."""
        gate = _read_gate(str(self.config.getini(GATE)))
        outcomes = self._outcomes()
        accepted_file = self.path.with_suffix(".accepted.json")
        changes = _list_changes(outcomes, _read_accepted(accepted_file))
        are_right = [outcome.graph_arguments for outcome in outcomes]
        right_count = sum(are_right)
        summary = f"{right_count} of {len(outcomes)} whole plans are right; the gate is {gate:g}."
        self.user_properties.append((REPORT, "\n".join([summary, *changes])))
        if self.config.getoption("--casewright-accept"):
            results = dict(zip(map(_message_name, outcomes), are_right, strict=True))
            text = json.dumps(results, indent=1, ensure_ascii=False)
            accepted_file.write_text(text + "\n", encoding="utf-8")
        if right_count < gate * len(outcomes):
            raise WrongPlansError(summary)

    def _outcomes(self) -> Sequence[PlanOutcome]:
        from casewright.domains.python_file import is_file_reference
        from casewright.planner.named import ModelSettings, planner_for_adapter
        from casewright.serve.cli.evaluate import evaluate_file

        config = self.config
        settings_folder = config.inipath.parent if config.inipath else config.rootpath
        domain, planner, adapter = (str(config.getini(name)) for name in (DOMAIN, PLANNER, ADAPTER))
        if not domain:
            raise InputError(f"{DOMAIN} is not set. Name the domain in the settings of pytest.")
        if is_file_reference(domain):
            domain = str(settings_folder / domain)
        path = str(settings_folder / adapter) if adapter else None
        planner_name, path = planner_for_adapter(planner or None, path)
        evaluation, _ = evaluate_file(domain, self.path, planner_name, ModelSettings(adapter=path))
        (outcomes,) = evaluation.outcomes.values()
        return outcomes

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return only the message of a user's error, and pytest's report of other errors."""
        if isinstance(excinfo.value, WrongPlansError | CasewrightError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the test's location."""
        return self.path, None, "plans"


def _read_gate(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (gate := float(text)) <= 1:
            return gate
    raise InputError(f"{GATE} is {text!r}. Give a share from 0 to 1.")


def _read_accepted(file: Path) -> Mapping[str, bool]:
    """Return the accepted results by message name; ``True`` means that the plan was right."""
    if not file.is_file():
        return {}
    with suppress(ValueError):
        if isinstance(results := json.loads(file.read_text(encoding="utf-8")), dict):
            return results
    raise InputError(f"{file} has no accepted results. Remove it, and use --casewright-accept.")


def _list_changes(outcomes: Sequence[PlanOutcome], accepted: Mapping[str, bool]) -> Iterator[str]:
    """Yield lines for messages whose result changed, and for new messages with a wrong plan."""
    for outcome in outcomes:
        name, is_right = _message_name(outcome), outcome.graph_arguments
        if is_right == accepted.get(name, True):
            continue
        wrong_text = "right -> wrong" if name in accepted else "wrong"
        change = "wrong -> right" if is_right else wrong_text
        yield f"{change}  {name}: {outcome.item.query.query}"
        if not is_right:
            written = outcome.error if outcome.result is None else str(outcome.result.plan)
            yield indent_plan("right", str(outcome.item.query.plan))
            yield indent_plan("wrote", written)


def _message_name(outcome: PlanOutcome) -> str:
    """Return a message's id, or its text if it has no id."""
    record = outcome.item.query.record
    return str(record.query if record.id is None else record.id)
