"""A paragraph of an encyclopedia as a case ⟨question, support, entities, answer⟩, by one rule.

The rule reads the paragraph and its title alone, and no question or label: it is the same for every
paragraph, whether a question needs it or not.

- support: the paragraph.
- answer: its first sentence.
- entities: the title, then what title and paragraph name.
- question: the question that the first sentence answers, by its form: “When was T founded?” of
  a first sentence such as “T was founded in 1926”; “Who is T?” or “What is T?” of one such as “T
  (born 1980) is a singer”; “What happened to T in 1992?” of one that begins with a time; else
  “What is known about T?”. T is the title.
"""

from __future__ import annotations

import re

from casewright.domains.legal.cases import qa_case
from casewright.domains.legal.entities import extract_entities
from casewright.finetune.judge_sets.paragraphs import Paragraph
from casewright.stores import Case

#: Most words of a first sentence's subject.
LONGEST_SUBJECT = 12
#: Fewest words of a sentence: a shorter text is an abbreviation or a heading.
SHORTEST_SENTENCE = 4

_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s+[\"'“‘(\[]?[A-Z0-9])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Rev|Hon|Gen|Col|Lt|Capt|Sgt|No|Vol|vs|Inc|Ltd|Co|c|ca|née)"
    r"|\b[A-Z])\.$"
)
_PARENTHESES = re.compile(r"\s*\([^()]*\)")
_COPULA = re.compile(r"^(?P<subject>.+?)(?:,.*?)?\s(?P<verb>is|are|was|were)\s(?P<rest>.+)$")
_DATED = re.compile(
    r"^(?P<done>\w+(?:ed|born|built|made|held|won|written|sung|set|led))\b"
    r"[^,;.]*?\b(?:in|on|between|from)\s(?:[A-Z][a-z]+\s)?(?:\d{1,2}\s)?(?:[A-Z][a-z]+\s)?\d{4}\b"
)
_LIFE = re.compile(r"\([^()]*?(?:\bborn\b|\bdied\b|\d{4}\s*(?:–|-+|—)\s*[^()]*\d{4})[^()]*\)")
_PERSONAL = re.compile(r"[.!?][\"'”’)\]]*\s(?:He|She|His|Her)\s")
_TIME = re.compile(r"^(?P<time>(?:In|On|During|Since|By|After|Before|From)\s[^,]{0,40}\d{4}s?),")
_WORD = re.compile(r"\w+")


def paragraph_case(paragraph: Paragraph) -> Case:
    """Return a paragraph as a case, by the rule above."""
    title, text = paragraph
    named = dict.fromkeys([title, *extract_entities(f"{title}. {text}")])
    entities = [entity for entity in named if entity]
    return qa_case(paragraph_question(paragraph), text, entities, first_sentence(text), key=title)


def first_sentence(text: str) -> str:
    """Return the text up to the first end of a sentence; all of it where there is none."""
    for end in _SENTENCE_END.finditer(text):
        sentence = text[: end.end()]
        whole = len(sentence.split()) >= SHORTEST_SENTENCE
        if whole and not _ABBREVIATED.search(text[: end.start() + 1]):
            return sentence
    return text


def paragraph_question(paragraph: Paragraph) -> str:
    """Return the question that the paragraph's first sentence answers, by its form."""
    title, text = paragraph
    sentence = first_sentence(text)
    plain = _PARENTHESES.sub("", sentence)
    copula = _COPULA.match(plain)
    if copula and _is_title(copula["subject"], title):
        dated = _DATED.match(copula["rest"])
        if dated:
            return f"When {copula['verb']} {title} {dated['done']}?"
        person = _LIFE.search(sentence) or _PERSONAL.search(text)
        return f"{'Who' if person else 'What'} {copula['verb']} {title}?"
    time = _TIME.match(plain)
    if time:
        return f"What happened to {title} {time['time'][0].lower()}{time['time'][1:]}?"
    return f"What is known about {title}?"


def _is_title(subject: str, title: str) -> bool:
    """Return whether a subject is the title's: they share a word, and the subject is short."""
    words = _WORD.findall(subject.lower())
    return len(words) <= LONGEST_SUBJECT and not set(words).isdisjoint(
        _WORD.findall(_PARENTHESES.sub("", title).lower())
    )
