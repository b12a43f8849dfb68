"""Opens a domain with a planner as a session, which makes generators and graphs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from casewright.domains import Domain, OpenDomain, find_domain
from casewright.errors import InputError
from casewright.graph.named import OFF, check_judge, make_generator, make_judge
from casewright.planner import Planner, named
from casewright.planner.named import ModelSettings
from casewright.serve.session.defaults import default_planner, open_stores, store_folder
from casewright.serve.session.scopes import default_scope

if TYPE_CHECKING:
    from casewright.graph import Generator
    from casewright.graph.build import Graph
    from casewright.serve.session.choice import ChosenParts
    from casewright.stores import CaseStore, Encoder
    from casewright.stores.feedback import Strategy
    from casewright.tools import Search


@dataclass
class Session:
    """A domain's declaration, its open tools and stores, and a planner."""

    domain: Domain
    opened: OpenDomain
    planner: Planner
    encoder: Encoder

    def generator(self, name: str, *, full: bool = False) -> Generator:
        """Return the domain's generator of this name; if ``full``, it quotes whole results."""
        quoter, reads_passages = self.domain.generator, self.domain.reads_passages
        return make_generator(name, self.encoder, quoter, full=full, reads_passages=reads_passages)

    def graph(
        self, generator: str, checkpointer: Any = None, *, full: bool = False, **options: Any
    ) -> Graph:
        """Return the graph with the generator of this name; ``options`` go to ``build_graph``."""
        from casewright.graph import build_graph

        components = (self.opened.toolbox, self.planner, self.generator(generator, full=full))
        return build_graph(*components, checkpointer=checkpointer, **options)

    def close(self) -> None:
        """Close the stores."""
        self.opened.close()


def open_session(
    domain: str | Domain,
    planner: str | Planner | None = None,
    opening: Mapping[str, str] | None = None,
    *,
    encoder_name: str | None = None,
    feedback: str | None = None,
    model: ModelSettings | None = None,
    scope: Mapping[str, str] | None = None,
) -> Session:
    """Open a domain with a planner.

    Args:
        domain: The domain, or its name for ``find_domain``.
        planner: The planner, or its name; ``default_planner`` by default.
        opening: At most one option of ``Domain.openers``, such as ``source``, mapped to its value.
        encoder_name: The name for ``named_encoder``; the packaged encoder by default.
        feedback: The name of the judge of relevance feedback; none by default.
        model: Settings of the planner's language model, if it has one.
        scope: The scope for a planner that calls tools; by default each scope field's first value.

    Raises:
        InputError: The domain, the planner or the judge is unknown, or ``model`` does not apply.
    """
    if isinstance(domain, str):
        domain = find_domain(domain)
    planner = planner or default_planner(domain)
    planner_name = planner if isinstance(planner, str) else None
    if planner_name:
        named.check_planner(planner_name, model)
    _check_feedback(feedback, domain)
    if planner_name and named.has_local_model(planner_name):
        # The model is cached. If it cannot be loaded, the error comes before stores are opened.
        named.local_model(planner_name, model or ModelSettings())
    from casewright.planner.narrowing import narrowing
    from casewright.stores.encoders.sources import named_encoder, preload

    encoder = named_encoder(encoder_name)
    preload(encoder)
    takes_reader = planner_name is not None and named.named_planner(planner_name).reads
    reader = domain.open_reader() if takes_reader else None
    if reader is not None:
        reader.preload()
    folder = store_folder(domain.name, encoder_name)
    if opening:
        option, value = next(iter(opening.items()))
        opened = domain.openers[option](folder, encoder, value)
    else:
        opened = domain.open(folder, encoder, False)  # without rebuilding the stores
    try:
        opened = with_feedback(opened, domain, feedback)
        cases = opened.plan_cases
        if isinstance(planner, str):
            scope = default_scope(domain.scopes) if scope is None else scope
            arguments: Any = {"queries": domain.queries, "encoder": encoder, "scope": scope}
            planner = named.make_planner(planner, cases, reader, model, **arguments)
            planner = narrowing(planner, opened.toolbox, encoder, cases)
        return Session(domain, opened, planner, encoder)
    except BaseException:
        opened.close()
        raise


def open_chosen(
    chosen: ChosenParts,
    scope: Mapping[str, str] | None = None,
    opening: Mapping[str, str] | None = None,
    planner: Planner | None = None,
    **model_settings: Any,
) -> Session:
    """Open the chosen domain; ``planner`` and ``model_settings`` replace what was chosen."""
    return open_session(
        chosen.domain,
        planner or chosen.planner,
        opening,
        encoder_name=chosen.encoder,
        feedback=chosen.judge,
        model=replace(chosen.model, **model_settings),
        scope=scope,
    )


def _check_feedback(judge_name: str | None, domain: Domain) -> None:
    if judge_name in (None, OFF):
        return
    if domain.looping is None:
        raise InputError(
            f"The domain {domain.name!r} has no searches that a judge could repeat. Leave "
            "--feedback out; tools of your own get relevance feedback by tool_from_store(…, "
            "search=FeedbackSearch(…))."
        )
    check_judge(judge_name)


def with_feedback(opened: OpenDomain, domain: Domain, judge_name: str | None) -> OpenDomain:
    """Return the open domain, with relevance feedback if the domain has it and a judge is named."""
    if domain.looping is None or judge_name is None or judge_name == OFF:
        return opened
    judge = make_judge(judge_name)

    def make(store: CaseStore, strategy: Strategy, weights: Mapping[str, float] | None) -> Search:
        from casewright.graph.feedback import FeedbackSearch

        # The domains' tools add the hits of a search without feedback, so no fallback is needed.
        return FeedbackSearch(store, judge, strategy, weights=weights, fallback=False)

    return domain.looping(opened, make)


def rebuild(domain_name: str) -> dict[str, int]:
    """Rebuild a domain's stores, even damaged ones; return the number of cases by store."""
    with closing(open_stores(find_domain(domain_name), rebuild=True)) as opened:
        return {name: store.count() for name, store in opened.stores.items()}
