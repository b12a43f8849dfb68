"""Case stores on Qdrant: cases, facets, encoders, selection of cases, ingestion of documents."""

from casewright.stores.case import Binary, Case
from casewright.stores.documents.cases import document_schema, remove_root, roots_of
from casewright.stores.documents.ingest import IngestReport, ingest
from casewright.stores.encoders.cache import CachedEncoder
from casewright.stores.encoders.encoder import Encoder
from casewright.stores.encoders.sources import (
    as_encoder,
    default_encoder,
    from_langchain,
    from_llamaindex,
)
from casewright.stores.engines.server_options import ServerOptions
from casewright.stores.facet import Components, Facet, text_facet
from casewright.stores.hit import Hit, Retained
from casewright.stores.question import Found, Question
from casewright.stores.revise import Change, Revised, revise
from casewright.stores.schema import CaseSchema
from casewright.stores.select import Pick, Selection, select
from casewright.stores.selectors import MarginalSelector
from casewright.stores.store import CaseStore

__all__ = [
    "Binary",
    "CachedEncoder",
    "Case",
    "CaseSchema",
    "CaseStore",
    "Change",
    "Components",
    "Encoder",
    "Facet",
    "Found",
    "Hit",
    "IngestReport",
    "MarginalSelector",
    "Pick",
    "Question",
    "Retained",
    "Revised",
    "Selection",
    "ServerOptions",
    "as_encoder",
    "default_encoder",
    "document_schema",
    "from_langchain",
    "from_llamaindex",
    "ingest",
    "remove_root",
    "revise",
    "roots_of",
    "select",
    "text_facet",
]
