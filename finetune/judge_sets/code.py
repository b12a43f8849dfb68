"""Code of packages that are installed anyway, and two sets of questions for whole functions.

Their files are read and split as ``ingest`` does it. Relevant to a question are all chunks whose
symbol is the function's own, in its file: the splitter says which chunk is of which function, and
no search and no judge has a part in it. Only functions and methods are asked for. A class's chunks
are its head and what stands between its methods; what "all of class C" is, people differ on.

The questions of the first set name their function, in the words that people use. Those of the
second say what it does, and never what it is called: a search mostly finds the part of the function
that reads like the question, its head say, and not the rest of its body; and no filter by names can
help. They were written by hand, from the functions' code, in other words than their docstrings'.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from casewright.errors import DependencyError, InputError
from casewright.finetune.judge_data import LabelledQuestion
from casewright.finetune.judge_sets.sets import CODE, DESCRIBED, FeedbackSet, schema_of
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
#: Of which functions are asked about, and of the words.
SEED = 0
#: Questions of one package at most, so that no package is most of the set. A function of more
#: chunks is not asked about: it fills a search's results by itself.
PER_PACKAGE, MOST_CHUNKS = 50, 10
METHOD_WORDS = (
    "Show me the full `{name}` method of class `{owner}`{place}.",
    "the whole {name} method of {owner}{place}",
    "I need all of {owner}.{name}{place}, from its signature to its last line.",
    "What does the complete implementation of {owner}.{name}{place} look like?",
    "Print {owner}.{name}(){place} in full",
    "entire body of the method {name} in the class {owner}{place}",
    "Give me the code of {owner}'s {name} method{place}, all of it.",
)
FUNCTION_WORDS = (
    "Show me the full `{name}` function{place}.",
    "the whole function {name}{place}",
    "I need all of {name}(){place}, from its signature to its last line.",
    "What does the complete implementation of {name}{place} look like?",
    "Print the function {name}{place} in full",
    "entire body of {name}{place}",
    "Give me the code of the function {name}{place}, all of it.",
)
#: Where it is, as questions say it that could do without.
PLACES = ("", "", " of {package}", " in {source}")


class Definition(NamedTuple):
    """A function, method or class that is not inside of a function.

    Attributes:
        symbol: Its name inside of the classes around it, joined by dots.
        is_function: It is no class.
        in_class: It stands in a class.
    """

    symbol: str
    is_function: bool
    in_class: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A definition that questions may be about.

    Attributes:
        package: The package that it is of.
        source: Its file.
        symbol: Its name inside of the classes around it, joined by dots.
        chunks: The ids of its chunks; none where it is not to be asked about.
        is_method: It stands in a class.
    """

    package: str
    source: str
    symbol: str
    chunks: tuple[str, ...]
    is_method: bool

    @property
    def key(self) -> str:
        """The file and symbol: the id of its question in every set, which decides the half."""
        return f"{self.source}:{self.symbol}"

    @property
    def is_cut(self) -> bool:
        """It can be asked about, and has several chunks but not too many."""
        return 2 <= len(self.chunks) <= MOST_CHUNKS

    def labelled(self, text: str) -> LabelledQuestion:
        """Return a question for it."""
        return LabelledQuestion(self.key, text, frozenset(self.chunks))


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
        self, name: str, questions: Sequence[LabelledQuestion], **settings: Any
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
    """Make the set whose questions name their function; raises ``InputError``."""
    cut = sum(len(function.chunks) > 1 for function in corpus.functions)
    return corpus.feedback_set(CODE, ask_about(corpus.functions), functions_of_several_chunks=cut)


def described_set(corpus: CodeCorpus, written: Mapping[str, str] | None = None) -> FeedbackSet:
    """Make the set whose questions describe their function.

    A function that the installed version of its package lacks, or that is of one chunk there, is
    left out and counted in the settings.

    Args:
        corpus: What is installed.
        written: Questions by file and symbol; ``None`` takes those that ship.

    Raises:
        InputError: None of the functions is there.
    """
    if written is None:
        written = written_questions()
    there = {function.key: function for function in corpus.functions if function.is_cut}
    questions = [there[key].labelled(text) for key, text in written.items() if key in there]
    left_out = len(written) - len(questions)
    counts = {"functions_described": len(questions), "functions_left_out": left_out}
    return corpus.feedback_set(DESCRIBED, questions, **counts)


def written_questions() -> dict[str, str]:
    """Return the questions that ship, by file and symbol of the function that each describes."""
    file = files("casewright.finetune.judge_sets") / "data" / "described.jsonl"
    records = map(json.loads, filter(None, file.read_text(encoding="utf-8").split("\n")))
    return {record["id"]: record["question"] for record in records}


def ask_about(functions: Sequence[Function]) -> list[LabelledQuestion]:
    """Return one question for each function that was cut, of each package as many at most.

    The words, and which functions, are drawn with a seed. A symbol that several files define is
    asked for with its file.
    """
    times = Counter(function.symbol for function in functions)
    chosen: list[Function] = []
    for package in sorted({function.package for function in functions}):
        cut = [item for item in functions if item.package == package and item.is_cut]
        cut.sort(key=lambda function: (function.source, function.symbol))
        random.Random(f"{SEED} {package}").shuffle(cut)
        chosen += cut[:PER_PACKAGE]
    # So that the first questions are of all packages.
    random.Random(SEED).shuffle(chosen)
    return [_question(function, unique=times[function.symbol] == 1) for function in chosen]


def _question(function: Function, *, unique: bool) -> LabelledQuestion:
    # Its own generator: another package, or one less, changes no other's words.
    rng = random.Random(f"{SEED} {function.key}")
    owner, _, name = function.symbol.rpartition(".")
    words = rng.choice(METHOD_WORDS if function.is_method else FUNCTION_WORDS)
    location = rng.choice(PLACES) if unique else " in {source}"
    location = location.format(package=function.package, source=function.source)
    return function.labelled(words.format(name=name, owner=owner, place=location))


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
    versions: dict[str, str] = {}
    missing: list[str] = []
    cases: list[Case] = []
    functions: list[Function] = []
    # The store gives the cases their ids, and is not written to.
    with CaseStore(schema_of(CODE, "code", default_encoder())) as store:
        for name, folder in packages:
            try:
                installed = distribution(name)
                path = Path(str(installed.locate_file(folder))).resolve(strict=True)
            except (PackageNotFoundError, OSError):
                missing.append(name)
                continue
            versions[folder] = installed.version
            result, output = _read(folder, installed.version, path, store)
            cases += result
            functions += output
    settings = {"packages": versions, "packages_missing": missing}
    return CodeCorpus(cases, functions, settings)


def _read(
    package: str, version: str, folder: Path, store: CaseStore
) -> tuple[list[Case], list[Function]]:
    """Return a package's chunks, and its functions that a question can name."""
    cases: list[Case] = []
    functions: list[Function] = []
    for file in walk(folder, ("*.py",), EXCLUDED).files:
        data, kind = file.path.read_bytes(), kind_of(file.source)
        assert kind is not None
        # As the file would be called from the folder on that holds the package.
        source = f"{package}/{file.source}"
        try:
            chunks = split(read_document(data, source, kind))
            symbols = {definition.symbol for definition in definitions(data)}
            once = {item.symbol: item.in_class for item in functions_defined_once(data)}
        except (InputError, SyntaxError, ValueError):
            # Packages may carry files for other versions of Python.
            continue
        result = document_cases(chunks, store, f"{package} {version}", source, digest(data))
        cases += result
        for symbol in sorted(symbols):
            own = [case.id for case in result if case.metadata.get("symbol") == symbol]
            ids = tuple(own if symbol in once else ())
            functions.append(Function(package, source, symbol, ids, once.get(symbol, False)))
    return cases, functions


def definitions(source: bytes) -> list[Definition]:
    """Return the definitions of a file in their order; one that is defined twice is there twice.

    Python's own parser says what the questions may be about. The splitter reads files by another
    one, so what one of them gets wrong is not taken for right by the other.

    Raises:
        SyntaxError: It is no Python of this version.
        ValueError: It has zero bytes.
    """
    return list(_walk(ast.parse(source).body, ""))


def functions_defined_once(source: bytes) -> list[Definition]:
    """Return the functions and methods of a file whose symbol no other definition of it has.

    Overloads, and a property with its setter, share theirs: which is meant, no name tells.
    """
    output = definitions(source)
    times = Counter(definition.symbol for definition in output)
    return [result for result in output if result.is_function and times[result.symbol] == 1]


def _walk(body: Iterable[ast.AST], around: str) -> Iterator[Definition]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield Definition(f"{around}{name}", True, bool(around))
            case ast.ClassDef(name=name):
                yield Definition(f"{around}{name}", False, bool(around))
                yield from _walk(node.body, f"{around}{name}.")
            case _:
                # A definition may stand under an ``if`` or a ``try``.
                yield from _walk(ast.iter_child_nodes(node), around)
