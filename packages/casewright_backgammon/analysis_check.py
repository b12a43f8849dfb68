"""Check of an analysis against the engine's figures and the board.

A statement about a play belongs to the last play that the text names before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from casewright.errors import InputError
from casewright_backgammon.analysis import BEST_PLAY, STEP, best_play_of, error_name
from casewright_backgammon.decision import AnalysedPlay, Decision
from casewright_backgammon.moves import legal_plays
from casewright_backgammon.play_features import (
    BACK,
    BAR_POINT,
    GOLDEN_ANCHOR,
    PlayFeatures,
    hitting_rolls,
    play_features,
)
from casewright_backgammon.play_text import written_play
from casewright_backgammon.position import HOME, Position

#: Tolerances: figures have three digits, and the difference of two figures may be off by one digit.
_EQUITY = 0.0011
_PERCENT = 0.11
_PLAY = re.compile(rf"(?<![\w/.]){STEP}(?: {STEP})*(?![\w/])", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE = re.compile(r"[,;:]| and (?!\d+ points?\b)| but | against | while ")
_FIGURE = re.compile(r"(?<![\w.])([+\-\u2212\u2013]?)(\d\.\d{2,3})(?![\d%]| ?%| percent)")
_CHANCE = re.compile(r"(\d{1,3}(?:\.\d+)?) ?(%|percentage points?)")
_RACE = re.compile(
    r"\b(leads|ahead|trails|behind)\b[^.;]{0,40}?\bby (\d+) pips?"
    r"(?:[^.;\d]*?with (\d+) against (\d+))?"
)
_SHOTS = re.compile(
    r"(\d+) shots? out of (\d+)(?: against (\d+))?( outside the opponent's home board)?"
)
_LEVEL = re.compile(r"race is level at (\d+) pips")
_ROLL = re.compile(r"(?<![\w/.\-])(\d)-(\d)(?![\w/\-])")
_NOT = re.compile(
    r"\b(?:not|without|fails?|instead|rather|neither|nor|never|cannot|unlike|than|if|could|would|"
    r"might|next|later|threat\w*|opponent|to)\b|n't\b"
)
_ELSE = re.compile(r"\b(?:if|next|later|after|rolls|such as|like)\b", re.IGNORECASE)
_POINTS = r"the ((?:bar|\d+)(?:(?:, | and )(?:bar|\d+))*) points?\b"


@dataclass(slots=True)
class _Checked:
    """A decision, and the flaws in the text about it."""

    decision: Decision
    flaws: list[str] = field(default_factory=list)
    known: dict[Position, int] = field(default_factory=dict)
    features: dict[Position, PlayFeatures] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rank in range(len(self.decision.candidates)):
            self.known.setdefault(self.decision.after(rank), rank)

    def candidates(self, afters: Sequence[Position]) -> list[AnalysedPlay]:
        return [
            self.decision.candidates[self.known[after]] for after in afters if after in self.known
        ]

    def of(self, after: Position) -> PlayFeatures:
        if after not in self.features:
            self.features[after] = play_features(self.decision.position, after)
        return self.features[after]


#: A play in a sentence: the index of its first character, and the position after the play.
_Named = tuple[int, Position]


def analysis_flaws(text: str, decision: Decision) -> list[str]:
    """Return the flaws of an analysis, each as a sentence.

    The check covers the best play, all named plays, equities (with a sign), equity losses (without
    a sign), percentages, the race, hitting rolls, names of errors, and effects of plays.
    """
    checked = _Checked(decision)
    _check_best(text, checked)
    # A forced play is the subject of every sentence.
    last = decision.after(0) if len(decision.candidates) == 1 else None
    for sentence in _SENTENCE.split(text):
        named = list(_plays(sentence, checked))
        _check_sentence(sentence, named, last, checked)
        if named:
            last = named[-1][1]
    return checked.flaws


def _check_best(text: str, checked: _Checked) -> None:
    best = best_play_of(text)
    if best is None:
        checked.flaws.append(f'It names no play after "{BEST_PLAY}".')
        return
    try:
        after, _ = written_play(checked.decision.position, best)
    except InputError:
        # ``_plays`` reports it.
        return
    # Plays with the same equity are equally good.
    if not any(play.equity >= checked.decision.best.equity for play in checked.candidates([after])):
        checked.flaws.append(
            f"The best play is {checked.decision.best.play}, not {best}, by the engine."
        )


def _plays(sentence: str, checked: _Checked) -> Iterator[_Named]:
    for match in _PLAY.finditer(sentence):
        play = match[0]
        try:
            after, _ = written_play(checked.decision.position, play)
        except InputError as error:
            checked.flaws.append(f"The play {play} cannot be made: {error}.")
            continue
        if after not in checked.known and not _is_legal(after, checked.decision):
            # A part of a play, as in "6/5 makes the point", is allowed.
            if not _is_part(play, checked.decision):
                checked.flaws.append(f"The play {play} is not legal.")
            continue
        yield match.start(), after


def _is_legal(after: Position, decision: Decision) -> bool:
    return any(play.after == after for play in legal_plays(decision.position, decision.dice))


def _is_part(play: str, decision: Decision) -> bool:
    parts = [text.replace("*", "") for text in play.split()]
    return any(
        all(part in candidate.play.replace("*", "").split() for part in parts)
        for candidate in decision.candidates
    )


def _check_sentence(
    sentence: str, named: list[_Named], last: Position | None, checked: _Checked
) -> None:
    def subjects(start: int) -> list[Position]:
        before = [after for at, after in named if at < start]
        if before:
            return before[-1:]
        # Before any play, the subject is the last play of the previous sentence, or the next play.
        following = [after for _, after in named[:1]]
        return following if last is None else [last, *following]

    def compared(start: int) -> list[Position]:
        # A figure after the best play may be its lead over the next named play.
        positions = subjects(start)
        after = [position for at, position in named if at > start][:1]
        return positions + after if positions[:1] == [checked.decision.after(0)] else positions

    _check_situation(sentence, checked)
    bare = _PLAY.sub(lambda match: "_" * len(match[0]), sentence)
    start = 0
    for end in [*(match.end() for match in _CLAUSE.finditer(bare)), len(bare)]:
        clause = bare[start:end]
        for match in _FIGURE.finditer(clause):
            _check_figure(clause, match, compared(start + match.start()), checked)
        for match in _CHANCE.finditer(clause):
            _check_chance(clause, match, compared(start + match.start()), checked)
        _check_facts(clause, start, subjects, checked)
        start = end
    _check_shots(bare, subjects, checked)
    _check_names(bare, subjects, checked)


def _check_situation(sentence: str, checked: _Checked) -> None:
    own, other = checked.decision.position.pips
    for match in _ROLL.finditer(_PLAY.sub(" ", sentence)):
        if _ELSE.search(sentence):
            # The sentence is about a later or a hypothetical roll.
            continue
        if sorted(map(int, match.groups())) != sorted(checked.decision.dice):
            checked.flaws.append(f"The roll is not {match[0]}.")
    for match in _RACE.finditer(sentence):
        lead = int(match[2]) * (1 if match[1] in ("leads", "ahead") else -1)
        if lead != other - own or (match[3] and (int(match[3]), int(match[4])) != (own, other)):
            checked.flaws.append(f"The race is {own} pips against {other}, not: {match[0]}")
    for match in _LEVEL.finditer(sentence):
        if not own == other == int(match[1]):
            checked.flaws.append(
                f"The race is {own} pips against {other}, not level at {match[1]}."
            )


def _check_figure(
    clause: str, match: re.Match[str], subjects: list[Position], checked: _Checked
) -> None:
    """Compare an equity or equity loss with the figures of the plays that it may belong to."""
    candidates = checked.candidates(subjects)
    best = checked.decision.best.equity
    sign, stated = match[1], float(match[2])
    if sign:
        figures = [candidate.equity for candidate in candidates]
        stated = stated if sign == "+" else -stated
    else:
        figures = [best - candidate.equity for candidate in candidates]
        if re.search(r"equity|worth|value", clause):
            figures += [candidate.equity for candidate in candidates]
        if re.search(r"win|won|gammon|chance|probab", clause):
            figures += [chance for candidate in candidates for chance in candidate.chances]
            figures += [1 - candidate.chances[0] for candidate in candidates]
    room = _EQUITY if len(match[2]) == 5 else 0.0051
    if figures and not any(abs(stated - figure) < room for figure in figures):
        checked.flaws.append(
            f"{match[0]} is wrong: of {candidates[0].play} it is {figures[0]:.3f}."
        )


def _check_chance(
    clause: str, match: re.Match[str], subjects: list[Position], checked: _Checked
) -> None:
    lost = bool(re.search(r"\blos", clause))
    if "backgammon" in clause:
        kind = 4 if lost else 2
    elif "gammon" in clause:
        kind = 3 if lost else 1
    elif re.search(r"\b(?:win|won|los)", clause):
        kind = 0
    else:
        return
    of_losses = lost and kind == 0
    candidates = checked.candidates(subjects)
    best = checked.decision.best.chances[kind]
    figures = []
    for candidate in candidates:
        chance = candidate.chances[kind]
        if match[2] == "%":
            figures.append(100 * (1 - chance if of_losses else chance))
        else:
            fewer = bool(re.search(r"\b(?:less|fewer|lower)\b", clause))
            apart = chance - best if not of_losses else best - chance
            figures.append(100 * (-apart if fewer else apart))
    stated = match[1]
    room = _PERCENT if "." in stated else 0.51
    if figures and not any(abs(float(stated) - figure) < room for figure in figures):
        checked.flaws.append(
            f"{match[0]} is wrong in {clause.strip()!r}: of {candidates[0].play} it is "
            f"{figures[0]:.1f}."
        )


def _check_shots(
    sentence: str, subjects: Callable[[int], list[Position]], checked: _Checked
) -> None:
    for match in _SHOTS.finditer(sentence):
        after = subjects(match.start())
        if not after:
            continue
        # Texts often ignore blots in the opponent's home board.
        counts = (HOME,) if match[4] else (HOME, 0)
        best = checked.decision.after(0)
        right = any(
            int(match[1]) == hitting_rolls(after[0].flipped, beyond)
            and int(match[3] or hitting_rolls(best.flipped, beyond))
            == hitting_rolls(best.flipped, beyond)
            for beyond in counts
        )
        if not right or match[2] != "36":
            checked.flaws.append(f"The count is wrong: {match[0]}.")


def _check_names(
    sentence: str, subjects: Callable[[int], list[Position]], checked: _Checked
) -> None:
    for match in re.finditer(r"\b(?:an? )?(very bad|bad|doubtful) (?:play|error|move)\b", sentence):
        candidates = checked.candidates(subjects(match.start()))
        if candidates:
            lost = round(checked.decision.best.equity - candidates[0].equity, 3)
            if error_name(lost) != match[1]:
                checked.flaws.append(
                    f"{candidates[0].play} is not {match[1]}: it loses {lost:.3f}."
                )
    for match in re.finditer(r"worth just as much", sentence):
        candidates = checked.candidates(subjects(match.start()))
        if candidates and checked.decision.best.equity - candidates[0].equity >= _EQUITY:
            checked.flaws.append(f"{candidates[0].play} is worth less than the best play.")


def _check_facts(
    clause: str, start: int, subjects: Callable[[int], list[Position]], checked: _Checked
) -> None:
    """Compare the effects that a clause attributes to a play with the board."""
    for pattern, holds in _FACTS:
        for match in pattern.finditer(clause):
            after = subjects(start + match.start())
            if not after:
                continue
            said = clause[: match.start()]
            negated = bool(re.search(r"\b(?:does not|doesn't|without|fails to)\b", said))
            if not negated and _NOT.search(said):
                # The clause is about another time or player, or is a comparison.
                continue
            if all(holds(match, position, checked) == negated for position in after):
                checked.flaws.append(f"This does not hold: {clause.strip()!r}.")


_Holds = Callable[["re.Match[str]", Position, _Checked], bool]


def _numbers(text: str) -> set[int]:
    return {
        BAR_POINT if number == "bar" else int(number) for number in re.findall(r"bar|\d+", text)
    }


def _count(word: str) -> int:
    return {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4}.get(word, 0)


def _hit_points(after: Position, checked: _Checked) -> set[int]:
    before = checked.decision.position.other
    return {24 - index for index in range(24) if after.other[index] < before[index]}


def _splits(after: Position, checked: _Checked) -> bool:
    features = checked.of(after)
    return bool(features.anchors_broken) and sum(blot >= BACK for blot in features.blots) > 1


def _fact(pattern: str, holds: _Holds) -> tuple[re.Pattern[str], _Holds]:
    return re.compile(pattern), holds


_MAKE, _BREAK = r"\bmak(?:es?|ing) ", r"\bbreak(?:s|ing)? "
#: Patterns of effects, each with its check on the board.
_FACTS: tuple[tuple[re.Pattern[str], _Holds], ...] = (
    _fact(r"\bhit(?:s|ting)?\b(?! rolls?)", lambda _, after, to: to.of(after).hits > 0),
    _fact(
        r"\bhit(?:s|ting)? (two|three|four) checkers",
        lambda match, after, to: to.of(after).hits == _count(match[1]),
    ),
    _fact(
        rf"\bhit(?:s|ting)? (?:loose )?on {_POINTS}",
        lambda match, after, to: _numbers(match[1]) <= _hit_points(after, to),
    ),
    _fact(r"\bhit(?:s|ting)? loose", lambda _, after, to: bool(to.of(after).loose)),
    _fact(
        _MAKE + _POINTS,
        lambda match, after, to: _numbers(match[1]) <= set(to.of(after).points_made),
    ),
    _fact(
        _MAKE + r"the golden anchor", lambda _, after, to: GOLDEN_ANCHOR in to.of(after).points_made
    ),
    _fact(
        _MAKE + r"an anchor on " + _POINTS,
        lambda match, after, to: _numbers(match[1]) <= set(to.of(after).anchors_made),
    ),
    _fact(
        _BREAK + _POINTS, lambda match, after, to: _numbers(match[1]) <= set(to.of(after).broken)
    ),
    _fact(
        r"\bgiv(?:es?|ing) up the anchor on " + _POINTS,
        lambda match, after, to: _numbers(match[1]) <= set(to.of(after).anchors_broken),
    ),
    _fact(r"\bsplit(?:s|ting)? the back checkers", lambda _, after, to: _splits(after, to)),
    _fact(
        r"\bslot(?:s|ting)? " + _POINTS,
        lambda match, after, to: _numbers(match[1]) <= set(to.of(after).slots),
    ),
    _fact(
        r"\bunstack(?:s|ing)? the (?:heavy )?(midpoint|\d+)",
        lambda match, after, to: (
            (13 if match[1] == "midpoint" else int(match[1])) in to.of(after).unstacked
        ),
    ),
    _fact(
        r"\bbear(?:s|ing)? off (a|one|two|three|four) checkers?",
        lambda match, after, to: to.of(after).borne_off == _count(match[1]),
    ),
    _fact(
        r"\benter(?:s|ing)? (a|one|two|three|four) checkers?",
        lambda match, after, to: to.of(after).entered == _count(match[1]),
    ),
    _fact(r"\bbreak(?:s|ing)? contact", lambda _, after, to: to.of(after).breaks_contact),
    _fact(
        r"\brun(?:s|ning)? with (a|two|three|four) back checkers?",
        lambda match, after, to: to.of(after).runs == _count(match[1]),
    ),
    _fact(
        r"\bbring(?:s|ing)? (a|two|three|four|the last) back checkers? out",
        lambda match, after, to: (
            to.of(after).left_back > 0 == to.of(after).back
            if match[1] == "the last"
            else to.of(after).left_back == _count(match[1])
        ),
    ),
    _fact(
        r"\bprime (?:of|to) (\d) points?",
        lambda match, after, to: to.of(after).prime == int(match[1]),
    ),
    _fact(r"\bleav(?:es?|ing) no blots?\b", lambda _, after, to: not to.of(after).blots),
    _fact(
        r"\bleav(?:es?|ing) no (?:direct or indirect )?shots?\b",
        lambda _, after, to: hitting_rolls(after.flipped) == 0,
    ),
)
