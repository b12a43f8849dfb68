"""Domains: stores, tools and plan cases for one kind of question, found by name."""

from casewright.domains.domain import Domain, OpenDomain
from casewright.domains.own import own_domain
from casewright.domains.own_answer import Option, OwnAnswer, OwnRequest
from casewright.domains.registry import domain_names, find_domain

__all__ = [
    "Domain",
    "OpenDomain",
    "Option",
    "OwnAnswer",
    "OwnRequest",
    "domain_names",
    "find_domain",
    "own_domain",
]
