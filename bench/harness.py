"""The parts that benches share: a domain to measure on, verdicts, turns, times, servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from casewright.domains import Domain, OpenDomain
from casewright.errors import CasewrightError, InputError
from casewright.finetune.evaluation import Verdict, judge
from casewright.planner import AnnotatedQuery
from casewright.planner.request import Planner, Turn
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.encoders.cache import UncachedQuestions
from casewright.stores.paths import data_folder
from casewright.stores.progress import note, progress_bar
from casewright.tools import Toolbox

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike

Work = TypeVar("Work")
Done = TypeVar("Done")
#: Lines of a server's log that are shown when it fails; seconds until it is killed.
SHOWN, ENDING = 30, 5.0


@dataclass(frozen=True, slots=True)
class Ground:
    """A domain that is measured on, and the encoder that its stores were opened with."""

    domain: Domain
    opened: OpenDomain
    encoder: CachedEncoder

    @property
    def toolbox(self) -> Toolbox:
        """The domain's tools."""
        return self.opened.toolbox

    @property
    def uncached(self) -> UncachedQuestions:
        """The encoder that encodes a question each time, as if it were new."""
        return UncachedQuestions(self.encoder)

    def measuring(self, count: int = 1) -> list[AnnotatedQuery]:
        """Return the queries that are for measuring only; ``InputError`` where there are fewer."""
        queries = self.domain.measuring_queries()
        if len(queries) < count:
            raise InputError(
                f"Domain {self.domain.name!r} has {len(queries) or 'no'} queries for measuring "
                "only. Take --domain shopping, or ask for fewer."
            )
        return queries


@contextmanager
def open_ground(name: str, *, uncached: bool = False) -> Iterator[Ground]:
    """Open a domain's stores while the block lasts.

    Args:
        name: The domain's.
        uncached: Encode the tools' arguments each time, too.
    """
    from casewright.domains import find_domain

    domain, encoder = find_domain(name), default_encoder()
    used = UncachedQuestions(encoder) if uncached else encoder
    opened = domain.open(data_folder() / domain.name, used, False)
    try:
        yield Ground(domain, opened, encoder)
    finally:
        opened.close()


def read_ground(name: str) -> Ground:
    """Return a domain to plan for: nothing is looked up with its tools."""
    with open_ground(name) as ground:
        return ground


def first_scope(domain: Domain) -> dict[str, str]:
    """Return the first values of a domain's scope fields that have any."""
    return {field: values[0] for field, values in domain.scopes.items() if values}


def verdicts_of(
    planner: Planner,
    queries: Sequence[AnnotatedQuery],
    toolbox: Toolbox,
    label: str = "Planning",
    histories: Sequence[Sequence[Turn]] | None = None,
) -> list[Verdict]:
    """Return verdicts on the plans of queries, with the turns before each where there are any."""
    verdicts = []
    with progress_bar(label, len(queries), show=None) as advance:
        for number, query in enumerate(queries):
            request = query.record.request(toolbox)
            if histories is not None:
                request = replace(request, history=histories[number])
            result = planner.plan(request)
            verdicts.append(judge(query, result.plan, result.milliseconds))
            advance(1)
    return verdicts


def mean(values: ArrayLike | Sequence[Any]) -> float:
    """Return the mean of some values; NaN of none."""
    array = np.asarray(values, dtype=np.float64)
    return float(array.mean()) if array.size else float("nan")


def p50(values: ArrayLike) -> float:
    """Return the median."""
    return float(np.median(np.asarray(values)))


def p95(values: ArrayLike) -> float:
    """Return the 95th percentile."""
    return float(np.percentile(np.asarray(values), 95))


def take_turns(
    systems: Mapping[str, Callable[[Work], Done]],
    work: Sequence[Work],
    repeats: int,
    description: str,
    warmed: Collection[str] = (),
    warm: int = 1,
) -> dict[str, list[Done]]:
    """Let every system do every piece of work, one system after the other, none always first.

    Other load on the machine meets all of them. Before, each does the first pieces untimed,
    ``warm`` of them, and those that are ``warmed`` all, since they record what they need first.

    Returns:
        The results by system, in the order of the work, ``repeats`` times.
    """
    names = list(systems)
    results: dict[str, list[Done]] = {name: [] for name in names}
    before = [
        (name, piece) for name in names for piece in (work if name in warmed else work[:warm])
    ]
    count = len(before) + len(names) * len(work) * repeats
    with slow_progress(description, count) as advance:
        for name, piece in before:
            systems[name](piece)
            advance(1)
        for repeat in range(repeats):
            for number, piece in enumerate(work):
                first = (repeat + number) % len(names)
                for name in (*names[first:], *names[:first]):
                    results[name].append(systems[name](piece))
                    advance(1)
    return results


def slow_progress(description: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show the progress over few items, each of which takes long; see ``progress_bar``."""
    return progress_bar(description, total, show=sys.stderr.isatty() or None)


def timed(work: Callable[[], Done], device: torch.device | None = None) -> tuple[Done, float]:
    """Return the result of some work, on a GPU perhaps, and its milliseconds."""
    synchronize(device)
    started = time.perf_counter()
    done = work()
    synchronize(device)
    return done, (time.perf_counter() - started) * 1000


def synchronize(device: torch.device | None) -> None:
    """Wait until a GPU has done its work."""
    if device is not None and device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)


@contextmanager
def running(
    command: Sequence[str],
    address: Callable[[str], str | None],
    *,
    seconds: float = 120.0,
    may_end: bool = False,
    **options: Any,
) -> Iterator[tuple[str, int]]:
    """Run a server while the block lasts; yield its address and its process id.

    Its standard input is a pipe that ends with this process, however that ends. When it fails, the
    end of its log is printed to stderr.

    Args:
        command: The server's.
        address: Returns the address from the server's log so far; ``None`` while it is not up.
        seconds: How long it may take to start.
        may_end: The block may end the server itself.
        options: Of ``subprocess.Popen``.

    Raises:
        CasewrightError: It does not start in time, or ends by itself.
    """
    with TemporaryDirectory(prefix="casewright-server-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, **options
            )
        try:
            yield _address(process, log, address, seconds), process.pid
            if (code := process.poll()) is not None and not may_end:
                raise CasewrightError(f"The server ended by itself, with code {code}.")
        except CasewrightError:
            note("The end of the server's log:\n" + "\n".join(_read(log).splitlines()[-SHOWN:]))
            raise
        finally:
            process.terminate()
            try:
                process.wait(ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()


def serving(
    domain: str, *options: str, may_end: bool = False
) -> AbstractContextManager[tuple[str, int]]:
    """Serve a domain, as users start it, on a free port; see ``running``."""
    command = [sys.executable, "-P", "-m", "casewright", "serve", "--without-tokens"]
    command += ["--host", "127.0.0.1", "--port", "0", "--domain", domain, *options]
    # The user's own settings of a service must not change what is measured.
    settings = {**os.environ, "CASEWRIGHT_LOG_LEVEL": "warning", "CASEWRIGHT_RETAIN": "off"}

    def address(written: str) -> str | None:
        line = re.search(r"Serving on (http://\S+)", written)
        return line and line[1]

    return running(command, address, may_end=may_end, env=settings)


def _address(
    process: subprocess.Popen[bytes],
    log: Path,
    address: Callable[[str], str | None],
    seconds: float,
) -> str:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        if (code := process.poll()) is not None:
            raise CasewrightError(f"The server ended with code {code} before it was up.")
        if url := address(_read(log)):
            return url
        time.sleep(0.1)
    raise CasewrightError(f"The server was not up within {seconds:g} s.")


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")
