"""What a command works with: an open domain, a planner, a generator, the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from casewright.domains import Domain, find_domain
from casewright.errors import InputError
from casewright.serve.feedback import check_feedback, with_feedback

if TYPE_CHECKING:
    from casewright.domains import OpenDomain
    from casewright.graph import Generator
    from casewright.graph.build import Graph
    from casewright.planner import Planner, Reader
    from casewright.stores import CaseStore, Encoder

#: With the domain's reader where it has one; without it in any case.
CASE_PLANNER, SHAPE_PLANNER = "case", "shape"
EXTRACTIVE = "extractive"


@dataclass
class Session:
    """An open domain with the planner and the generator that were asked for."""

    domain: Domain
    opened: OpenDomain
    planner: Planner
    encoder: Encoder

    def graph(self, generator: Generator) -> Graph:
        """Compile the graph."""
        from casewright.graph import build_graph

        return build_graph(self.opened.toolbox, self.planner, generator)

    def close(self) -> None:
        """Close the stores."""
        self.opened.close()


def open_session(
    domain_name: str,
    planner: str = CASE_PLANNER,
    store: str | None = None,
    encoder_name: str | None = None,
    source: str | None = None,
    feedback: str | None = None,
) -> Session:
    """Open a domain, with a planner.

    Args:
        domain_name: The domain.
        planner: The planner.
        store: Where the domain's cases are, where a user has them; in the data folder by default.
        encoder_name: A sentence-transformers model; the packaged encoder by default.
        source: A source tree to ask about, for the domain of source code.
        feedback: Who judges what searches found, so that they go on from it; see ``feedback``.

    Raises:
        InputError: Domain or planner are unknown, or the domain's cases are its own; or the source
            is no source tree, or the domain is not about one.
    """
    domain = find_domain(domain_name)
    check_planner(planner)
    if store is not None and domain.open_at is None:
        raise InputError(
            f"The domain {domain_name!r} has its own cases. Leave --store out; it goes with "
            "--domain documents."
        )
    if source is not None and domain.open_source is None:
        raise InputError(
            f"The domain {domain_name!r} is about no source tree. Leave --source out; it goes with "
            "--domain code."
        )
    check_feedback(feedback, domain)
    from casewright.serve.place import place_of
    from casewright.stores.encoders.minilm import MiniLMEncoder
    from casewright.stores.encoders.sources import named_encoder

    encoder = named_encoder(encoder_name)
    if isinstance(encoder.encoder, MiniLMEncoder):
        encoder.encoder.preload()
    reader = open_reader(domain) if planner != SHAPE_PLANNER else None
    if reader is not None:
        reader.preload()
    if store is not None and domain.open_at is not None:
        opened = domain.open_at(store, encoder)
    elif source is not None and domain.open_source is not None:
        opened = domain.open_source(place_of(domain.name, encoder_name), encoder, source)
    else:
        opened = domain.open(place_of(domain.name, encoder_name), encoder, False)
    try:
        opened = with_feedback(opened, domain, feedback)
        return Session(domain, opened, make_planner(planner, opened.plan_cases, reader), encoder)
    except BaseException:
        opened.close()
        raise


def rebuild(domain_name: str) -> dict[str, int]:
    """Build a domain's stores anew, from damaged files too; return the number of cases in each.

    Raises:
        InputError: The domain is unknown.
        StoreLockedError: Another process holds the stores; they are left as they are.
    """
    from casewright.stores import default_encoder
    from casewright.stores.paths import data_folder

    domain = find_domain(domain_name)
    opened = domain.open(data_folder() / domain.name, default_encoder(), True)
    try:
        return {name: store.count() for name, store in opened.stores.items()}
    finally:
        opened.close()


def check_planner(name: str) -> None:
    """Raise ``InputError`` where no planner has this name, before anything is opened."""
    _check("planner", name, CASE_PLANNER, SHAPE_PLANNER)


def check_generator(name: str) -> None:
    """Raise ``InputError`` where no generator has this name, before anything is opened."""
    _check("generator", name, EXTRACTIVE)


def _check(kind: str, name: str, *own: str) -> None:
    if name not in own and ":" not in name:
        raise InputError(
            f"There is no {kind} {name!r}. {kind.capitalize()}s are: {', '.join(own)}, or a chat "
            "model as provider:model, for example openai:gpt-4o-mini."
        )


def open_reader(domain: Domain) -> Reader | None:
    """Return the domain's reader, if it has one."""
    from casewright.planner import Reader

    return Reader(domain.reader) if domain.reader is not None else None


def make_planner(name: str, plan_cases: CaseStore, reader: Reader | None = None) -> Planner:
    """Return the case planner, or a chat planner that falls back to it.

    Raises:
        InputError: There is no such planner or model.
    """
    from casewright.planner import CasePlanner, ChatPlanner, chat_model

    check_planner(name)
    case_planner = CasePlanner(plan_cases, None if name == SHAPE_PLANNER else reader)
    if name in (CASE_PLANNER, SHAPE_PLANNER):
        return case_planner
    return ChatPlanner(chat_model(name), fallback=case_planner, plan_cases=plan_cases)


def make_generator(name: str, encoder: Encoder, domain: Domain | None = None) -> Generator:
    """Return the domain's extractive generator, or a chat generator that falls back to it.

    Raises:
        InputError: There is no such generator or model.
    """
    from casewright.graph import ChatGenerator, ExtractiveGenerator

    extractive: Generator = ExtractiveGenerator(encoder)
    if domain is not None and domain.quotes_code:
        from casewright.domains.code.quoting import CodeQuoter

        extractive = CodeQuoter()
    if name == EXTRACTIVE:
        return extractive
    from casewright.planner import chat_model

    check_generator(name)
    return ChatGenerator(chat_model(name), fallback=extractive)


def scope_of(domain: Domain, given: Mapping[str, str | None]) -> dict[str, str]:
    """Return who asks: what was given, else the domain's demo values.

    Raises:
        InputError: A value that the domain does not know.
    """
    scope = {}
    for field, known in domain.scopes.items():
        value = given.get(field)
        if value is not None and value not in known:
            raise InputError(f"There is no {field} {value!r}. There are: {', '.join(known)}.")
        scope[field] = value or known[0]
    return scope


def read_context(text: str | None) -> dict[str, Any]:
    """Read a context given as JSON text.

    Raises:
        InputError: It is no JSON object.
    """
    import json

    from casewright.planner.request import check_context

    if text is None:
        return {}
    try:
        context = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'--context is not JSON: {error}. Give an object such as {{"product_id": "P001"}}.'
        ) from error
    check_context(context)
    return dict(context)
