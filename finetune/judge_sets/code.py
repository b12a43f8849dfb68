"""Makes two sets of questions that ask for the whole code of functions in installed packages.

Files are read and split into chunks as ``casewright ingest`` does. All chunks of a function are
relevant to its question, so the splitter determines the labels, not a search or a judge. No
question asks for a class, because "all of class C" is ambiguous.

The questions of the first set name a function. The questions of the second set, written by hand,
avoid the function's name and the words of its docstring. So a filter by names cannot find the
function, and a search mostly finds only the chunk that resembles the question.
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

#: Pure Python distributions that ``casewright[all]`` installs, each with its package folder.
#: Together they have about 4,700 chunks.
PACKAGES = (
    ("beautifulsoup4", "bs4"),
    ("click", "click"),
    ("httpx", "httpx"),
    ("Jinja2", "jinja2"),
    ("markdown-it-py", "markdown_it"),
    ("requests", "requests"),
    ("tenacity", "tenacity"),
)
#: Files and folders to omit: tests, which contain the names of all functions, and copied code.
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
#: Texts for ``{place}`` if a function's symbol is unique; half of the texts are empty.
PLACES = ("", "", " of {package}", " in {source}")


class PythonDefinition(NamedTuple):
    """A function, method or class outside of functions; a method's symbol is ``Class.method``."""

    symbol: str
    is_function: bool
    in_class: bool


@dataclass(frozen=True, slots=True)
class PackageDefinition:
    """A definition in the file ``source`` of a package; ``symbol`` includes enclosing classes.

    ``chunk_ids`` is empty for classes and for symbols that are not unique in the file.
    """

    package: str
    source: str
    symbol: str
    chunk_ids: tuple[str, ...]
    is_method: bool

    @property
    def key(self) -> str:
        """File and symbol. The key is the question's id, which determines the question's half."""
        return f"{self.source}:{self.symbol}"

    @property
    def is_askable(self) -> bool:
        """True if a question may ask for the definition: it has 2 to ``MAX_CHUNKS`` chunks."""
        return 2 <= len(self.chunk_ids) <= MAX_CHUNKS

    def question(self, text: str) -> LabelledQuestion:
        """Return a question with this text, to which all chunks of the function are relevant."""
        return LabelledQuestion(self.key, text, frozenset(self.chunk_ids))


@dataclass(frozen=True, slots=True)
class CodeCorpus:
    """The chunks and definitions of installed packages; ``origin`` has the packages' versions."""

    cases: Sequence[Case]
    definitions: Sequence[PackageDefinition]
    origin: Mapping[str, Any]

    def feedback_set(
        self, name: str, questions: Sequence[LabelledQuestion], **origin: Any
    ) -> FeedbackSet:
        """Return a set of the cases and these questions; ``InputError`` if there are none."""
        if not questions:
            packages = ", ".join(self.origin["packages"]) or "none is installed"
            raise InputError(
                f"The set {name} asks about functions of several chunks in installed packages, and "
                f"has no such function. Packages: {packages}. Run: pip install 'casewright[all]'"
            )
        return FeedbackSet(name, "code", self.cases, questions, {**self.origin, **origin})


def code_set(corpus: CodeCorpus) -> FeedbackSet:
    """Return the set whose questions name a function; ``InputError`` if it has no question."""
    count = sum(len(function.chunk_ids) > 1 for function in corpus.definitions)
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
    """Return a question for each askable function, at most ``MAX_QUESTIONS`` per package.

    Functions and wordings are drawn with a seed. If a symbol is in several files, the question
    names the file.
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
    return [_question(f, has_unique_symbol=symbol_counts[f.symbol] == 1) for f in sample]


def _question(function: PackageDefinition, *, has_unique_symbol: bool) -> LabelledQuestion:
    # Each function has its own generator, so that its wording does not depend on other packages.
    rng = random.Random(f"{SEED} {function.key}")
    owner, _, name = function.symbol.rpartition(".")
    wording = rng.choice(METHOD_WORDINGS if function.is_method else FUNCTION_WORDINGS)
    place = rng.choice(PLACES) if has_unique_symbol else " in {source}"
    place = place.format(package=function.package, source=function.source)
    return function.question(wording.format(name=name, owner=owner, place=place))


def read_code(packages: Iterable[tuple[str, str]] = PACKAGES) -> CodeCorpus:
    """Return the chunks and definitions of installed packages; ``origin`` lists missing packages.

    ``packages`` are pairs: a distribution's name and its package folder. ``DependencyError`` if
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
        for name, package in packages:
            try:
                installed = distribution(name)
                path = Path(str(installed.locate_file(package))).resolve(strict=True)
            except (PackageNotFoundError, OSError):
                missing.append(name)
                continue
            version = versions[package] = installed.version
            for new_cases, new_definitions in _read_package(package, version, path, store):
                cases += new_cases
                definitions += new_definitions
    return CodeCorpus(cases, definitions, {"packages": versions, "packages_missing": missing})


def _read_package(
    package: str, version: str, path: Path, store: CaseStore
) -> Iterator[tuple[list[Case], list[PackageDefinition]]]:
    """Yield the chunks and the definitions of each file of a package."""
    for file in walk(path, ("*.py",), EXCLUDED).files:
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
            chunk_ids = tuple(all_ids) if definition.is_function and not same_symbol else ()
            definitions.append(
                PackageDefinition(package, source, symbol, chunk_ids, definition.in_class)
            )
        yield cases, definitions


def python_definitions(code: bytes) -> dict[str, list[PythonDefinition]]:
    """Return the definitions in Python code, in order, grouped by their symbols.

    ``SyntaxError`` or ``ValueError`` if this version of Python cannot parse the code.
    """
    by_symbol: dict[str, list[PythonDefinition]] = defaultdict(list)
    for definition in _walk_definitions(ast.parse(code).body, ""):
        by_symbol[definition.symbol].append(definition)
    return by_symbol


def _walk_definitions(body: Iterable[ast.AST], prefix: str) -> Iterator[PythonDefinition]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield PythonDefinition(f"{prefix}{name}", is_function=True, in_class=bool(prefix))
            case ast.ClassDef(name=name):
                yield PythonDefinition(f"{prefix}{name}", is_function=False, in_class=bool(prefix))
                yield from _walk_definitions(node.body, f"{prefix}{name}.")
            case _:
                # A definition may be inside an ``if`` or a ``try``.
                yield from _walk_definitions(ast.iter_child_nodes(node), prefix)
