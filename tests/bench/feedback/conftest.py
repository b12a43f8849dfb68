from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from casewright.bench.feedback.code import CodeCorpus, code_set, read_code
from casewright.bench.feedback.sets import FeedbackSet
from tests.bench.feedback.helpers import MILL, install_mill


@pytest.fixture(scope="session")
def mill_corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeCorpus]:
    """The chunks of one invented package; another one is named that is not installed."""
    place = tmp_path_factory.mktemp("site")
    install_mill(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(place), *sys.path])
        yield read_code([MILL, ("invented-kiln", "kiln")])


@pytest.fixture(scope="session")
def mill(mill_corpus: CodeCorpus) -> FeedbackSet:
    """The set whose questions name a function of the invented package."""
    return code_set(mill_corpus)
