"""What is wrong with a recipe, in words: the field, what it holds, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

#: Problems that are told at once; of more, their number.
SHOWN = 3
#: What to write in place of a value of another type.
_INSTEAD = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "path_type": "a file's name",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "finite_number": "a finite number",
    "none_required": "nothing",
}
_BOUNDS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}
_Path = tuple[str | int, ...]


def problems(error: ValidationError, recipe: type[BaseModel]) -> str:
    """Return what pydantic found wrong with a recipe, as sentences: the first few problems."""
    grouped: dict[_Path, list[ErrorDetails]] = {}
    for one in error.errors():
        named = one["type"] == "extra_forbidden"
        grouped.setdefault(_path(one["loc"], recipe, named=named), []).append(one)
    # Of the members of a union, the one that a value nearly fits says more.
    paths = [p for p in grouped if not any(o != p and o[: len(p)] == p for o in grouped)]
    told = [_problem(path, grouped[path], recipe) for path in paths]
    more = f" And {len(told) - SHOWN} more." if len(told) > SHOWN else ""
    return " ".join(told[:SHOWN]) + more


def _path(loc: Sequence[str | int], recipe: type[BaseModel], *, named: bool) -> _Path:
    """Return a place without what pydantic adds to it: the names of a union's members.

    Args:
        loc: The place.
        recipe: Where it begins.
        named: The last key is what somebody wrote.
    """
    path: list[str | int] = []
    models: list[type[BaseModel]] = [recipe]
    for number, key in enumerate(loc):
        known = [model.model_fields[key] for model in models if key in model.model_fields]
        if known:
            path.append(key)
            models = [m for field in known for m in _models(field.annotation)]
        elif isinstance(key, int) or not _is_tag(key) or (named and number == len(loc) - 1):
            path.append(key)
    return tuple(path)


def _is_tag(key: str) -> bool:
    # "literal['a']", "tuple[str, ...]", "str": what is between brackets is no name of a recipe.
    return "[" in key or key in ("str", "int", "float", "bool", "path") or key[:1].isupper()


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _problem(path: _Path, errors: Sequence[ErrorDetails], recipe: type[BaseModel]) -> str:
    first, place = errors[0], ".".join(map(str, path))
    if first["type"] == "extra_forbidden":
        return f"{place}: {_unknown(path, recipe)}"
    if first["type"] == "missing":
        return f"{place} is missing. Add it."
    if first["type"] in ("value_error", "assertion_error"):
        told = first["msg"].partition(", ")[2]
        # What concerns several sections names its fields itself.
        return f"{place}: {told}" if place else told
    shown = f"{_shown(first['input'])} is not possible"
    instead = list(dict.fromkeys(text for one in errors for text in _instead(path, one, recipe)))
    if not instead:
        return f"{place}: {shown}. {first['msg']}."
    return f"{place}: {shown}. Write {' or '.join(instead)}."


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _instead(path: _Path, error: ErrorDetails, recipe: type[BaseModel]) -> Iterator[str]:
    kind = error["type"]
    if kind in _BOUNDS:
        bounds = _bounds(path, recipe)
        yield f"a number of {bounds}" if bounds else "a number " + error["msg"].partition(" be ")[2]
    elif kind == "literal_error":
        # As Python shows them: 'a', 'b' or 'c'.
        expected = str(error.get("ctx", {}).get("expected", ""))
        names = expected.replace("'", '"')
        near = get_close_matches(str(error["input"]), expected.split("'")[1::2], 1)
        yield f'"{near[0]}", or one of {names}' if near and "," in names else names
    elif kind in _INSTEAD:
        yield _INSTEAD[kind]


def _bounds(path: _Path, recipe: type[BaseModel]) -> str:
    """Return a field's bounds in words; empty where they are not its own but an item's."""
    models = [recipe]
    for key in path[:-1]:
        fields = [m.model_fields[key] for m in models if key in m.model_fields]
        models = [model for field in fields for model in _models(field.annotation)] or models
    for model in models:
        if field := model.model_fields.get(str(path[-1])):
            return " and ".join(_bound(limit) for limit in field.metadata if _bound(limit))
    return ""


def _bound(limit: Any) -> str:
    match limit:
        case Ge():
            return f"at least {limit.ge}"
        case Gt():
            return f"more than {limit.gt}"
        case Le():
            return f"at most {limit.le}"
        case Lt():
            return f"less than {limit.lt}"
    return ""


def _unknown(path: _Path, recipe: type[BaseModel]) -> str:
    """Return what to do about a name that is not known where it stands."""
    name, sections = str(path[-1]), dict(_sections(recipe, ()))
    where = tuple(key for key in path[:-1] if isinstance(key, str))
    known = list(sections.get(where, ()))
    elsewhere = [section for section, names in sections.items() if name in names]
    if elsewhere:
        return f"The field belongs to [{'.'.join(elsewhere[0])}]. Move it there."
    near = get_close_matches(name, known, 2)
    mend = f"Did you mean {' or '.join(near)}?" if near else f"Known here are {', '.join(known)}."
    return f"There is no such field. {mend}"


def _sections(
    model: type[BaseModel], place: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    yield place, tuple(model.model_fields)
    for name, field in model.model_fields.items():
        for inner in _models(field.annotation):
            yield from _sections(inner, (*place, name))
