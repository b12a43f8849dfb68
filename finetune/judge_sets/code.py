"""Makes two sets of questions that ask for the whole code of functions in installed packages.

Files are read and split as by ``ingest``. The relevant cases of a question are all chunks of its
function, so the splitter determines the labels, not a search or a judge. No question asks for a
class, because "all of class C" is ambiguous.

The questions of the first set name a function. The questions of the second set, written by hand,
avoid the function's name and the words of its docstring. So a filter by names does not help, and a
search mostly finds only the chunk that resembles the question, such as the signature.
"""

from __future__ import annotations

import ast
import importlib.util
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

from casewright.errors import DependencyError, InputError
from casewright.finetune.judge_sets.sets import (
    CODE,
    DESCRIBED,
    FeedbackSet,
    LabelledQuestion,
    schema_of,
)
from casewright.finetune.records import read_values
from casewright.stores import Case, CaseStore, default_encoder
from casewright.stores.documents.cases import digest, document_cases
from casewright.stores.documents.file_walk import kind_of, walk
from casewright.stores.documents.reader import read_document
from casewright.stores.documents.splitter import split

#: Pure Python distributions that an installation with documents and benches has, and their
#: packages; together they have about 4,700 chunks.
PACKAGES = (
    ("beautifulsoup4", "bs4"),
    ("click", "click"),
    ("httpx", "httpx"),
    ("Jinja2", "jinja2"),
    ("markdown-it-py", "markdown_it"),
    ("requests", "requests"),
    ("tenacity", "tenacity"),
)
#: Omitted files and folders: tests contain the names of all functions.
EXCLUDED = ("test", "tests", "test_*", "testing", "_vendor")
#: The seed of the random choice of functions and wordings.
SEED = 0
#: Maximum number of questions for a package.
MAX_QUESTIONS = 50
#: Maximum number of chunks of a function for which a question may ask.
MAX_CHUNKS = 10
METHOD_WORDINGS = (
    "Show me the full `{name}` method of class `{owner}`{place}.",
    "the whole {name} method of {owner}{place}",
    "I need all of {owner}.{name}{place}, from its signature to its last line.",
    "What does the complete implementation of {owner}.{name}{place} look like?",
    "Print {owner}.{name}(){place} in full",
    "entire body of the method {name} in the class {owner}{place}",
    "Give me the code of {owner}'s {name} method{place}, all of it.",
)
FUNCTION_WORDINGS = (
    "Show me the full `{name}` function{place}.",
    "the whole function {name}{place}",
    "I need all of {name}(){place}, from its signature to its last line.",
    "What does the complete implementation of {name}{place} look like?",
    "Print the function {name}{place} in full",
    "entire body of {name}{place}",
    "Give me the code of the function {name}{place}, all of it.",
)
#: Texts for the location of a function with a unique symbol; half of the texts are empty.
PLACES = ("", "", " of {package}", " in {source}")


class PythonDefinition(NamedTuple):
    """A function, method or class that is not inside a function; ``symbol`` names outer classes."""

    symbol: str
    is_function: bool
    in_class: bool


@dataclass(frozen=True, slots=True)
class PackageDefinition:
    """A definition in a package's file ``source``; ``symbol`` includes its enclosing classes.

    ``chunks`` are the ids of its chunks; empty if no question may ask for the definition.
    """

    package: str
    source: str
    symbol: str
    chunks: tuple[str, ...]
    is_method: bool

    @property
    def key(self) -> str:
        """File and symbol: the id of the question, which determines its half (training or test)."""
        return f"{self.source}:{self.symbol}"

    @property
    def is_askable(self) -> bool:
        """True if a question may ask for it, because it has 2 to ``MAX_CHUNKS`` chunks."""
        return 2 <= len(self.chunks) <= MAX_CHUNKS

    def question(self, text: str) -> LabelledQuestion:
        """Return a question for the function."""
        return LabelledQuestion(self.key, text, frozenset(self.chunks))


@dataclass(frozen=True, slots=True)
class CodeCorpus:
    """The chunks of installed packages and all definitions in them; ``origin`` has the versions."""

    cases: Sequence[Case]
    definitions: Sequence[PackageDefinition]
    origin: Mapping[str, Any]

    def feedback_set(
        self, name: str, questions: Sequence[LabelledQuestion], **origin: Any
    ) -> FeedbackSet:
        """Return a set of the corpus's cases and these questions; ``InputError`` without any."""
        if not questions:
            packages = ", ".join(self.origin["packages"]) or "none is installed"
            raise InputError(
                f"The set {name} is made of installed packages, and no function of these that it "
                f"asks about has several chunks: {packages}. Run: pip install 'casewright[all]'"
            )
        return FeedbackSet(name, "code", self.cases, questions, {**self.origin, **origin})


def code_set(corpus: CodeCorpus) -> FeedbackSet:
    """Return the set whose questions name a function; ``InputError`` if it has no question."""
    count = sum(len(function.chunks) > 1 for function in corpus.definitions)
    questions = questions_about(corpus.definitions)
    return corpus.feedback_set(CODE, questions, functions_of_several_chunks=count)


def described_set(corpus: CodeCorpus, written: Mapping[str, str] | None = None) -> FeedbackSet:
    """Return the set whose questions describe a function.

    ``written`` are questions by ``PackageDefinition.key``, by default the packaged questions. A
    question is omitted, and counted in ``origin``, if the installed package lacks the function, or
    the function is not askable. ``InputError`` if all questions are omitted.
    """
    written = written_questions() if written is None else written
    by_key = {function.key: function for function in corpus.definitions if function.is_askable}
    questions = [by_key[key].question(text) for key, text in written.items() if key in by_key]
    left_out = len(written) - len(questions)
    counts = {"functions_described": len(questions), "functions_left_out": left_out}
    return corpus.feedback_set(DESCRIBED, questions, **counts)


def written_questions() -> dict[str, str]:
    """Return the packaged questions by ``PackageDefinition.key``."""
    file = Path(__file__).parent / "data" / "described.jsonl"
    return {record["id"]: record["question"] for _, _, record in read_values(file)}


def questions_about(definitions: Sequence[PackageDefinition]) -> list[LabelledQuestion]:
    """Return a question for each askable function, at most ``MAX_QUESTIONS`` a package.

    Functions and wordings are drawn with a seed. If several files have a function's symbol, the
    question names the file.
    """
    symbol_counts = Counter(definition.symbol for definition in definitions)
    sample: list[PackageDefinition] = []
    for package in sorted({definition.package for definition in definitions}):
        candidates = [f for f in definitions if f.package == package and f.is_askable]
        candidates.sort(key=lambda function: (function.source, function.symbol))
        random.Random(f"{SEED} {package}").shuffle(candidates)
        sample += candidates[:MAX_QUESTIONS]
    # Shuffled again, so that the first questions are from all packages.
    random.Random(SEED).shuffle(sample)
    return [_question(function, unique=symbol_counts[function.symbol] == 1) for function in sample]


def _question(function: PackageDefinition, *, unique: bool) -> LabelledQuestion:
    # Each function has its own generator, so that its wording does not depend on other packages.
    rng = random.Random(f"{SEED} {function.key}")
    owner, _, name = function.symbol.rpartition(".")
    wording = rng.choice(METHOD_WORDINGS if function.is_method else FUNCTION_WORDINGS)
    location = rng.choice(PLACES) if unique else " in {source}"
    location = location.format(package=function.package, source=function.source)
    return function.question(wording.format(name=name, owner=owner, place=location))


def read_code(packages: Iterable[tuple[str, str]] = PACKAGES) -> CodeCorpus:
    """Return the split code of installed packages; ``origin`` lists missing packages.

    ``packages`` are names of distributions and of their package folders. ``DependencyError`` if
    tree-sitter is not installed.
    """
    if importlib.util.find_spec("tree_sitter") is None:
        raise DependencyError(
            "The sets of code are split by tree-sitter, which is not installed. "
            "Run: pip install 'casewright[documents]'"
        )
    versions: dict[str, str] = {}
    missing: list[str] = []
    cases: list[Case] = []
    definitions: list[PackageDefinition] = []
    # The store only computes the ids of the cases; no case is added to it.
    with CaseStore(schema_of(CODE, "code", default_encoder())) as store:
        for name, folder in packages:
            try:
                installed = distribution(name)
                path = Path(str(installed.locate_file(folder))).resolve(strict=True)
            except (PackageNotFoundError, OSError):
                missing.append(name)
                continue
            versions[folder] = installed.version
            for new_cases, new_definitions in _read_package(folder, installed.version, path, store):
                cases += new_cases
                definitions += new_definitions
    return CodeCorpus(cases, definitions, {"packages": versions, "packages_missing": missing})


def _read_package(
    package: str, version: str, folder: Path, store: CaseStore
) -> Iterator[tuple[list[Case], list[PackageDefinition]]]:
    """Yield the chunks and the definitions of each file of a package."""
    for file in walk(folder, ("*.py",), EXCLUDED).files:
        data, kind = file.path.read_bytes(), kind_of(file.relative_path)
        assert kind is not None
        source = f"{package}/{file.relative_path}"
        try:
            chunks = split(read_document(data, kind))
            by_symbol = python_definitions(data)
        except (InputError, SyntaxError, ValueError):
            # Packages may include files for other versions of Python.
            continue
        cases = document_cases(chunks, store, f"{package} {version}", source, digest(data))
        definitions = []
        for symbol, (definition, *same_symbol) in sorted(by_symbol.items()):
            all_ids = [case.id for case in cases if case.metadata.get("symbol") == symbol]
            # Questions ask only for functions and methods with a unique symbol.
            chunk_ids = tuple(all_ids) if definition.is_function and not same_symbol else ()
            definitions.append(
                PackageDefinition(package, source, symbol, chunk_ids, definition.in_class)
            )
        yield cases, definitions


def python_definitions(source: bytes) -> dict[str, list[PythonDefinition]]:
    """Return the definitions in a file by their symbols, in order, by Python's parser.

    ``SyntaxError`` or ``ValueError`` if the file is not Python of this version.
    """
    by_symbol: dict[str, list[PythonDefinition]] = defaultdict(list)
    for definition in _walk_definitions(ast.parse(source).body, ""):
        by_symbol[definition.symbol].append(definition)
    return by_symbol


def _walk_definitions(body: Iterable[ast.AST], prefix: str) -> Iterator[PythonDefinition]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield PythonDefinition(f"{prefix}{name}", True, bool(prefix))
            case ast.ClassDef(name=name):
                yield PythonDefinition(f"{prefix}{name}", False, bool(prefix))
                yield from _walk_definitions(node.body, f"{prefix}{name}.")
            case _:
                # A definition may be inside an ``if`` or a ``try``.
                yield from _walk_definitions(ast.iter_child_nodes(node), prefix)
