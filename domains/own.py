"""A domain of the user's own: tools, and the annotated queries that say how they are used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from casewright.domains.domain import Domain, OpenDomain
from casewright.errors import InputError
from casewright.planner import AnnotatedQuery, plan_store, read_annotated
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def own_domain(
    name: str,
    toolbox: Toolbox | Callable[[], Toolbox],
    queries: Sequence[AnnotatedQuery] | str | Path = (),
    *,
    description: str = "",
    questions: Sequence[str] = (),
    scopes: Mapping[str, Sequence[str]] | None = None,
    reader: str | Path | None = None,
    stores: Mapping[str, CaseStore] | None = None,
) -> Domain:
    """Return a domain that commands take as ``--domain FILE.py:NAME``.

    Args:
        name: At most 64 lower-case letters, digits, ``_`` and ``-``, a letter first; none of the
            packaged domains'.
        toolbox: The tools; or what returns them, where opening them takes long.
        queries: Annotated queries, from whose plans the case planner plans; or their JSON Lines
            file. Without any, the tools' own examples are all that it knows.
        description: One sentence.
        questions: Questions to try; by default the first of the annotated ones.
        scopes: Scope field to the values that a request may have, the default first; a field
            without values takes any, and has to be given.
        reader: The folder that ``casewright finetune reader`` wrote, if it was trained.
        stores: Stores that the tools search: the service is ready once they answer, and they are
            closed with the domain.

    Raises:
        InputError: The name cannot be one, the queries' file cannot be read, or the reader's folder
            is not there.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a domain. Write lower-case letters, digits, _ and -, a letter "
            "first."
        )
    known = read_annotated(Path(queries)) if isinstance(queries, str | Path) else list(queries)
    folder = None if reader is None else Path(reader)
    if folder is not None and not folder.is_dir():
        raise InputError(
            f"The reader {folder} is no folder. Give the one that casewright finetune reader wrote."
        )
    opened_stores = dict(stores or {})

    def open_it(place: Path, encoder: Encoder, anew: bool) -> OpenDomain:
        made = toolbox if isinstance(toolbox, Toolbox) else toolbox()
        return OpenDomain(made, plan_store(known, encoder), opened_stores)

    return Domain(
        name=name,
        description=description,
        questions=tuple(questions) or tuple(one.query for one in known[:4]),
        open=open_it,
        queries=lambda: list(known),
        scopes=dict(scopes or {}),
        reader=folder,
    )
