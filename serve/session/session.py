"""What a command works with: an open domain, a planner, a generator, the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from casewright.domains import Domain, find_domain
from casewright.errors import InputError
from casewright.serve.default_planner import default_planner
from casewright.serve.feedback import check_feedback, with_feedback
from casewright.serve.planners import (
    CLASSIFIERS,
    SHAPE_PLANNER,
    ModelSettings,
    check_name,
    check_planner,
    is_local,
    local_model,
    make_planner,
)
from casewright.serve.scopes import demo_scope

if TYPE_CHECKING:
    from casewright.domains import OpenDomain
    from casewright.graph import Generator
    from casewright.graph.build import Graph
    from casewright.planner import Planner, Reader
    from casewright.serve.chosen import Chosen
    from casewright.stores import Encoder

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
    domain_name: str | Domain,
    planner: str | None = None,
    store: str | None = None,
    encoder_name: str | None = None,
    source: str | None = None,
    feedback: str | None = None,
    model: ModelSettings | None = None,
    scope: Mapping[str, str] | None = None,
) -> Session:
    """Open a domain, with a planner.

    Args:
        domain_name: The domain, or how it is found.
        planner: The planner; by default the domain's, see ``default_planner``.
        store: Where the domain's cases are, where a user has them; in the data folder by default.
        encoder_name: A sentence-transformers model; the packaged encoder by default.
        source: A source tree to ask about, for the domain of source code.
        feedback: Who judges what searches found, so that they go on from it; see ``feedback``.
        model: Settings of the planner's language model, if it has one.
        scope: Who asks, for a planner that calls tools; the domain's demo values by default.

    Raises:
        InputError: Domain or planner are unknown, or the domain's cases are its own; or the source
            is no source tree, or the domain is not about one.
    """
    domain = find_domain(domain_name) if isinstance(domain_name, str) else domain_name
    planner = planner or default_planner(domain)
    check_planner(planner, model)
    if store is not None and domain.open_at is None:
        raise InputError(
            f"The domain {domain.name!r} has its own cases. Leave --store out; it goes with "
            "--domain documents."
        )
    if source is not None and domain.open_source is None:
        raise InputError(
            f"The domain {domain.name!r} is about no source tree. Leave --source out; it goes with "
            "--domain code."
        )
    check_feedback(feedback, domain)
    if is_local(planner):
        local_model(planner, model or ModelSettings())
    from casewright.planner.narrowing import narrowing
    from casewright.serve.place import place_of
    from casewright.stores.encoders.minilm import MiniLMEncoder
    from casewright.stores.encoders.sources import named_encoder

    encoder = named_encoder(encoder_name)
    if isinstance(encoder.encoder, MiniLMEncoder):
        encoder.encoder.preload()
    reader = None if planner in (SHAPE_PLANNER, CLASSIFIERS) else open_reader(domain)
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
        made = make_planner(
            planner,
            opened.plan_cases,
            reader,
            model,
            queries=domain.queries,
            encoder=encoder,
            scope=demo_scope(domain.scopes) if scope is None else scope,
        )
        made = narrowing(made, opened.toolbox, encoder, opened.plan_cases)
        return Session(domain, opened, made, encoder)
    except BaseException:
        opened.close()
        raise


def open_chosen(using: Chosen, scope: Mapping[str, str] | None = None) -> Session:
    """Open what flags and settings choose, all of it.

    Args:
        using: What they choose.
        scope: See ``open_session``.

    Raises:
        InputError: See ``open_session``.
    """
    return open_session(
        using.domain,
        using.planner,
        encoder_name=using.encoder,
        feedback=using.feedback,
        model=ModelSettings(using.adapter, using.device, using.dtype),
        scope=scope,
    )


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


def check_generator(name: str) -> None:
    """Raise ``InputError`` where no generator has this name, before anything is opened."""
    check_name("generator", name, EXTRACTIVE)


def open_reader(domain: Domain) -> Reader | None:
    """Return the domain's reader, if it has one."""
    from casewright.planner import Reader

    return Reader(domain.reader) if domain.reader is not None else None


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
