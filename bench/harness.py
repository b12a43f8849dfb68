"""Functions for several benchmarks: they open domains, time calls, draw plots and run servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from casewright.domains import Domain, OpenDomain
from casewright.errors import CasewrightError, InputError
from casewright.planner import AnnotatedQuery
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.encoders.cache import UncachedQuestionEncoder
from casewright.stores.paths import data_folder
from casewright.stores.progress import note, progress_bar, show_progress
from casewright.tools import Toolbox

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike

Item = TypeVar("Item")
Result = TypeVar("Result")
#: Maximum number of printed lines of a server's log; time between its SIGTERM and SIGKILL.
LOG_LINE_COUNT, GRACE_SECONDS = 30, 5.0


class TestedDomain(NamedTuple):
    """A domain under test, and the encoder that its stores were opened with."""

    domain: Domain
    opened: OpenDomain
    encoder: CachedEncoder

    @property
    def toolbox(self) -> Toolbox:
        """The domain's tools."""
        return self.opened.toolbox

    @property
    def uncached_encoder(self) -> UncachedQuestionEncoder:
        """The encoder without its cache of questions' vectors."""
        return UncachedQuestionEncoder(self.encoder)

    def held_out_queries(self, count: int = 1) -> list[AnnotatedQuery]:
        """Return all test queries; raise ``InputError`` if there are fewer than ``count``."""
        queries = self.domain.measuring_queries()
        if len(queries) < count:
            raise InputError(
                f"Domain {self.domain.name!r} has {len(queries) or 'no'} test queries. "
                "Give --domain shopping, or ask for fewer queries."
            )
        return queries


@contextmanager
def open_domain(name: str, *, cached: bool = True) -> Iterator[TestedDomain]:
    """Open a domain's stores for a ``with`` block; ``cached=False`` encodes each question anew."""
    from casewright.domains import find_domain

    domain, encoder = find_domain(name), default_encoder()
    store_encoder = encoder if cached else UncachedQuestionEncoder(encoder)
    rebuild = False
    opened = domain.open(data_folder() / domain.name, store_encoder, rebuild)
    try:
        yield TestedDomain(domain, opened, encoder)
    finally:
        opened.close()


def load_domain(name: str) -> TestedDomain:
    """Return a domain with closed stores: planners can plan with its tools, but not call them."""
    with open_domain(name) as tested:
        return tested


def first_scope(domain: Domain) -> dict[str, str]:
    """Return a domain's default scope: the first value of each scope field."""
    return {field: values[0] for field, values in domain.scopes.items() if values}


def tracked(label: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, and show a progress bar."""
    with progress_bar(label, len(items)) as advance:
        for item in items:
            yield item
            advance(1)


def mean(values: ArrayLike | Sequence[Any]) -> float:
    """Return the mean of values; NaN if there are no values."""
    array = np.asarray(values, dtype=np.float64)
    return float(array.mean()) if array.size else float("nan")


def p50(values: ArrayLike) -> float:
    """Return the median of values."""
    return float(np.median(np.asarray(values)))


def p95(values: ArrayLike) -> float:
    """Return the 95th percentile of values."""
    return float(np.percentile(np.asarray(values), 95))


def take_turns(
    systems: Mapping[str, Callable[[Item], Result]],
    items: Sequence[Item],
    repeats: int,
    description: str,
    fully_warmed: Collection[str] = (),
) -> dict[str, list[Result]]:
    """Run each system on all items in order, ``repeats`` times; return the results by system.

    The systems take turns at each item, in rotating order, so that other load affects them equally.
    To warm up, each system runs on the first item, and a system in ``fully_warmed`` on all items.
    """
    names = list(systems)
    results: dict[str, list[Result]] = {name: [] for name in names}
    warm_up_items = {name: items if name in fully_warmed else items[:1] for name in names}
    warm_up = [(name, item) for name in names for item in warm_up_items[name]]
    count = len(warm_up) + len(names) * len(items) * repeats
    with show_progress(description, count) as advance:
        for name, item in warm_up:
            systems[name](item)
            advance(1)
        for repeat in range(repeats):
            for number, item in enumerate(items):
                offset = (repeat + number) % len(names)
                for name in (*names[offset:], *names[:offset]):
                    results[name].append(systems[name](item))
                    advance(1)
    return results


def timed(call: Callable[[], Result], device: torch.device | None = None) -> tuple[Result, float]:
    """Return a call's result, and the milliseconds until its work is done, also on a GPU."""
    synchronize(device)
    started = time.perf_counter()
    result = call()
    synchronize(device)
    return result, (time.perf_counter() - started) * 1000


def timings(call: Callable[[], Any], count: int, device: torch.device | None = None) -> list[float]:
    """Return the milliseconds of ``count`` calls."""
    return [timed(call, device)[1] for _ in range(count)]


def resident_bytes(pid: int | str = "self") -> int | None:
    """Return the resident memory of a process; ``None`` without ``/proc``."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def grouped_bars(
    axes: Any, labels: Sequence[str], bars: Mapping[str, Sequence[float]], **label_style: Any
) -> None:
    """Draw a group of bars at each label, with one bar for each name in ``bars``."""
    positions, width = np.arange(len(labels)), 0.8 / len(bars)
    for number, (name, heights) in enumerate(bars.items()):
        shift = width * (number - (len(bars) - 1) / 2)
        axes.bar(positions + shift, heights, width, label=name)
    axes.set_xticks(positions, labels, **label_style)
    axes.legend()


def finish(axes: Any, title: str, **settings: Any) -> None:
    """Add a title, a grid and a legend to a line plot; ``settings`` are those of ``axes.set``."""
    axes.set(title=title, **settings)
    axes.grid(alpha=0.3)
    axes.legend()


def synchronize(device: torch.device | None) -> None:
    """Wait until a GPU has done its queued work."""
    if device is not None and device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)


@contextmanager
def running(
    command: Sequence[str],
    find_address: Callable[[str], str | None],
    *,
    seconds: float = 120.0,
    may_end: bool = False,
    **popen_options: Any,
) -> Iterator[tuple[str, int]]:
    """Run a server for a ``with`` block; yield the server's address and process id.

    The server's standard input is a pipe that closes when this process ends, so a server that reads
    the pipe can end, too. After a ``CasewrightError``, the end of the log is printed to stderr.

    Args:
        find_address: Returns the address from the log's text; ``None`` if the server is not up.
        may_end: True if it is no error that the server ends during the block.

    Raises:
        CasewrightError: The server does not start within ``seconds``, or ends by itself.
    """
    with TemporaryDirectory(prefix="casewright-server-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            popen_options |= {"stdin": subprocess.PIPE, "stdout": output, "stderr": output}
            process = subprocess.Popen(command, **popen_options)
        # At the end of this block, Popen closes the pipe, and waits for the process to end.
        with process:
            try:
                yield _wait_for_address(process, log, find_address, seconds), process.pid
                if (code := process.poll()) is not None and not may_end:
                    raise CasewrightError(f"The server ended by itself, with code {code}.")
            except CasewrightError:
                lines = log.read_text("utf-8", "replace").splitlines()[-LOG_LINE_COUNT:]
                note("The end of the server's log:\n" + "\n".join(lines))
                raise
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_SECONDS)
                process.kill()
                # After Ctrl-C, the end of Popen's block would wait only for a moment.
                process.wait()


def serving(
    domain: str, *options: str, may_end: bool = False
) -> AbstractContextManager[tuple[str, int]]:
    """Run ``casewright serve`` for a domain on a free port; see ``running``."""
    command = [sys.executable, "-P", "-m", "casewright", "serve", "--without-tokens"]
    command += ["--host", "127.0.0.1", "--port", "0", "--domain", domain, *options]
    # These replace the user's settings, which must not change the figures.
    settings = {"LOG_LEVEL": "warning", "RETAIN": "off", "SHARED_RUNS": "true"}
    settings["COMPUTE_THREADS"] = "8"
    environment = os.environ | {f"CASEWRIGHT_{name}": value for name, value in settings.items()}

    def find_address(log: str) -> str | None:
        match = re.search(r"Serving on (http://\S+)", log)
        return match and match[1]

    return running(command, find_address, may_end=may_end, env=environment)


def _wait_for_address(
    process: subprocess.Popen[bytes],
    log: Path,
    find_address: Callable[[str], str | None],
    seconds: float,
) -> str:
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        if (code := process.poll()) is not None:
            raise CasewrightError(f"The server ended with code {code} before it was up.")
        if url := find_address(log.read_text("utf-8", "replace")):
            return url
        time.sleep(0.1)
    raise CasewrightError(f"The server was not up within {seconds:g} s.")
