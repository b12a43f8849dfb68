"""Code of packages that are installed anyway, and its first set: “show me all of function F”.

Their files are read and split as ``ingest`` does it. Relevant to a question are all chunks whose
symbol is the function's own, in its file: the splitter says which chunk is of which function, and
no search and no judge has a part in it. Only functions and methods are asked for. A class's chunks
are its head and what stands between its methods; what "all of class C" is, people differ on.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from casewright.bench.feedback.code_questions import Function, ask_about
from casewright.bench.feedback.definitions import definitions, functions_defined_once
from casewright.bench.feedback.sets import CODE, FeedbackQuestion, FeedbackSet, schema_of
from casewright.errors import DependencyError, InputError
from casewright.stores import Case, CaseStore, default_encoder
from casewright.stores.documents.cases import digest, document_cases
from casewright.stores.documents.file_walk import walk
from casewright.stores.documents.kinds import kind_of
from casewright.stores.documents.reader import read_document
from casewright.stores.documents.splitter import split

#: Distributions of pure Python that an installation with documents and benches has, each with the
#: folder that it is imported from: some 4,700 chunks together.
PACKAGES = (
    ("beautifulsoup4", "bs4"),
    ("click", "click"),
    ("httpx", "httpx"),
    ("Jinja2", "jinja2"),
    ("markdown-it-py", "markdown_it"),
    ("requests", "requests"),
    ("tenacity", "tenacity"),
)
#: Files and folders that are left out: tests hold calls of everything.
EXCLUDED = ("test", "tests", "test_*", "testing", "_vendor")


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package.

    Attributes:
        name: Of the folder that it is imported from.
        version: Of its distribution.
        folder: Where it is.
    """

    name: str
    version: str
    folder: Path


@dataclass(frozen=True, slots=True)
class CodeCorpus:
    """The chunks of installed packages, for every set of questions that is asked of them.

    Attributes:
        cases: The chunks.
        functions: All definitions of the files.
        settings: Which packages, and which of these are missing.
    """

    cases: Sequence[Case]
    functions: Sequence[Function]
    settings: Mapping[str, Any]

    def feedback_set(
        self, name: str, questions: Sequence[FeedbackQuestion], **settings: Any
    ) -> FeedbackSet:
        """Return a set of these cases: the very same ones, so that one store serves them all.

        Raises:
            InputError: There is no question.
        """
        if not questions:
            there = ", ".join(self.settings["packages"]) or "none is installed"
            raise InputError(
                f"The set {name} is made of installed packages, and no function of these that it "
                f"could ask about was cut into chunks: {there}. Run: pip install 'casewright[all]'"
            )
        return FeedbackSet(name, "code", self.cases, questions, {**self.settings, **settings})


def code_set(corpus: CodeCorpus) -> FeedbackSet:
    """Make the set whose questions name their function.

    Raises:
        InputError: No function of the packages that are installed was cut.
    """
    cut = sum(len(one.chunks) > 1 for one in corpus.functions)
    return corpus.feedback_set(CODE, ask_about(corpus.functions), functions_of_several_chunks=cut)


def read_code(packages: Iterable[tuple[str, str]] = PACKAGES) -> CodeCorpus:
    """Read and split what is installed.

    Args:
        packages: Distributions and the folders that they are imported from. One that is not
            installed is left out, and said so in the settings.

    Raises:
        DependencyError: What splits code is not installed.
    """
    if importlib.util.find_spec("tree_sitter_language_pack") is None:
        raise DependencyError(
            "The sets of code are split by tree-sitter-language-pack, which is not installed. "
            "Run: pip install 'casewright[documents]'"
        )
    there: list[Package] = []
    missing: list[str] = []
    for name, folder in packages:
        if package := _installed(name, folder):
            there.append(package)
        else:
            missing.append(name)
    cases: list[Case] = []
    functions: list[Function] = []
    # The store gives the cases their ids, and is not written to.
    with CaseStore(schema_of(CODE, "code", default_encoder())) as store:
        for package in there:
            made, found = _read(package, store)
            cases += made
            functions += found
    settings = {
        "packages": {package.name: package.version for package in there},
        "packages_missing": missing,
    }
    return CodeCorpus(cases, functions, settings)


def _installed(name: str, folder: str) -> Package | None:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    place = Path(str(found.locate_file(folder)))
    return Package(folder, found.version, place.resolve()) if place.is_dir() else None


def _read(package: Package, store: CaseStore) -> tuple[list[Case], list[Function]]:
    """Return a package's chunks, and its functions that a question can name."""
    cases: list[Case] = []
    functions: list[Function] = []
    for file in walk(package.folder, ("*.py",), EXCLUDED).files:
        data, kind = file.path.read_bytes(), kind_of(file.source)
        assert kind is not None
        # As the file would be called from the folder on that holds the package.
        source = f"{package.name}/{file.source}"
        try:
            chunks = split(read_document(data, source, kind))
            symbols = {definition.symbol for definition in definitions(data)}
            once = functions_defined_once(data)
        except (InputError, SyntaxError, ValueError):
            # Packages may carry files for other versions of Python.
            continue
        root = f"{package.name} {package.version}"
        made = document_cases(chunks, store, root, source, digest(data))
        cases += made
        askable = {definition.symbol: definition.in_class for definition in once}
        for symbol in sorted(symbols):
            functions.append(
                Function(
                    package.name,
                    source,
                    symbol,
                    _ids(made, symbol) if symbol in askable else (),
                    askable.get(symbol, False),
                )
            )
    return cases, functions


def _ids(cases: Sequence[Case], symbol: str) -> tuple[str, ...]:
    return tuple(case.id for case in cases if case.metadata.get("symbol") == symbol)
