"""A domain of the user's own: tools, and the annotated queries that say how they are used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from casewright.domains.domain import Domain, OpenDomain
from casewright.domains.python_file import own_code
from casewright.errors import CasewrightError, InputError
from casewright.planner import AnnotatedQuery, plan_store, read_annotated
from casewright.planner.named import CASE_PLANNER, PARSER
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
#: Whose request it is: the service says it to tools, beside the domain's own scope fields.
RESERVED = "tenant"


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
    """Return a domain that commands take as ``--domain FILE.py:NAME``.

    What commands keep of it, such as the service's kept answers and threads, is kept by its name:
    two domains of one name share it, whatever their files are.

    Args:
        name: At most 64 lower-case letters, digits, ``_`` and ``-``, a letter first; none of the
            packaged domains'.
        toolbox: The tools; or what returns them, where opening them takes long.
        queries: Annotated queries, from whose plans the case planner plans; or questions with
            their plans; or a JSON Lines file. Without any, the tools' own examples are all that it
            knows.
        description: One sentence.
        questions: Questions to try; by default the first of the annotated ones.
        scopes: Scope field to the values that a request may have, the default first; a field
            without values takes any, and has to be given. None is called ``tenant``.
        reader: The folder that ``casewright finetune reader`` wrote, if it was trained.
        stores: Stores that the tools search: the service is ready once they answer, and they are
            closed with the domain.

    Raises:
        InputError: The name cannot be one, something is of another type, the queries' file cannot
            be read, or the reader's folder is not there. When it is opened: the toolbox cannot be
            made, or an annotated query's plan cannot be run with it.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a domain. Write lower-case letters, digits, _ and -, a letter "
            "first."
        )
    if not isinstance(toolbox, Toolbox) and not callable(toolbox):
        raise InputError(
            f"The toolbox of {name!r} is a {type(toolbox).__name__}. Give Toolbox([…]), or a "
            "function that returns one."
        )
    known = _queries(name, queries)
    asked = _texts(questions, f"The questions of {name!r}")
    who = _scopes(name, scopes or {})
    folder = None if reader is None else Path(reader)
    if folder is not None and not folder.is_dir():
        raise InputError(
            f"The reader {folder} is no folder. Give the one that casewright finetune reader wrote."
        )
    opened_stores = dict(stores or {})

    def open_it(place: Path, encoder: Encoder, anew: bool) -> OpenDomain:
        made = toolbox if isinstance(toolbox, Toolbox) else _made(name, toolbox)
        _check_plans(name, known, made)
        return OpenDomain(made, plan_store(known, encoder), opened_stores)

    return Domain(
        name=name,
        description=description,
        questions=asked or tuple(one.query for one in known[:4]),
        open=open_it,
        queries=lambda: list(known),
        scopes=who,
        reader=folder,
        planner=PARSER if folder is None else CASE_PLANNER,
    )


def _queries(
    name: str, given: Sequence[AnnotatedQuery] | Mapping[str, str] | str | Path
) -> list[AnnotatedQuery]:
    if isinstance(given, str | Path):
        return read_annotated(Path(given))
    if isinstance(given, Mapping):
        return [AnnotatedQuery.read({"id": q, "query": q, "plan": p}) for q, p in given.items()]
    known: list[Any] = list(given)
    if other := [one for one in known if not isinstance(one, AnnotatedQuery)]:
        raise InputError(
            f"A query of {name!r} is a {type(other[0]).__name__}. Give AnnotatedQuery.read({{…}}) "
            "of each, or their JSON Lines file."
        )
    return known


def _scopes(name: str, given: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, Mapping) or not all(isinstance(field, str) for field in given):
        raise InputError(
            f'The scopes of {name!r} are no mapping. Give fields with their values: {{"hall": '
            '["B", "C"]}.'
        )
    if RESERVED in given:
        raise InputError(
            f"{name!r} has the scope field {RESERVED!r}, which the service fills in by itself: "
            "tools find it in their call's scope. Name the field else."
        )
    return {
        field: _texts(values, f"The values of the scope field {field!r} of {name!r}")
        for field, values in given.items()
    }


def _texts(given: Sequence[str], what: str) -> tuple[str, ...]:
    # A text is a sequence of texts too: of its letters.
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InputError(f"{what} are a {type(given).__name__}. Give a list of texts.")
    if other := [one for one in given if not isinstance(one, str)]:
        raise InputError(f"{what} hold a {type(other[0]).__name__}. Give texts only.")
    return tuple(given)


def _made(name: str, make: Callable[[], Toolbox]) -> Toolbox:
    with own_code(f"The function that makes the toolbox of {name!r}"):
        made: Any = make()
    if not isinstance(made, Toolbox):
        raise InputError(
            f"The function that makes the toolbox of {name!r} returned a {type(made).__name__}. "
            "Return Toolbox([…])."
        )
    return made


def _check_plans(name: str, known: Sequence[AnnotatedQuery], toolbox: Toolbox) -> None:
    """Raise ``InputError`` for the first query whose plan cannot be run: it would never be used."""
    for number, query in enumerate(known, 1):
        try:
            query.record.request(toolbox).validate(query.plan)
        except CasewrightError as error:
            called = f"query {number}" if query.record.id is None else f"query {query.record.id!r}"
            raise InputError(
                f"The domain {name!r} cannot use its annotated {called:.80}: {error} Mend its plan "
                "or the toolbox, or leave the query out."
            ) from error
