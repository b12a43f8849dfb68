"""The case store: add, get, search, select, retain, update, delete over a vector engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import FacetError, InputError, StoreError
from casewright.stores.asked import Asked
from casewright.stores.case import Case, canonical_id, case_id, json_plain, now, same_json
from casewright.stores.changes import Change, changed
from casewright.stores.embedding import embedded
from casewright.stores.engines import connections
from casewright.stores.engines.engine import Engine, NoCollectionError, Where
from casewright.stores.engines.server_options import ServerOptions
from casewright.stores.facet import Components
from casewright.stores.finding import Finder
from casewright.stores.hit import Hit, Retained
from casewright.stores.layout import layout_of, scale_of
from casewright.stores.progress import progress_bar
from casewright.stores.quality import QualityScale, in_range
from casewright.stores.question import Question
from casewright.stores.revise import verified
from casewright.stores.schema import CaseSchema
from casewright.stores.select import Selection, check_bias, check_counts, check_selection
from casewright.stores.stored import measured, read, solved, stored
from casewright.stores.tenant import owned, owner, stamped, within
from casewright.stores.where import check_where

if TYPE_CHECKING:
    from casewright.stores.retrievers.langchain import CaseRetriever

#: Cases that are encoded together and written together.
BATCH = 256
#: Fewest candidates of a selection at first, and the most that a proof may ask for.
CANDIDATES, MOST = 20, 1000


class CaseStore:
    """Cases of one schema in one place.

    Several stores may share a collection: it is made by the first ``add`` that needs it, and one
    that another store removed counts as empty.

    Args:
        schema: What the cases have in common.
        location: ``":memory:"``, a folder, or the URL of a Qdrant server or cluster.
        tenant: Whose cases this store is about: it writes and sees no others. ``None`` is for
            cases that belong to nobody, and for whoever may see all.
        api_key: For a server that asks for one.
        lock_seconds: How long to wait for a folder that another process holds.
        timeout: Seconds for one request to a server.
        engine: What a new folder is written by: ``"edge"``, Qdrant Edge, or ``"local"``,
            qdrant-client's local mode. ``None`` takes Edge where it is installed; a folder that
            is there is opened by what wrote it.
        server: Options of a server or cluster, for a URL.

    Raises:
        InputError: The location is neither of these, or was written by another engine; or options
            are given that it cannot have; or the schema asks for a tenant, and there is none.
        DependencyError: The engine that wrote the folder is not installed.
        StoreLockedError: Another process holds the folder.
        StoreDamagedError: The folder's files cannot be read.
        StoreUnavailableError: The server does not answer.
        SchemaMismatchError: The collection was built with another schema.
    """

    def __init__(
        self,
        schema: CaseSchema,
        location: str | Path = ":memory:",
        *,
        tenant: str | None = None,
        api_key: str | None = None,
        lock_seconds: float = 0.0,
        timeout: int = 10,
        engine: str | None = None,
        server: ServerOptions | None = None,
    ) -> None:
        self.schema = schema
        self.location = str(location)
        self.tenant = owner(tenant, schema)
        self._lock = threading.Lock()
        self._closed = False
        self._key, self._engine = connections.acquire(
            location,
            api_key=api_key,
            lock_seconds=lock_seconds,
            timeout=timeout,
            engine=engine,
            server=server,
        )
        try:
            self._scale(fresh=True)
        except BaseException:
            self.close()
            raise

    def for_tenant(self, tenant: str) -> CaseStore:
        """Return a store of the same cases that writes and sees those of one tenant only.

        It is cheap, and shares what this one has open: close this one after it.
        """
        bound = object.__new__(type(self))
        bound.__dict__ |= self.__dict__
        bound.tenant = owner(tenant, self.schema)
        bound._lock = threading.Lock()
        with self._lock:
            self.engine  # noqa: B018 - it is open, or this raises
            connections.share(self._key)
        return bound

    def add(
        self,
        cases: Iterable[Case],
        *,
        progress: bool | Callable[[int], None] | None = None,
        on_error: Callable[[Case, FacetError], None] | None = None,
    ) -> list[str]:
        """Write cases, replacing those of the same id, and return the ids of those written.

        Cases are encoded and written in batches, to a server by several threads. When it raises,
        the batches before the one that failed are stored; adding all of them again stores each
        once.

        Args:
            cases: What to write.
            progress: Show a bar on stderr; ``None`` shows it on a terminal for long work. Or a
                function that is told how many more cases are done.
            on_error: Called for every case that a facet cannot embed, which is then left out.
                Without it, the first such case ends the whole.

        Raises:
            InputError: A case is not JSON-plain, its quality is not finite, or it is another
                tenant's.
            FacetError: A case cannot be embedded, and there is no ``on_error``.
            StoreUnavailableError: The server does not answer, or refuses, after what retries the
                options allow; it says how much is stored.
        """
        if isinstance(cases, Case):
            raise InputError("add() was given one case. Give a list of them: add([case]).")
        named: set[str] = set()
        complete = [self._completed(case, named) for case in cases]
        self._check_free(complete)
        scale: QualityScale | None = None
        label = f"Adding cases to {self.schema.name}"
        written: list[str] = []
        with (
            progress_bar(label, len(complete), show=progress) as advance,
            self.engine.uploading(self.schema.name, advance) as upload,
        ):
            for start in range(0, len(complete), BATCH):
                given = complete[start : start + BATCH]
                batch, facets = embedded(self.schema, given, on_error, len(written))
                # Not before there is a case to write: where none can be, no collection is made.
                if batch:
                    # Another store may have made the collection anew since the last batch.
                    scale = self._scale(fresh=scale is None) or self._create(complete)
                    if self.tenant is None or named.isdisjoint(case.id for case in batch):
                        upload(*stored(batch, facets, scale))
                    else:
                        # Another tenant's thread may have taken an id since it was free.
                        with self.engine.writing:
                            self._check_free(batch)
                            self._write(batch, facets, scale)
                        advance(len(batch))
                written += [case.id for case in batch]
                advance(len(given) - len(batch))
        return written

    def get(self, ids: str | Sequence[str]) -> list[Case]:
        """Return the cases of these ids, in their order; unknown ids are left out."""
        return [read(point) for point in self._finder.points(ids)]

    def all(self, where: Where | None = None) -> list[Case]:
        """Return every case that matches, ordered by id."""
        try:
            points = self.engine.scroll(self.schema.name, within(where, self.tenant))
        except NoCollectionError:
            return []
        return sorted((read(point) for point in points), key=lambda case: case.id)

    def search(
        self,
        query: str | Components,
        k: int = 10,
        *,
        weights: Mapping[str, float] | None = None,
        lambda_b: float = 1.0,
        where: Where | None = None,
    ) -> list[Hit]:
        """Return the k best cases, by one dot-product search.

        Args:
            query: A problem, some of its components, or one text that stands for all of them.
            k: How many cases; fewer come back where the store holds fewer.
            weights: Facet name to weight, at least 0; scaled to sum to 1. Facets that are not
                named weigh 0. ``None`` uses the facets' own weights.
            lambda_b: Share of the relevance, from 0 to 1; the rest is the quality's
                (RAGSys, Algorithm 1). Above 1, to 2, the quality's weight is below zero: cases of
                low quality come first (the paper's section 4.3).
            where: Metadata that a case must have; see ``engine.Where``.

        Returns:
            Hits ordered by score to six decimals, then id. A server whose options have ``search``
            may miss some.

        Raises:
            InputError: An unusable query, weight, condition, ``k`` or ``lambda_b``.
        """
        check_counts(1, k=k)
        asked = self._asked(query, weights, lambda_b, where)
        if asked is None:
            return []
        return self._finder.best(asked, k, where, exact=asked.quality_leads)

    def select(
        self,
        query: str | Components,
        k: int = 8,
        *,
        lambda_d: float = 0.75,
        lambda_b: float = 1.0,
        weights: Mapping[str, float] | None = None,
        where: Where | None = None,
        candidates: int | None = None,
        most: int = MOST,
    ) -> Selection:
        """Pick k cases, each relevant and unlike those before it (RAGSys, Algorithm 1).

        It starts from a few candidates and proves, by one more search a pick in a single batch,
        that no other case could have been picked; cases that could are fetched and the selection
        is done again (see ``certificate``).

        Args:
            query: See ``search``.
            k: How many to pick.
            lambda_d: Share of the relevance, from 0 (nothing but diversity) to 1 (no diversity).
            lambda_b: Share of the similarity in the relevance; see ``search``.
            weights: See ``search``; redundancy is weighted alike.
            where: See ``search``.
            candidates: How many cases to start from; twice ``k`` where that is more. ``None`` is
                four times ``k``, at least 20: with a ``lambda_d`` of 0.75 the proof seldom asks for
                more.
            most: How many cases may become candidates; the proof is given up before there would
                be more. No more than ``candidates`` proves, and fetches nothing.

        Raises:
            InputError: An unusable query, weight, condition, number or share.
        """
        check_selection(k, lambda_d)
        first = max(CANDIDATES, 4 * k) if candidates is None else candidates
        check_counts(0, candidates=first, most=most)
        asked = self._asked(query, weights, lambda_b, where)
        if asked is None or k == 0:
            return Selection((), True, 0, 0)
        return self._finder.select(
            asked,
            k,
            lambda_d=lambda_d,
            weights=weights,
            where=where,
            candidates=first,
            most=most,
        )

    def question(
        self,
        text: str,
        *,
        weights: Mapping[str, float] | None = None,
        where: Where | None = None,
    ) -> Question | None:
        """Embed a question once, to search by it and by other vectors again and again.

        It is ``None`` where nothing is stored. For weights and conditions see ``search``.

        Raises:
            InputError: An unusable text, weight or condition.
        """
        asked = self._asked(text, weights, 1.0, where)
        return None if asked is None else Question(text, asked, self._finder, where)

    def as_retriever(self, **settings: Any) -> CaseRetriever:
        """Return this store as a LangChain retriever; see ``CaseRetriever`` for the settings."""
        from casewright.stores.retrievers.langchain import CaseRetriever

        return CaseRetriever(store=self, **settings)

    def retain(self, case: Case) -> Retained:
        """Keep a solved case, once: Revise by the schema's ``verify``, then write where it is new.

        The id follows from tenant, schema, problem and solution, so that retaining a case twice
        writes it once; where quality or result are new they are taken over, and the rest stays. A
        near-duplicate has a near problem and the same solution, and is sought
        among cases of the same tenant only. Threads of this process retain one after the other.

        Raises:
            InputError: The case cannot be stored, or has an id of its own that is another case's.
            FacetError: It cannot be embedded.
        """
        complete = self._completed(case)
        if reason := verified(complete, self.schema):
            return Retained(complete.id, "refused", reason)
        facets = self.schema.vectors([complete.problem])
        with self.engine.writing:
            if known := self.get(complete.id):
                if not same_json(solved(known[0]), solved(complete)):
                    raise InputError(
                        f"The id {complete.id} is of another case. Leave ids empty to have them "
                        "derived, or delete that case first."
                    )
                if same_json(measured(known[0]), measured(complete)):
                    return Retained(complete.id, "unchanged")
                kept = replace(complete, created=known[0].created, metadata=known[0].metadata)
                self._write([kept], facets, self._scale(fresh=True) or self._create([kept]))
                return Retained(complete.id, "updated")
            self._check_free([complete])
            scale = self._scale(fresh=True)
            if scale is not None:
                asked = Asked.of(self.schema, facets[0], None, 1.0, scale)
                if twin := self._finder.twin(complete, asked):
                    return Retained(twin.id, "duplicate")
            self._write([complete], facets, scale or self._create([complete]))
            return Retained(complete.id, "added")

    def update(self, changes: Mapping[str, Change]) -> None:
        """Change cases without encoding them anew; all of it is one locked write.

        Args:
            changes: Case id to what is to be new; see ``Change``.

        Raises:
            InputError: An id is unknown, or a change cannot be made; nothing is changed then.
        """
        if not changes:
            return
        wanted = {canonical_id(id_) or id_: change for id_, change in changes.items()}
        with self.engine.writing:
            points = {point.id: point for point in self._finder.points(list(wanted), vectors=True)}
            scale = self._scale()
            if scale is None or (unknown := [id_ for id_ in wanted if id_ not in points]):
                missing = next(iter(wanted)) if scale is None else unknown[0]
                raise InputError(
                    f"The store {self.schema.name!r} has no case {missing!r}. Give the ids of "
                    "cases that it has; nothing was changed."
                )
            cases = [
                self._completed(changed(read(points[id_]), change))
                for id_, change in wanted.items()
            ]
            vectors = np.array([points[case.id].vector for case in cases])
            for start in range(0, len(cases), BATCH):
                part = slice(start, start + BATCH)
                self._write(cases[part], vectors[part, :-1], scale)

    def delete(self, ids: str | Sequence[str]) -> None:
        """Remove cases; unknown ids are no error."""
        with self.engine.writing:
            if wanted := [point.id for point in self._finder.points(ids)]:
                with suppress(NoCollectionError):
                    self.engine.delete(self.schema.name, wanted)

    def count(self, where: Where | None = None) -> int:
        """Count the cases that match."""
        try:
            return self.engine.count(self.schema.name, within(where, self.tenant))
        except NoCollectionError:
            return 0

    def clear(self) -> None:
        """Remove every case and the collection itself, its quality scale included.

        A tenant's store removes the tenant's cases, and leaves the rest.
        """
        if self.tenant is None:
            with self.engine.writing:
                self.engine.drop(self.schema.name)
        else:
            self.delete([case.id for case in self.all()])

    def close(self) -> None:
        """Release the location; another process may open it then. Closing twice is no error."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        connections.release(self._key, self._engine)

    def __enter__(self) -> CaseStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        """The engine below, for what the store does not offer."""
        if self._closed:
            raise StoreError(
                f"The case store {self.schema.name!r} at {self.location} is closed. Open it anew."
            )
        return self._engine

    def _scale(self, *, fresh: bool = False) -> QualityScale | None:
        """Return how the collection stores quality; ``None`` where there is no collection."""
        kept = self.engine.layout(self.schema.name, fresh=fresh)
        return None if kept is None else scale_of(kept, self.schema, self.location)

    def _create(self, cases: Sequence[Case]) -> QualityScale:
        fitted = QualityScale.fit((case.quality for case in cases), self.schema.quality_range)
        layout = layout_of(self.schema, fitted)
        self.engine.create(self.schema.name, self.schema.dimension, layout)
        # Where another store was first, its scale counts.
        return self._scale() or fitted

    def _completed(self, case: Case, named: set[str] | None = None) -> Case:
        name = self.schema.name
        if not isinstance(case, Case) or not all(
            isinstance(part, Mapping) for part in (case.problem, case.metadata)
        ):
            raise InputError(
                f"The store {name!r} was given {case!r:.200}. Give cases, whose problem and "
                "metadata are mappings of names to values."
            )
        if case.id and canonical_id(case.id) is None:
            raise InputError(
                f"A case has the id {case.id!r}. Ids are UUIDs; leave it empty to have one derived."
            )
        measured = replace(
            stamped(case, self.tenant), quality=in_range(case.quality, self.schema.quality_range)
        )
        made = Case.from_json("", json_plain(measured.to_json(), name))
        chosen = canonical_id(case.id) or case_id(made, name)
        if case.id and named is not None:
            named.add(chosen)
        return replace(made, id=chosen, created=made.created or now())

    def _check_free(self, cases: Sequence[Case]) -> None:
        """Refuse to write over another tenant's cases, which only ids that were given could do."""
        if self.tenant is None or self._scale() is None:
            return
        for start in range(0, len(cases), BATCH):
            ids = [case.id for case in cases[start : start + BATCH]]
            with suppress(NoCollectionError):
                for point in self.engine.get(self.schema.name, ids):
                    if not owned(point, self.tenant):
                        raise InputError(
                            f"The id {point.id} is not free for the tenant {self.tenant!r}. Leave "
                            "ids empty to have them derived."
                        )

    def _write(
        self, cases: Sequence[Case], facets: NDArray[np.float32], scale: QualityScale
    ) -> None:
        with self.engine.writing:
            self.engine.upsert(self.schema.name, *stored(cases, facets, scale))

    @property
    def _finder(self) -> Finder:
        return Finder(self.engine, self.schema.name, self.tenant)

    def _asked(
        self,
        query: str | Components,
        weights: Mapping[str, float] | None,
        lambda_b: float,
        where: Where | None,
    ) -> Asked | None:
        """Embed and weigh a query; ``None`` where there is nothing to search."""
        check_bias(lambda_b=lambda_b)
        if not isinstance(query, (str, Mapping)):
            raise InputError(
                f"A search was asked for {query!r:.200}. Give a problem's components, or a text."
            )
        check_where(within(where, self.tenant))
        problem = self.schema.query(query) if isinstance(query, str) else query
        self.schema.check_query(problem, weights, lambda_b)
        scale = self._scale()
        if scale is None:
            return None
        units = self.schema.vectors([problem], query=True)[0]
        return Asked.of(self.schema, units, weights, lambda_b, scale)
