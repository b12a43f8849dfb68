"""Settings and fixtures of all tests: built stores stay in the checkout, not in the user's home."""

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
    from tests.support.readers import Trained

os.environ.setdefault("CASEWRIGHT_HOME", str(Path(__file__).parents[1] / ".casewright"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Tests run in several processes; torch with one thread per core in each of them is far slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def _memory_has_space() -> bool:
    """Return True if ``/dev/shm`` can hold programs, and it and the memory have 4 GB free.

    The tests write less than 1 GB, and run some of the written files; their processes take 2 GB.
    Files that a killed run left in ``/dev/shm`` take memory too.
    """
    try:
        shared = os.statvfs("/dev/shm")
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return False
    memory = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), 0)
    free = min(shared.f_bavail * shared.f_frsize, memory * 1024)
    return free > 2**32 and not shared.f_flag & os.ST_NOEXEC


# A new store waits 0.3 s for a flush to a disk, and 0.01 s for a flush to memory.
if "TMPDIR" not in os.environ and _memory_has_space():
    tempfile.tempdir = os.environ["TMPDIR"] = "/dev/shm"

#: Groups of test files by the start of their path. One process runs a whole group, so that a slow
#: resource is made once: a home with the shop's stores; a trained reader; the corpus; the parsed
#: sources; a browser and services; the imports of sentence-transformers (ten seconds) and TRL.
GROUPS = {
    "finetune/test_corpus": "corpus",
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
    "packages/studies/test_bench_reaper": "training",
    "planner/test_case_planner_reader": "training",
    "planner/test_shipped": "training",
}


# Hypothesis draws 100 examples in ``make test-all``, and 15 in the default run.
# ``tests/support/examples`` reduces the numbers that tests set themselves in proportion.
settings.register_profile("default run", max_examples=15)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return one process more than there are cores, because tests wait a third of their time."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Turn off garbage collection while tests are collected; never scan imported objects later.

    Over a million objects live until the end of the run. Scanning them took a quarter of the time
    of the collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    for item in items:
        file = item.nodeid.partition("::")[0].removeprefix("tests/")
        if any(part in item.name for part in slow_parts(file)):
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis draw fewer examples in the default run."""
    if config.option.markexpr == "not slow":
        settings.load_profile("default run")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler that runs each of the ``GROUPS`` in one process.

    xdist 3.8 does not find the marks of groups from pytest 9.2 on (xdist issue 1386).
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0].removeprefix("tests/")
            return next((group for start, group in GROUPS.items() if file.startswith(start)), file)

    return GroupScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Reduce the certificate file to one entry.

    Every HTTP client reads the whole file, and no test needs a certificate.
    """
    first, end, _ = Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----")
    file = tmp_path_factory.mktemp("authority") / "one.pem"
    file.write_text(f"{first}{end}\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="session")
def trained_reader(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Return a reader that was trained on toy queries, about 20 seconds once per session."""
    from tests.support.readers import train_and_save

    return train_and_save(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="session")
def untrained_reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Return a reader with the same templates whose network was not trained."""
    from tests.support.readers import untrained

    return untrained(tmp_path_factory.mktemp("untrained"))
