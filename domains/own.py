"""Makes a domain of a user's own tools, with annotated queries that show the use of the tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from casewright.domains.domain import Domain, OpenDomain
from casewright.domains.python_file import running_user_code
from casewright.errors import CasewrightError, InputError
from casewright.planner import AnnotatedQuery, plan_store, read_annotated
from casewright.planner.named import CASE_PLANNER, ENSEMBLE
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
#: The scope field that the service sets to the tenant of a request.
RESERVED_SCOPE = "tenant"


def own_domain(
    name: str,
    toolbox: Toolbox | Callable[[], Toolbox],
    queries: Sequence[AnnotatedQuery] | Mapping[str, str] | str | Path = (),
    *,
    description: str = "",
    questions: Sequence[str] = (),
    scopes: Mapping[str, Sequence[str]] | None = None,
    reader: str | Path | None = None,
    stores: Mapping[str, CaseStore] | None = None,
) -> Domain:
    """Return a domain, which commands accept as ``--domain FILE.py:NAME``.

    Data that commands store, such as retained answers and threads, belongs to the domain's name:
    two domains with the same name share it.

    Args:
        name: At most 64 lower-case letters, digits, ``_`` and ``-``, beginning with a letter; not
            the name of a packaged domain.
        toolbox: The toolbox, or a function that returns it when the domain is opened.
        queries: Annotated queries for the planner, a mapping of questions to plans, or a JSON Lines
            file. Without queries, the planner has only the tools' examples.
        description: One sentence about the domain.
        questions: Examples of questions; by default, the first annotated queries.
        scopes: Scope fields with allowed values, the default first. A field without values allows
            any value, and is required. ``tenant`` is reserved.
        reader: The folder of a reader that ``casewright finetune reader`` wrote.
        stores: Stores that the tools search. The service reports that it is ready only while the
            stores answer. The stores are closed with the domain.

    Raises:
        InputError: The name is not allowed, an argument has a wrong type, the queries' file cannot
            be read, or the reader's folder does not exist. Opening the domain raises the error if
            the toolbox cannot be made, or an annotated query's plan is not valid for the toolbox.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a valid domain name. Write lower-case letters, digits, _ and -, "
            "beginning with a letter."
        )
    if not isinstance(toolbox, Toolbox) and not callable(toolbox):
        raise InputError(
            f"The toolbox of {name!r} is a {type(toolbox).__name__}. Give Toolbox([…]), or a "
            "function that returns one."
        )
    annotated = _read_queries(name, queries)
    question_texts = _checked_texts(questions, f"The questions of {name!r}")
    scope_values = _checked_scopes(name, scopes or {})
    reader_folder = None if reader is None else Path(reader)
    if reader_folder is not None and not reader_folder.is_dir():
        raise InputError(
            f"The reader {reader_folder} is not a folder. Give the folder that casewright finetune "
            "reader wrote."
        )
    stores_by_name = dict(stores or {})

    def open_domain(folder: Path, encoder: Encoder, rebuild: bool) -> OpenDomain:
        tools = toolbox if isinstance(toolbox, Toolbox) else _make_toolbox(name, toolbox)
        _check_plans(name, annotated, tools)
        return OpenDomain(tools, plan_store(annotated, encoder), stores_by_name)

    return Domain(
        name=name,
        description=description,
        questions=question_texts or tuple(query.query for query in annotated[:4]),
        open=open_domain,
        queries=lambda: list(annotated),
        scopes=scope_values,
        reader=reader_folder,
        planner=ENSEMBLE if reader_folder is None else CASE_PLANNER,
    )


def _read_queries(
    name: str, queries: Sequence[AnnotatedQuery] | Mapping[str, str] | str | Path
) -> list[AnnotatedQuery]:
    if isinstance(queries, str | Path):
        return read_annotated(Path(queries))
    if isinstance(queries, Mapping):
        return [AnnotatedQuery.read({"id": q, "query": q, "plan": p}) for q, p in queries.items()]
    annotated: list[Any] = list(queries)
    if wrong := [query for query in annotated if not isinstance(query, AnnotatedQuery)]:
        raise InputError(
            f"A query of {name!r} is a {type(wrong[0]).__name__}. Give AnnotatedQuery.read({{…}}) "
            "for each query, or a JSON Lines file of them."
        )
    return annotated


def _checked_scopes(name: str, scopes: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    if not isinstance(scopes, Mapping) or not all(isinstance(field, str) for field in scopes):
        raise InputError(
            f'The scopes of {name!r} are not a mapping. Give fields with their values: {{"hall": '
            '["B", "C"]}.'
        )
    if RESERVED_SCOPE in scopes:
        raise InputError(
            f"{name!r} has the scope field {RESERVED_SCOPE!r}, which the service fills in by "
            "itself: tools find it in their call's scope. Give the field another name."
        )
    return {
        field: _checked_texts(values, f"The values of the scope field {field!r} of {name!r}")
        for field, values in scopes.items()
    }


def _checked_texts(texts: Sequence[str], label: str) -> tuple[str, ...]:
    # A string is a sequence of strings, but no list of texts.
    if not isinstance(texts, Sequence) or isinstance(texts, str | bytes):
        raise InputError(f"{label} are a {type(texts).__name__}. Give a list of texts.")
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise InputError(f"{label} hold a {type(wrong[0]).__name__}. Give texts only.")
    return tuple(texts)


def _make_toolbox(name: str, make: Callable[[], Toolbox]) -> Toolbox:
    with running_user_code(f"The function that makes the toolbox of {name!r}"):
        toolbox: Any = make()
    if not isinstance(toolbox, Toolbox):
        raise InputError(
            f"The function that makes the toolbox of {name!r} returned a {type(toolbox).__name__}. "
            "Return Toolbox([…])."
        )
    return toolbox


def _check_plans(name: str, queries: Sequence[AnnotatedQuery], toolbox: Toolbox) -> None:
    """Raise ``InputError`` for the first query whose plan is not valid for the toolbox."""
    for number, query in enumerate(queries, 1):
        try:
            query.record.request(toolbox).validate(query.plan)
        except CasewrightError as error:
            label = f"query {number}" if query.record.id is None else f"query {query.record.id!r}"
            raise InputError(
                f"The domain {name!r} cannot use its annotated {label:.80}: {error} Correct its "
                "plan or the toolbox, or leave the query out."
            ) from error
