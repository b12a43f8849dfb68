"""What a command works with: an open domain, a planner, a generator, the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from casewright.domains import Domain, find_domain
from casewright.planner.named import (
    ModelSettings,
    check_planner,
    is_local,
    local_model,
    make_planner,
    named_planner,
)
from casewright.serve.session.default_planner import default_planner
from casewright.serve.session.judges import check_feedback, with_feedback
from casewright.serve.session.scopes import demo_scope

if TYPE_CHECKING:
    from casewright.domains import OpenDomain
    from casewright.graph import Generator
    from casewright.graph.build import Graph
    from casewright.planner import Planner
    from casewright.serve.session.chosen import Chosen
    from casewright.stores import Encoder


@dataclass
class Session:
    """An open domain with the planner and the generator that were asked for."""

    domain: Domain
    opened: OpenDomain
    planner: Planner
    encoder: Encoder

    def generator(self, name: str) -> Generator:
        """Return the generator of this name, for this domain.

        Raises:
            InputError: There is no such generator or model.
        """
        from casewright.graph.named import make_generator

        return make_generator(name, self.encoder, self.domain.generator)

    def graph(self, generator: str) -> Graph:
        """Compile the graph, with the generator of this name.

        Raises:
            InputError: There is no such generator or model.
        """
        from casewright.graph import build_graph

        return build_graph(self.opened.toolbox, self.planner, self.generator(generator))

    def close(self) -> None:
        """Close the stores."""
        self.opened.close()


def open_session(
    domain: str | Domain,
    planner: str | None = None,
    given: Mapping[str, str] | None = None,
    *,
    encoder_name: str | None = None,
    feedback: str | None = None,
    model: ModelSettings | None = None,
    scope: Mapping[str, str] | None = None,
) -> Session:
    """Open a domain, with a planner.

    Args:
        domain: The domain, or how it is found.
        planner: The planner; by default the domain's, see ``default_planner``.
        given: Options of the domain that say what is opened, one at most; see ``Domain.openers``.
        encoder_name: Of an encoder, see ``named_encoder``; the packaged encoder by default.
        feedback: Who judges what searches found, so that they go on from it; see ``feedback``.
        model: Settings of the planner's language model, if it has one.
        scope: Who asks, for a planner that calls tools; the domain's demo values by default.

    Raises:
        InputError: Domain or planner are unknown, or the domain has no use for an option.
    """
    if isinstance(domain, str):
        domain = find_domain(domain)
    planner = planner or default_planner(domain)
    check_planner(planner, model)
    check_feedback(feedback, domain)
    if is_local(planner):
        local_model(planner, model or ModelSettings())
    from casewright.planner.narrowing import narrowing
    from casewright.serve.session.place import place_of
    from casewright.stores.encoders.sources import named_encoder, preload

    encoder = named_encoder(encoder_name)
    preload(encoder)
    reader = domain.open_reader() if named_planner(planner).reads else None
    if reader is not None:
        reader.preload()
    folder = place_of(domain.name, encoder_name)
    opened = None
    for name, value in (given or {}).items():
        opened = domain.openers[name](folder, encoder, value)
    opened = opened or domain.open(folder, encoder, False)
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


def open_chosen(
    using: Chosen,
    scope: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
    **model: Any,
) -> Session:
    """Open what flags and settings choose, all of it.

    Args:
        using: What they choose.
        scope: See ``open_session``.
        given: See ``open_session``.
        model: What no setting says of the planner's language model; see ``ModelSettings``.

    Raises:
        InputError: See ``open_session``.
    """
    return open_session(
        using.domain,
        using.planner,
        given,
        encoder_name=using.encoder,
        feedback=using.feedback,
        model=replace(using.model, **model),
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
