"""Source code is split at definitions into chunks with their symbols and lines."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest

from casewright.errors import InputError
from casewright.stores.documents.file_walk import LANGUAGES, Kind
from casewright.stores.documents.reader import Document, Part
from casewright.stores.documents.splitter import Chunk, split
from casewright.stores.documents.text_size import MAX_CHUNK_TOKENS, text_sizes

SOURCES = {
    "bash": ("# Greets.\ngreet() {\n  echo hi\n}\necho end\n", ["greet", ""]),
    "c": (
        "#ifndef H\n#define H\n/* adds */\nstatic int *add(int a)\n{\n  return 0;\n}\n"
        "struct pair {\n  int a;\n};\ntypedef struct {\n  int b;\n} box;\n#endif\n",
        ["", "add", "pair", "box"],
    ),
    "cpp": (
        "namespace n {\ntemplate <class T>\nclass A : B {\n public:\n  void m() {\n    go();\n  }\n"
        "  int q;\n};\n}\nvoid n::A::r(int x) {\n  go();\n}\n",
        ["n.A", "n.A.m", "n.A.r"],
    ),
    "csharp": (
        "namespace N.M\n{\n  [Attr]\n  public class A : B\n  {\n    int P { get; set; }\n"
        "    void M(int x)\n    {\n      Go();\n    }\n  }\n}\n",
        ["N.M.A", "N.M.A.M"],
    ),
    "go": (
        "package p\n\n// F does.\nfunc F[T any](a int) error {\n\treturn nil\n}\n\n"
        "type (\n\tS struct {\n\t\ta int\n\t}\n\tI interface {\n\t\tM()\n\t}\n)\n\n"
        "func (s *Store[T]) Add(x int) {\n\tgo s.run()\n}\n",
        ["", "F", "S", "I", "Store.Add"],
    ),
    "java": (
        "package a.b;\n\n/**\n * Doc.\n */\n@Ann\npublic class A {\n  int x;\n\n"
        "  A() {\n    x = 1;\n  }\n\n  // Goes.\n  void m() {\n    go();\n  }\n\n"
        "  enum E {\n    X;\n  }\n}\n",
        ["", "A", "A.A", "A.m", "A.E"],
    ),
    "javascript": (
        "import x from 'x';\n\nexport default class A {\n  m() {\n    go();\n  }\n}\n\n"
        "export const f = (a) => {\n  return a;\n};\n\n"
        "A.prototype.z = function () {\n  go();\n};\n",
        ["", "A.m", "f", "A.prototype.z"],
    ),
    "kotlin": (
        "class A : B {\n    val q = 1\n    fun m(x: Int): Int {\n        return x\n    }\n}\n"
        "object O {\n    fun o() {\n        go()\n    }\n}\n",
        ["A.m", "O.o"],
    ),
    "lua": (
        "local function f()\n  go()\nend\n\nfunction M.g(a)\n  go()\nend\n\n"
        "function M:h()\n  go()\nend\n",
        ["f", "M.g", "M.h"],
    ),
    "php": (
        "<?php\nnamespace N;\n\nclass A extends B {\n  const X = 1;\n  public function m() {\n"
        "    go();\n  }\n}\n\nfunction f() {\n  go();\n}\n",
        ["", "A.m", "f"],
    ),
    "python": (
        '"""Doc."""\n\nimport os\n\n\n# Kept.\n@dataclass(\n    frozen=True,\n)\nclass A(B):\n'
        '    """A."""\n\n    x = 1\n\n    @property\n    async def m(self):\n        def inner():\n'
        "            pass\n\n        return inner\n\n    y: int\n\n\nif os:\n\n    def f():\n"
        "        return 1\n\n\nZ = 3\n",
        ["", "A", "A.m", "A", "", "f", ""],
    ),
    "r": ("f <- function(x) {\n  x + 1\n}\nf(2)\n", ["f", ""]),
    "ruby": (
        "module M\n  class A < B\n    # Does.\n    def m\n      go\n    end\n\n"
        "    def self.k\n      go\n    end\n  end\nend\n",
        ["M.A.m", "M.A.k"],
    ),
    "rust": (
        "use std::fmt;\n\n/// A pair.\n#[derive(Debug)]\npub struct S<T> {\n    a: T,\n}\n\n"
        "impl<T> fmt::Display for S<T> {\n    fn m(&self) {\n        go();\n    }\n}\n\n"
        "mod x {\n    pub fn f() {\n        go();\n    }\n}\n",
        ["", "S", "S.m", "x.f"],
    ),
    "scala": (
        "package a\n\nclass A(x: Int) extends B {\n"
        "  val q = 2\n  def m(y: Int): Int = {\n    y\n  }\n}\n"
        "object O {\n  def o = {\n    1\n  }\n}\n",
        ["", "A.m", "O.o"],
    ),
    "sql": ("CREATE TABLE a (\n  b int\n);\nSELECT 1;\n", ["a", ""]),
    "swift": (
        "class A: B {\n    var x = 1\n    func m() {\n        go()\n    }\n}\n\nextension A {\n"
        "    func e() {\n        go()\n    }\n}\n",
        ["A.m", "A.e"],
    ),
    "tsx": ("export const C: FC = () => {\n  return <div />;\n};\n", ["C"]),
    "typescript": (
        "export interface I {\n  a: string;\n}\n\nabstract class A<T> {\n  abstract q(): void;\n"
        "  private m(x: number): void {\n    go();\n  }\n}\n\nnamespace N {\n"
        "  export function f() {\n    go();\n  }\n}\n",
        ["I", "A.m", "N.f"],
    ),
}
METHOD = """    def large(self, items):
        \"\"\"Does much.\"\"\"
""" + "".join(
    f"        for item in items.of({n}):\n            self.total += item.weight({n})\n"
    for n in range(60)
)


def split_code(text: str, language: str = "python") -> list[Chunk]:
    return split(Document(Kind("code", language), (Part(text),), has_lines=True))


def test_every_supported_language_has_a_test_source() -> None:
    assert set(SOURCES) == set(LANGUAGES)


@pytest.mark.parametrize("language", SOURCES)
def test_code_is_split_at_definitions_with_symbols_and_lines(language: str) -> None:
    text, symbols = SOURCES[language]
    chunks = split_code(text, language)
    # Lines outside definitions end the chunk above them, or are a chunk by themselves.
    assert [chunk.symbol for chunk in chunks] == symbols
    lines = text.split("\n")
    for chunk in chunks:
        assert chunk.first_line is not None
        assert chunk.text == "\n".join(lines[chunk.first_line - 1 : chunk.last_line])
    for before, after in pairwise(chunks):
        assert before.last_line is not None
        assert after.first_line is not None
        assert not "".join(lines[before.last_line : after.first_line - 1]).strip()


@pytest.mark.parametrize(("language", "extra"), [("r", "r"), ("java", "documents")])
def test_missing_grammar_error_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, language: str, extra: str
) -> None:
    for module in ("tree_sitter_language_pack.bindings.r", "tree_sitter_java"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"is not installed; .*casewright\[{extra}\]"):
        split_code("", language)


def test_comments_and_decorators_are_in_the_chunk_of_their_definition() -> None:
    text, _ = SOURCES["python"]
    texts = {chunk.symbol: chunk.text for chunk in split_code(text) if chunk.symbol}
    assert split_code(text)[1].text.startswith("# Kept.\n@dataclass(")
    assert texts["A.m"].startswith("    @property\n    async def m")
    assert texts["A.m"].endswith("return inner")


def test_long_method_is_split_between_statements_into_chunks_with_its_symbol() -> None:
    head = f'class Store:\n    """{"Words. " * 9}"""\n\n'
    text = f"{head}{METHOD}\n    def small(self):\n        return 1\n"
    chunks = split_code(text)
    parts = [chunk for chunk in chunks if chunk.symbol == "Store.large"]
    assert len(parts) > 3
    assert "\n".join(chunk.text for chunk in parts) == METHOD.rstrip("\n")
    assert all(sum(text_sizes(chunk.text.split("\n"))) <= MAX_CHUNK_TOKENS for chunk in parts)
    # Every chunk starts with a statement.
    assert all(chunk.text.startswith("        for item in") for chunk in parts[1:])
    assert [chunk.symbol for chunk in chunks if chunk not in parts] == ["Store", "Store.small"]


def test_short_class_head_is_in_the_chunk_of_its_first_method() -> None:
    (chunk,) = split_code("class A(B):\n\n    def m(self):\n        return 1\n")
    assert (chunk.symbol, chunk.first_line, chunk.last_line) == ("A.m", 1, 4)


def test_one_line_members_of_an_interface_stay_in_its_chunk() -> None:
    text = "interface I {\n  void a();\n  void b();\n}\n"
    assert [(chunk.symbol, chunk.last_line) for chunk in split_code(text, "java")] == [("I", 4)]


def test_code_with_a_syntax_error_still_gives_its_intact_definitions() -> None:
    text = "def f():\n    return 1\n\n\nx = = (\n\n\ndef g():\n    return 2\n"
    assert {"f", "g"} <= {chunk.symbol for chunk in split_code(text)}


def test_code_on_one_long_line_is_split() -> None:
    text = "var a = [" + "1, 2, 3, " * 600 + "];"
    chunks = split_code(text, "javascript")
    assert len(chunks) > 10
    assert {(chunk.first_line, chunk.last_line) for chunk in chunks} == {(1, 1)}
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(text.split())


def test_code_nested_deeper_than_the_recursion_limit_is_split() -> None:
    text = "x = " + "[" * 3000 + "]" * 3000 + "\n\ndef f():\n    return 1\n"
    assert split_code(text)[-1].symbol == "f"
