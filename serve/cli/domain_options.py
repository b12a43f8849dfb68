"""Options that a domain adds to the commands that open it.

A command sees the domain before it reads its other options: ``--domain``, else the settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, Signature
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from casewright.errors import CasewrightError, InputError

if TYPE_CHECKING:
    from casewright.domains import Domain

#: Scope fields that can be an option's name.
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(slots=True)
class OfDomain:
    """The domain of a command, and what was given of the options that it adds.

    Attributes:
        domain: The domain.
        scope: Given values of scope fields.
        opening: Given options that say what is opened.
        own: Given options that the domain answers by itself.
    """

    domain: Domain
    scope: dict[str, str] = field(default_factory=dict)
    opening: dict[str, str] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)

    def take(self, name: str, value: Any) -> None:
        """Keep the value of an option."""
        if name in self.domain.openers:
            self.opening[name] = value
        elif name in self.domain.scopes:
            self.scope[name] = value
        else:
            self.own[name] = value


class DomainCommand(TyperCommand):
    """A command with the options of its domain; its context's object is an ``OfDomain``."""

    answers = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Find the domain, add its options, and parse them all.

        Raises:
            InputError: There is no such domain, or neither it nor the command has such an option.
        """
        try:
            domain = _domain_of(args)
        except CasewrightError:
            # Help is shown whatever the settings say.
            if {"--help", "-h"} & set(args):
                return super().parse_args(ctx, args)
            raise
        ctx.obj = OfDomain(domain)
        ctx.meta[__name__] = options = self._options(domain)
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            # Typer's class for an option that is not there is not public.
            if not hasattr(error, "possibilities"):
                raise
            name = getattr(error, "option_name", "")
            own = ", ".join(opt for option in options for opt in option.opts) or "none"
            raise InputError(
                f"There is no option {name}. The domain {domain.name!r} adds: {own}. "
                f"{_whose(name) or 'See casewright --help.'}"
            ) from error

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own parameters, and those of the domain before ``--help``."""
        *own, last = super().get_params(ctx)
        return [*own, *ctx.meta.get(__name__, ()), last]

    def _options(self, domain: Domain) -> list[Any]:
        taken = {name for param in self.params for name in param.opts}
        kinds = [
            kind
            for name, kind in _annotations(domain, answers=self.answers).items()
            if f"--{name}" not in taken
        ]

        def given() -> None:
            """Its parameters are read, and it is never called."""

        # Typer makes options of a function's signature, and of nothing else that is public.
        given.__annotations__ = {f"option_{number}": kind for number, kind in enumerate(kinds)}
        by_name = partial(Parameter, kind=Parameter.KEYWORD_ONLY, default=None)
        parameters = [by_name(name, annotation=a) for name, a in given.__annotations__.items()]
        given.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        app = typer.Typer(add_completion=False)
        app.command()(given)
        return list(typer.main.get_command(app).params)


class ConversationCommand(DomainCommand):
    """One whose questions are all in words."""

    answers = False


def _annotations(domain: Domain, *, answers: bool) -> Mapping[str, Any]:
    """Return the types of a domain's options, by their names."""

    def annotated(name: str, help_text: str, metavar: str) -> Any:
        def keep(ctx: typer.Context, value: Any) -> None:
            if value is not None:
                ctx.obj.take(name, value)

        return Annotated[
            str | None if metavar else bool | None,
            typer.Option(
                f"--{name}",
                help=help_text,
                metavar=metavar or None,
                callback=keep,
                expose_value=False,
                rich_help_panel=f"Of the domain {domain.name}",
            ),
        ]

    fields = {
        name: annotated(name, f"Short for --scope {name}=VALUE.", "VALUE")
        for name in domain.scopes
        if _NAME.fullmatch(name)
    }
    return fields | {
        one.name: annotated(one.name, one.help, one.metavar)
        for one in domain.options
        if answers or one.name in domain.openers
    }


def _domain_of(args: list[str]) -> Domain:
    from casewright.serve.session.chosen import chosen_domain
    from casewright.serve.settings.settings import load_settings

    config = _given(args, "--config")
    loaded = load_settings(Path(config) if config else None, domain=_given(args, "--domain", "-d"))
    return chosen_domain(loaded)


def _given(args: list[str], *names: str) -> str | None:
    """Return the last value of an option among arguments that are not parsed yet."""
    found = None
    for word, following in zip_longest(args, args[1:]):
        name, sign, value = word.partition("=")
        if name in names:
            found = value if sign else following
        elif word[:2] in names and len(word) > 2:
            found = word[2:]
    return found


def _whose(option: str) -> str:
    """Say which domains add an option; empty where none does."""
    from casewright.domains import domain_names, find_domain

    known = [find_domain(name) for name in domain_names()]
    own = [one.name for one in known if option in {f"--{o.name}" for o in one.options}]
    return f"{option} goes with --domain {' or --domain '.join(own)}." if own else ""
