"""Finds the choices that the description of a parameter lists in words."""

from __future__ import annotations

from dataclasses import replace

import regex as re

from casewright.tools import Parameter, Source

#: Maximum numbers of words in a choice, choices in a list, and characters in a description.
MAX_CHOICE_WORDS, MAX_CHOICES, MAX_DESCRIPTION_CHARACTERS = 3, 16, 400
#: A list at the end of a description: "kind: new, used or both", "one of new and used", "(a|b)".
_LIST = re.compile(
    r"(?:[:(]|\b(?P<of>one|any) of\b|\beither\b)\s*+"
    r"(?:(?P<of>one|any) of\b|either\b)?+:?+(?P<list>[^:()]++)\)?+$",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s*[,;]\s*or\s+|\s*[,;|]\s*|\s+(?:or|/)\s+", re.IGNORECASE)
#: After "one of" or "any of", "and" also separates choices.
_AND_SEPARATOR = re.compile(rf"\s*[,;]\s*and\s+|\s+and\s+|{_SEPARATOR.pattern}", re.IGNORECASE)
#: Signs that a list has alternatives, not examples.
_ALTERNATIVE = re.compile(r"\bor\b|\||\s/\s|\b(?:one|any) of\b|\beither\b", re.IGNORECASE)
_EXAMPLES = re.compile(r"\be\.?g\b|\bi\.?e\b|\bexamples?\b|\bsuch as\b|\betc\b|…|\.\.\.", re.I)
#: Words of remarks and patterns of dates. A part of a list that matches is not a choice.
_REMARK = re.compile(
    r"\b(?:and|as|by|default\w*|empty|in|integer|joined|like|may|none|null|omit\w*|optional|required|"
    r"see|similar|starts?|string|unset|with)\b|\b[DMYHS]{2,4}\b|YYYY",
    re.IGNORECASE,
)
#: Names of kinds of values, which are not choices, as in "where: place or postcode".
_KIND = re.compile(
    r"^(?:an?|the|any|some|its)\s|\b(?:address|age|amount|area|article|author|brand|call|category|"
    r"city|code|colou?r|company|country|customer|date|day|description|destination|district|e?mail|"
    r"event|field|file|floor|hour|id|identifier|isbn|item|keyword|kind|label|language|line|link|"
    r"location|make|model|month|name|node|number|object|part|path|period|person|phone|phrase|place|"
    r"postcode|product|purpose|range|region|room|season|size|sku|span|street|subject|surname|tag|"
    r"text|theme|thing|time|title|topic|town|trip|type|url|user|username|value|village|week|"
    r"weekday|word|year|zip)(?:e?s)?\b",
    re.IGNORECASE,
)
_QUOTES = "\"'`“”‘’«»"


def with_listed_choices(parameter: Parameter) -> Parameter:
    """Move listed choices from a parameter's description to its ``choices``; return the parameter.

    Tools of requests and OpenAPI files often list a parameter's values only in the description.
    Other values stay valid. The parameter is returned unchanged if it has choices or takes no text,
    or if its description does not list two or more alternatives.
    """
    if parameter.choices or Source.LITERAL not in parameter.sources or not parameter.fits(""):
        return parameter
    text = " ".join(parameter.description.split()).rstrip(". ")
    list_match = _LIST.search(text) if len(text) <= MAX_DESCRIPTION_CHARACTERS else None
    if list_match is None or not _ALTERNATIVE.search(list_match[0]) or _EXAMPLES.search(text):
        return parameter
    separator = _AND_SEPARATOR if list_match["of"] else _SEPARATOR
    choices = [part.strip(_QUOTES + " ") for part in separator.split(list_match["list"])]
    if not (2 <= len(set(choices)) == len(choices) <= MAX_CHOICES) or not all(
        0 < len(choice.split()) <= MAX_CHOICE_WORDS
        and not (_KIND.search(choice) or _REMARK.search(choice))
        for choice in choices
    ):
        return parameter
    text_before_list = text[: list_match.start()].rstrip(" ,;:(")
    return replace(parameter, description=text_before_list, choices=tuple(choices))
