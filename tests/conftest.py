"""Settings of every test: what is built is kept in the checkout, never in the user's folders."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import pytest
from hypothesis import settings

from tests.support.slow import slow_parts

if TYPE_CHECKING:
    from casewright.planner import Reader
    from tests.support.readers import Taught

os.environ.setdefault("CASEWRIGHT_HOME", str(Path(__file__).parents[1] / ".casewright"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Tests run beside each other: torch with a thread a core in each of them would be far slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def _holds_files() -> bool:
    """Return whether what tests write fits in memory: less than 1 GB, and some of it is run."""
    try:
        memory = os.statvfs("/dev/shm")
    except OSError:
        return False
    return memory.f_bavail * memory.f_frsize > 2**31 and not memory.f_flag & os.ST_NOEXEC


# On a disk, a new store waits 0.3 s for what it flushes; in memory, 0.01 s.
if "TMPDIR" not in os.environ and _holds_files():
    tempfile.tempdir = os.environ["TMPDIR"] = "/dev/shm"

#: Whose tests share what takes long, which one process makes once: a home with the shop's stores; a
#: trained reader; the corpus; the parsed sources; a browser and services; sentence-transformers,
#: whose import takes ten seconds; TRL, which takes nearly as long.
SHARING = {
    "bench/test_bench_reaper": "training",
    "finetune/test_corpus": "corpus",
    "finetune/test_ship": "training",
    "finetune/test_training_": "training",
    "layout/test_wheel": "wheel",
    "layout/": "layout",
    "serve/cli/test_finetune_adapt": "training",
    "serve/cli/test_finetune_train": "training",
    "serve/cli/test_encoder_option": "sentence-transformers",
    "stores/test_encoders": "sentence-transformers",
    "stores/test_minilm": "sentence-transformers",
    "stores/test_sentence_encoder": "sentence-transformers",
    "serve/service/test_serve_command": "shop",
    "serve/page/": "page",
    "serve/service/": "service",
    "serve/": "shop",
    "domains/test_shopping": "shop",
    "bench/test_bench_selection": "shop",
    "bench/test_bench_service": "shop",
    "bench/test_decoding": "shop",
    "bench/test_latency": "shop",
    "docs/test_notebooks": "shop",
    "docs/test_readme": "shop",
    "docs/test_snippets": "shop",
    "bench/test_bench_planner": "training",
    "finetune/test_reader_training": "training",
    "planner/test_case_planner_reader": "training",
    "planner/test_shipped": "training",
}


#: Of a hundred examples that hypothesis draws in ``make test-all``, those that the default run
#: draws; ``tests/support/examples`` scales by it what a test itself says.
settings.register_profile("default run", max_examples=15)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return a process more than there are cores: a third of the time tests wait for something."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect no garbage while tests are gathered, nor ever again among what was imported.

    Over a million objects live as long as the run: to look through them again and again took a
    quarter of the time that it takes to gather the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones."""
    for item in items:
        file = item.nodeid.partition("::")[0].removeprefix("tests/")
        if any(part in item.name for part in slow_parts(file)):
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    """Draw fewer examples in the default run."""
    if config.option.markexpr == "not slow":
        settings.load_profile("default run")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep together, where tests run in several processes, those that share what takes long.

    A scheduler, since xdist 3.8 finds no mark of a group from pytest 9.2 on (xdist issue 1386).
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0].removeprefix("tests/")
            return next((group for start, group in SHARING.items() if file.startswith(start)), file)

    return Groups(config, log)


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One certificate: every client of a server reads all that there are, and none needs any."""
    first, end, _ = Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----")
    file = tmp_path_factory.mktemp("authority") / "one.pem"
    file.write_text(f"{first}{end}\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="session")
def taught_reader(tmp_path_factory: pytest.TempPathFactory) -> Taught:
    """A reader that was trained on toy queries; some twenty seconds, once a session."""
    from tests.support.readers import taught

    return taught(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="session")
def untrained_reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader of the same forms whose network learned nothing."""
    from tests.support.readers import untrained

    return untrained(tmp_path_factory.mktemp("untrained"))
