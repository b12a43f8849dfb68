"""Options that a domain adds to the commands that open the domain.

A command first finds its domain, in ``--domain`` or the settings. Then it parses all options.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from casewright.errors import CasewrightError, InputError
from casewright.serve.cli.options import set_options

if TYPE_CHECKING:
    from casewright.domains import Domain

#: Pattern of the scope fields' names that can also be names of options.
_OPTION_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector, which slows imports: it visits new objects repeatedly."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


@dataclass(slots=True)
class DomainValues:
    """A command's domain, and the values of the domain's options by the options' names.

    Attributes:
        scope: Values of scope fields.
        opening: Values of options that choose the stores to open (the domain's ``openers``).
        question_replacements: Values of options that replace the question.
    """

    domain: Domain
    scope: dict[str, str] = field(default_factory=dict)
    opening: dict[str, str] = field(default_factory=dict)
    question_replacements: dict[str, Any] = field(default_factory=dict)

    def set(self, name: str, value: Any) -> None:
        """Set the value of an option."""
        if name in self.domain.openers:
            self.opening[name] = value
        elif name in self.domain.scopes:
            self.scope[name] = value
        else:
            self.question_replacements[name] = value


class DomainCommand(TyperCommand):
    """A command with a domain's options; ``obj`` of the Typer context is a ``DomainValues``."""

    #: False if the command leaves out the options that replace the question.
    takes_all_options = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse all options, also the domain's; ``InputError`` for an unknown domain or option."""
        try:
            with gc_paused():
                domain = _find_domain(args)
        except CasewrightError:
            # Invalid settings must not prevent --help.
            if {"--help", "-h"} & set(args):
                return super().parse_args(ctx, args)
            raise
        ctx.obj = DomainValues(domain)
        # ``get_params`` reads the options from the context.
        ctx.meta[__name__] = options = self._make_options(domain)
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            # Only Typer's private errors for unknown options have this attribute.
            if not hasattr(error, "possibilities"):
                raise
            name = getattr(error, "option_name", "")
            names = ", ".join(opt for option in options for opt in option.opts) or "none"
            raise InputError(
                f"There is no option {name}. The domain {domain.name!r} adds: {names}. "
                f"{_domains_hint(name) or 'See casewright --help.'}"
            ) from error

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's parameters, with the domain's parameters before ``--help``."""
        *params, help_option = super().get_params(ctx)
        return [*params, *ctx.meta.get(__name__, ()), help_option]

    def _make_options(self, domain: Domain) -> list[Any]:
        used_names = {name for param in self.params for name in param.opts}
        fields = filter(_OPTION_NAME.fullmatch, domain.scopes)
        texts_by_option = {name: (f"Short for --scope {name}=VALUE.", "VALUE") for name in fields}
        texts_by_option |= {
            option.name: (option.help, option.metavar)
            for option in domain.options
            if self.takes_all_options or option.name in domain.openers
        }
        annotations = {
            f"option_{index}": _make_option(domain, name, *texts)
            for index, (name, texts) in enumerate(texts_by_option.items())
            if f"--{name}" not in used_names
        }

        def never_called() -> None:
            pass

        # Typer's public interface makes options only from a function's signature.
        set_options(never_called, annotations, {})
        app = typer.Typer(add_completion=False)
        app.command()(never_called)
        return list(typer.main.get_command(app).params)


class ConversationCommand(DomainCommand):
    """A ``DomainCommand`` without the options that replace the question."""

    takes_all_options = False


def _make_option(domain: Domain, name: str, help_text: str, metavar: str) -> Any:
    def store_value(ctx: typer.Context, value: Any) -> None:
        if value is not None:
            ctx.obj.set(name, value)

    return Annotated[
        str | None if metavar else bool | None,  # an option without a metavar is a flag
        typer.Option(
            f"--{name}",
            help=help_text,
            metavar=metavar or None,
            callback=store_value,
            expose_value=False,
            rich_help_panel=f"Options of the domain {domain.name}",
        ),
    ]


def _find_domain(args: list[str]) -> Domain:
    from casewright.serve.session.choice import chosen_domain
    from casewright.serve.settings.settings import load_settings

    file, name = _last_value(args, "--config"), _last_value(args, "--domain", "-d")
    return chosen_domain(load_settings(Path(file) if file else None, domain=name))


def _last_value(args: list[str], *names: str) -> str | None:
    """Return the last value that the arguments give to an option with these names."""
    last_value = None
    for word, next_word in zip_longest(args, args[1:]):
        name, separator, value = word.partition("=")
        if name in names:
            last_value = value if separator else next_word
        elif word[:2] in names and len(word) > 2:
            # The value directly follows a short name.
            last_value = word[2:]
    return last_value


def _domains_hint(option: str) -> str:
    """Return a sentence that names the domains with an option; empty if there are none."""
    from casewright.domains import domain_names, find_domain

    domains = [find_domain(name) for name in domain_names()]
    names = [domain.name for domain in domains if option in {f"--{o.name}" for o in domain.options}]
    return f"{option} goes with --domain {' or --domain '.join(names)}." if names else ""
