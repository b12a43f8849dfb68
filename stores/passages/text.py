"""The text of a passage, as a search returns it and as the cross-encoder reads it."""

from __future__ import annotations

from casewright.stores import Case
from casewright.stores.documents.file_walk import kind_of
from casewright.stores.documents.splitter import HEADING_SEPARATOR

#: Headings that do not describe their section.
UNSPECIFIC_HEADINGS = (
    *("description", "synopsis", "configuration", "options", "details", "example", "usage"),
)


def passage_markdown(case: Case) -> str:
    """Return a passage as Markdown under its last specific heading; source code is fenced."""
    source = str(case.metadata.get("source", ""))
    title = str(case.problem.get("title", ""))
    headings = [part for part in title.split(HEADING_SEPARATOR) if part != source]
    specific = [part for part in headings if part.strip("`").lower() not in UNSPECIFIC_HEADINGS]
    text = str(case.solution)
    kind = kind_of(source)
    if kind is not None and kind.name == "code":
        text = f"```{kind.language}\n{text}\n```"
    elif headings and text.startswith("#"):
        # The passage's own heading is left out, unless there is nothing below it.
        text = text.partition("\n")[2].strip() or text
    return f"# {(specific or headings)[-1]}\n\n{text}" if headings else text
