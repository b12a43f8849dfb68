"""What a user sets of the legal domain, by environment variables."""

from __future__ import annotations

import os

from casewright.domains.legal.cases import CONTEXT_FORMS
from casewright.domains.legal.chat_reading import OFFLINE, check_extractor
from casewright.errors import InputError

#: Names another set than the shipped one: the path of ALQA's ``qa.jsonl``, or its name on Hugging
#: Face.
ALQA = "CASEWRIGHT_ALQA"
#: The form of a case as evidence; see ``context_text``.
CONTEXT = "CASEWRIGHT_LEGAL_CONTEXT"
#: Who extracts the cases' entities: ``offline``, or a chat model as ``provider:model``.
EXTRACTOR = "CASEWRIGHT_LEGAL_EXTRACTOR"


def context_form() -> str:
    """Return the form of a case as evidence; its support alone by default.

    Raises:
        InputError: There is no such form.
    """
    form = os.environ.get(CONTEXT) or "support"
    if form not in CONTEXT_FORMS:
        raise InputError(f"{CONTEXT} is {form!r}. It is one of: {', '.join(CONTEXT_FORMS)}.")
    return form


def extractor_name() -> str:
    """Return who extracts entities; ``offline`` by default.

    Raises:
        InputError: It is neither ``offline`` nor ``provider:model``.
    """
    name = os.environ.get(EXTRACTOR) or OFFLINE
    check_extractor(name, EXTRACTOR)
    return name
