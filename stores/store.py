"""The case store: add, get, search, select, retain, update and delete cases in a vector engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import FacetError, InputError, StoreError
from casewright.stores.case import Case, canonical_id, case_id, json_round_trip, same_json, utc_now
from casewright.stores.engines import connections
from casewright.stores.engines.engine import Engine, NoCollectionError, Point, Where
from casewright.stores.engines.server_options import ServerOptions
from casewright.stores.facet import Components
from casewright.stores.finding import Finder
from casewright.stores.hit import Hit, Retained
from casewright.stores.progress import progress_bar
from casewright.stores.query import StoreQuery
from casewright.stores.question import Question
from casewright.stores.revise import Change, refusal_reason, with_change
from casewright.stores.schema import CaseSchema
from casewright.stores.select import Selection, check_bias, check_counts, check_selection
from casewright.stores.spans import retrieval_span
from casewright.stores.stored import QualityScale, clamp, embed_cases, point_parts, scale_of
from casewright.stores.tenant import case_of_tenant, checked_tenant, is_visible, with_tenant

if TYPE_CHECKING:
    from casewright.stores.retrievers.langchain import CaseRetriever

#: Number of cases that are encoded and written together.
BATCH_CASES = 256
MIN_INITIAL_CANDIDATES = 20
#: Default maximum number of candidates of a selection.
MAX_CANDIDATES = 1000


class CaseStore:
    """A store of the cases of one schema at one location.

    Several stores may share a collection, which the first ``add`` creates.

    Args:
        location: ``":memory:"`` for qdrant-client's local mode; a folder for Qdrant Edge; or the
            URL of a Qdrant server or cluster.
        tenant: The store writes and sees only this tenant's cases. With ``None``, the store sees
            all cases, and writes cases as they are, with or without a tenant.
        api_key: The API key of a server.
        lock_seconds: Seconds to wait for a folder that another process holds.
        timeout: Time limit of a request to a server, in seconds.
        server: Options of a server or cluster.

    Raises:
        InputError: The location is invalid, was written by an engine of an older version, or does
            not support these options; or the schema requires a tenant.
        DependencyError: Qdrant Edge is not installed.
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
        server: ServerOptions | None = None,
    ) -> None:
        self.schema = schema
        self.location = str(location)
        self.tenant = checked_tenant(tenant, schema)
        self._lock, self._closed = threading.Lock(), False
        self._key, self._engine = connections.acquire(
            location, api_key=api_key, lock_seconds=lock_seconds, timeout=timeout, server=server
        )
        try:
            self._scale(fresh=True)
        except BaseException:
            self.close()
            raise

    def for_tenant(self, tenant: str) -> CaseStore:
        """Return a store of the same collection that writes and sees only one tenant's cases.

        Both stores share a connection, and may be closed in any order.
        """
        tenant_store = object.__new__(type(self))
        tenant_store.__dict__ |= self.__dict__
        tenant_store.tenant = checked_tenant(tenant, self.schema)
        tenant_store._lock = threading.Lock()
        with self._lock:
            self.engine  # noqa: B018 - raises if this store is closed
            connections.add_user(self._key)
        return tenant_store

    def add(
        self,
        cases: Iterable[Case],
        *,
        progress: bool | Callable[[int], None] | None = None,
        on_error: Callable[[Case, FacetError], None] | None = None,
    ) -> list[str]:
        """Write cases, replacing stored cases with the same ids; return the ids of written cases.

        Cases are encoded and written in batches; several threads write to a server. After an error,
        the earlier batches stay stored. All cases may be added again; each is stored only once.

        Args:
            progress: Show a bar on stderr; ``None`` shows it on a terminal for long work. A
                function is called with the number of cases stored since its last call.
            on_error: Called for each case that a facet cannot embed; the case is left out.

        Raises:
            InputError: A case is not JSON, its quality is not finite, or it has another tenant.
            FacetError: A case cannot be embedded, and there is no ``on_error``.
            StoreUnavailableError: The server does not answer, or refuses the request, in all
                attempts (see ``ServerOptions``); the message has the number of stored cases.
        """
        if isinstance(cases, Case):
            raise InputError("add() was given one case. Give a list of them: add([case]).")
        scale: QualityScale | None = None
        given_ids, written_ids = set[str](), list[str]()
        complete_cases = [self._complete_case(case, given_ids) for case in cases]
        self._check_ids_free(complete_cases)
        description = f"Adding cases to {self.schema.name}"
        with (
            progress_bar(description, len(complete_cases), show=progress) as advance,
            self.engine.uploading(self.schema.name, advance) as upload,
        ):
            for start in range(0, len(complete_cases), BATCH_CASES):
                batch = complete_cases[start : start + BATCH_CASES]
                encoded, units = embed_cases(self.schema, batch, on_error, len(written_ids))
                if encoded:
                    # Another store of this process may have replaced the collection meanwhile.
                    scale = self._scale(fresh=scale is None) or self._create(complete_cases)
                    if self.tenant is None or given_ids.isdisjoint(case.id for case in encoded):
                        upload(*point_parts(encoded, units, scale))
                    else:
                        # Another tenant's thread may have used one of these ids since the check.
                        with self.engine.write_lock:
                            self._check_ids_free(encoded)
                            self._write(encoded, units, scale)
                        advance(len(encoded))
                written_ids += [case.id for case in encoded]
                advance(len(batch) - len(encoded))
        return written_ids

    def get(self, ids: str | Sequence[str]) -> list[Case]:
        """Return the cases of these ids, in the order of the ids; ignore unknown ids."""
        return [_case(point) for point in self._finder.points(ids)]

    def all(self, where: Where | None = None) -> list[Case]:
        """Return every case that meets the condition, ordered by id."""
        with suppress(NoCollectionError):
            points = self.engine.scroll(self.schema.name, with_tenant(where, self.tenant))
            return sorted(map(_case, points), key=lambda case: case.id)
        return []

    def search(
        self,
        query: str | Components,
        k: int = 10,
        *,
        weights: Mapping[str, float] | None = None,
        lambda_b: float = 1.0,
        where: Where | None = None,
    ) -> list[Hit]:
        """Return the k best cases by one dot-product search.

        Args:
            query: A problem, some of its components, or one text that is used for all components.
            k: The number of cases, at most the number in the store.
            weights: The weights of facets by name, at least 0 and scaled to sum to 1. A facet that
                is not named has weight 0. ``None`` uses the facets' default weights.
            lambda_b: Share of the relevance in the score, from 0 to 1; the rest is the share of the
                quality (RAGSys, Algorithm 1). From 1 to 2, the weight of the quality is negative:
                cases of low quality come first (section 4.3 of the paper).
            where: A condition on the metadata; see ``engine.Where``.

        Returns:
            Hits ordered by score to six decimals, then id. An approximate search may miss hits.

        Raises:
            InputError: The query, a weight, the condition, ``k`` or ``lambda_b`` is invalid.
        """
        check_counts(1, k=k)
        with retrieval_span(self.schema.name, k) as add_attributes:
            if (store_query := self._query(query, weights, lambda_b, where)) is None:
                return []
            hits = self._finder.best(store_query, k, where, exact=store_query.quality_leads)
            add_attributes({"casewright.results": len(hits)})
            return hits

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
        most: int = MAX_CANDIDATES,
    ) -> Selection:
        """Pick k cases, each relevant and unlike the picks before it (RAGSys, Algorithm 1).

        The selection starts from a few candidates. One search for each pick, in a single batch,
        either proves that no other case could have been picked, or finds cases that could. These
        cases become candidates too, and the selection is repeated (see ``finding``).

        Args:
            query: See ``search``.
            where: See ``search``.
            lambda_d: Share of the score, from 0 (only diversity) to 1 (no diversity).
            lambda_b: Share of the relevance in the score; see ``search``.
            weights: See ``search``; they also apply to redundancy.
            candidates: The number of initial candidates, at least twice ``k``. ``None`` means four
                times ``k``, and at least 20, which is mostly enough for a ``lambda_d`` of 0.75.
            most: The maximum number of candidates; a proof that needs more is abandoned. If it is
                at most ``candidates``, no further cases are fetched.

        Raises:
            InputError: The query, a weight, the condition, a number or a share is invalid.
        """
        check_selection(k, lambda_d)
        initial_count = max(MIN_INITIAL_CANDIDATES, 4 * k) if candidates is None else candidates
        check_counts(0, candidates=initial_count, most=most)
        with retrieval_span(self.schema.name, k):
            store_query = self._query(query, weights, lambda_b, where)
            if store_query is None or k == 0:
                return Selection((), True, 0, 0)
            limits = {"initial_candidates": initial_count, "max_candidates": most}
            return self._finder.select(
                store_query, k, lambda_d=lambda_d, weights=weights, where=where, **limits
            )

    def question(
        self, text: str, *, weights: Mapping[str, float] | None = None, where: Where | None = None
    ) -> Question | None:
        """Return a question, embedded once for several searches; ``None`` before the first ``add``.

        See ``search`` for the arguments and errors.
        """
        query = self._query(text, weights, lambda_b=1.0, where=where)
        return None if query is None else Question(text, query, self._finder, where)

    def as_retriever(self, **settings: Any) -> CaseRetriever:
        """Return this store as a LangChain retriever; see ``CaseRetriever`` for the settings."""
        from casewright.stores.retrievers.langchain import CaseRetriever

        return CaseRetriever(store=self, **settings)

    def retain(self, case: Case) -> Retained:
        """Verify a solved case by the schema's ``verify`` (Revise), and store it if it is new.

        The id is derived from tenant, schema, problem and solution, so a case that is retained
        twice is stored once: a new quality or result replaces the old one, and other fields stay. A
        duplicate has a similar problem, the same solution, and the same tenant. Threads of this
        process retain cases one after the other.

        Raises:
            InputError: The case cannot be stored, or has the id of another case.
            FacetError: The case cannot be embedded.
        """
        complete = self._complete_case(case)
        if reason := refusal_reason(complete, self.schema):
            return Retained(complete.id, "refused", reason)
        units = self.schema.vectors([complete.problem])
        with self.engine.write_lock:
            if stored_case := next(iter(self.get(complete.id)), None):
                old, new = stored_case.to_json(), complete.to_json()
                changed_fields = {name for name in old if not same_json(old[name], new[name])}
                if changed_fields & {"problem", "solution"}:
                    problem = f"The id {complete.id} is of another case."
                    advice = "Leave ids empty to have them derived, or delete that case first."
                    raise InputError(f"{problem} {advice}")
                if not changed_fields & {"quality", "quality_by", "result"}:
                    return Retained(complete.id, "unchanged")
                case = replace(complete, created=stored_case.created, metadata=stored_case.metadata)
                self._write([case], units, self._scale(fresh=True) or self._create([case]))
                return Retained(complete.id, "updated")
            self._check_ids_free([complete])
            if scale := self._scale(fresh=True):
                query = StoreQuery.of(
                    self.schema, units[0], weights=None, lambda_b=1.0, scale=scale
                )
                if duplicate := self._finder.duplicate(complete, query):
                    return Retained(duplicate.id, "duplicate")
            self._write([complete], units, scale or self._create([complete]))
            return Retained(complete.id, "added")

    def update(self, changes: Mapping[str, Change]) -> None:
        """Change fields of cases by id; nothing is encoded. This process's other writes wait.

        Raise ``InputError`` if an id is unknown, or a change is invalid; then no case is changed.
        """
        if not changes:
            return
        change_by_id = {canonical_id(id_) or id_: change for id_, change in changes.items()}
        with self.engine.write_lock:
            stored_points = self._finder.points(list(change_by_id), vectors=True)
            points = {point.id: point for point in stored_points}
            scale = self._scale()
            unknown = [id_ for id_ in change_by_id if scale is None or id_ not in points]
            if scale is None or unknown:
                problem = f"The store {self.schema.name!r} has no case {unknown[0]!r}."
                advice = "Give the ids of cases that it has; nothing was changed."
                raise InputError(f"{problem} {advice}")
            cases = [
                self._complete_case(with_change(_case(points[id_]), change))
                for id_, change in change_by_id.items()
            ]
            vectors = np.array([points[case.id].vector for case in cases])
            for start in range(0, len(cases), BATCH_CASES):
                batch = slice(start, start + BATCH_CASES)
                self._write(cases[batch], vectors[batch, :-1], scale)

    def delete(self, ids: str | Sequence[str]) -> None:
        """Remove cases by id; ignore unknown ids."""
        with self.engine.write_lock:
            if stored_ids := [point.id for point in self._finder.points(ids)]:
                with suppress(NoCollectionError):
                    self.engine.delete(self.schema.name, stored_ids)

    def count(self, where: Where | None = None) -> int:
        """Count the cases that meet the condition."""
        with suppress(NoCollectionError):
            return self.engine.count(self.schema.name, with_tenant(where, self.tenant))
        return 0

    def clear(self) -> None:
        """Remove all cases and the collection; a tenant's store removes only the tenant's cases."""
        if self.tenant is None:
            with self.engine.write_lock:
                self.engine.drop(self.schema.name)
        else:
            self.delete([case.id for case in self.all()])

    def close(self) -> None:
        """Release the location for other processes; a second call does nothing."""
        with self._lock:
            was_closed, self._closed = self._closed, True
        if not was_closed:
            connections.release(self._key, self._engine)

    def __enter__(self) -> CaseStore:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        """The engine of the store."""
        if self._closed:
            store = f"The case store {self.schema.name!r} at {self.location}"
            raise StoreError(f"{store} is closed. Open it again.")
        return self._engine

    def _scale(self, *, fresh: bool = False) -> QualityScale | None:
        """Return the collection's quality scale, if there is one; ``fresh`` ignores the cache."""
        layout = self.engine.layout(self.schema.name, fresh=fresh)
        return None if layout is None else scale_of(layout, self.schema, self.location)

    def _create(self, cases: Sequence[Case]) -> QualityScale:
        """Create the collection with a quality scale for these first cases; return the scale."""
        fitted_scale = QualityScale.fit((case.quality for case in cases), self.schema.quality_range)
        layout = {**self.schema.layout(), "quality": asdict(fitted_scale)}
        self.engine.create(self.schema.name, self.schema.dimension, layout)
        # If another store created the collection first, that store's scale is used.
        return self._scale() or fitted_scale

    def _complete_case(self, case: Case, given_ids: set[str] | None = None) -> Case:
        """Return a valid case with tenant, id and time; add ``case``'s own id to ``given_ids``."""
        name = self.schema.name
        if not isinstance(case, Case) or not all(
            isinstance(part, Mapping) for part in (case.problem, case.metadata)
        ):
            raise InputError(
                f"The store {name!r} was given {case!r:.200}. Give cases, whose problem and "
                "metadata are mappings of names to values."
            )
        if case.id and canonical_id(case.id) is None:
            advice = "Ids are UUIDs; leave it empty to have one derived."
            raise InputError(f"A case has the id {case.id!r}. {advice}")
        quality = clamp(case.quality, self.schema.quality_range)
        valid = replace(case_of_tenant(case, self.tenant), quality=quality)
        valid = Case.from_json("", json_round_trip(valid.to_json(), name))
        id_ = canonical_id(case.id) or case_id(valid, name)
        if case.id and given_ids is not None:
            given_ids.add(id_)
        return replace(valid, id=id_, created=valid.created or utc_now())

    def _check_ids_free(self, cases: Sequence[Case]) -> None:
        """Raise ``InputError`` if another tenant's case has an id of these cases."""
        if self.tenant is None or self._scale() is None:
            return
        for start in range(0, len(cases), BATCH_CASES):
            ids = [case.id for case in cases[start : start + BATCH_CASES]]
            points: list[Point] = []
            with suppress(NoCollectionError):
                points = self.engine.get(self.schema.name, ids)
            if taken_ids := [point.id for point in points if not is_visible(point, self.tenant)]:
                problem = f"The id {taken_ids[0]} is not free for the tenant {self.tenant!r}."
                raise InputError(f"{problem} Leave ids empty to have them derived.")

    def _write(self, cases: list[Case], units: NDArray[np.float32], scale: QualityScale) -> None:
        with self.engine.write_lock:
            self.engine.upsert(self.schema.name, *point_parts(cases, units, scale))

    @property
    def _finder(self) -> Finder:
        return Finder(self.engine, self.schema.name, self.tenant)

    def _query(
        self,
        query: str | Components,
        weights: Mapping[str, float] | None,
        lambda_b: float,
        where: Where | None,
    ) -> StoreQuery | None:
        """Return an embedded and weighted query; ``None`` if there is no collection."""
        check_bias(lambda_b=lambda_b)
        if not isinstance(query, (str, Mapping)):
            raise InputError(
                f"A search was given {query!r:.200}. Give a problem's components, or a text."
            )
        with_tenant(where, self.tenant)  # An empty store refuses an invalid condition too.
        problem = self.schema.query(query) if isinstance(query, str) else query
        self.schema.check_query(problem, weights, lambda_b)
        if (scale := self._scale()) is None:
            return None
        units = self.schema.vectors([problem], query=True)[0]
        return StoreQuery.of(self.schema, units, weights, lambda_b, scale)


def _case(point: Point) -> Case:
    return Case.from_json(point.id, point.payload)
