"""The case store that a calibration is for: a domain's, that of a file, or one of one's own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError, told

if TYPE_CHECKING:
    from casewright.stores import Case, CaseStore

#: Metadata field of plan cases that tells annotated queries apart.
PLAN_GROUP = "key"


@contextmanager
def store_of_domain(domain: str) -> Iterator[CaseStore]:
    """Open a domain's plan cases.

    Raises:
        InputError: There is no such domain, or it has none.
    """
    from casewright.serve.cli.own_tools import own_tools

    with own_tools(domain, None, None) as own:
        if own.stored is None:
            raise InputError(f"The domain {domain!r} has no plan cases. Give --cases or --store.")
        yield own.stored


@contextmanager
def store_of_file(file: Path) -> Iterator[CaseStore]:
    """Open the store that is kept of a file of demonstrations, brought up to date with it."""
    from casewright.finetune.demonstrations.cases_file import (
        demonstration_schema,
        read_demonstrations,
    )
    from casewright.stores import CaseStore, default_encoder
    from casewright.stores.paths import data_folder

    cases = read_demonstrations(file)
    name = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]
    folder = data_folder() / "demonstrations" / f"{file.stem}-{name}"
    with CaseStore(demonstration_schema(default_encoder()), folder) as store:
        _bring_up_to_date(store, cases)
        yield store


@contextmanager
def store_of_code(place: str) -> Iterator[CaseStore]:
    """Open the store that a Python file has: ``FILE.py:NAME``, a store or what returns one.

    Raises:
        InputError: The file cannot be run, or has no store of that name.
    """
    from casewright.domains.python_file import object_of
    from casewright.stores import CaseStore

    wanted = "a CaseStore, or a function that returns one"
    found = object_of(place, "--store", wanted)
    try:
        made = found() if callable(found) else found
    except Exception as error:
        raise InputError(f"--store {place} failed: {told(error)}.") from error
    if not isinstance(made, CaseStore):
        raise InputError(f"--store {place}: its name is a {type(made).__name__}. Name {wanted}.")
    try:
        yield made
    finally:
        made.close()


def _bring_up_to_date(store: CaseStore, cases: Sequence[Case]) -> None:
    """Add what is new, remove what is gone, and leave what was measured of the rest."""
    from casewright.stores import Change
    from casewright.stores.case import case_id

    wanted = {case_id(case, store.schema.name): case for case in cases}
    there = {case.id: case for case in store.all()}
    store.delete([id_ for id_ in there if id_ not in wanted])
    store.add([case for id_, case in wanted.items() if id_ not in there])
    store.update(
        {
            id_: Change(metadata=case.metadata)
            for id_, case in wanted.items()
            if id_ in there and dict(there[id_].metadata) != dict(case.metadata)
        }
    )
