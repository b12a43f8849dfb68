"""Check of an analysis against the engine's figures and the board.

A statement is about the last play that the text names before it, its subject.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from casewright_backgammon.play_text import parse_play
from casewright_backgammon.position import HOME, Position

#: Tolerances of equities and percentages: figures are rounded, so a difference of two figures may
#: be off by one in the last digit.
_EQUITY, _PERCENT = 0.0011, 0.11
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
#: Words before an effect that make it negated, hypothetical, later, or the opponent's.
_NOT = re.compile(
    r"\b(?:not|without|fails?|instead|rather|neither|nor|never|cannot|unlike|than|if|could|would|"
    r"might|next|later|threat\w*|opponent|to)\b|n't\b"
)
#: Words in sentences about a later or hypothetical roll.
_OTHER_ROLL = re.compile(r"\b(?:if|next|later|after|rolls|such as|like)\b", re.IGNORECASE)
_POINTS = r"the ((?:bar|\d+)(?:(?:, | and )(?:bar|\d+))*) points?\b"


@dataclass(slots=True)
class _Check:
    """The state of a check: the decision, and the flaws found in the text so far.

    ``ranks`` maps the positions after the candidates to their ranks; ``features`` is a cache.
    """

    decision: Decision
    flaws: list[str] = field(default_factory=list)
    ranks: dict[Position, int] = field(default_factory=dict)
    features: dict[Position, PlayFeatures] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rank in range(len(self.decision.candidates)):
            self.ranks.setdefault(self.decision.after(rank), rank)

    def candidates(self, afters: Sequence[Position]) -> list[AnalysedPlay]:
        ranks = [self.ranks[after] for after in afters if after in self.ranks]
        return [self.decision.candidates[rank] for rank in ranks]

    def features_of(self, after: Position) -> PlayFeatures:
        if after not in self.features:
            self.features[after] = play_features(self.decision.position, after)
        return self.features[after]


#: A play in a sentence: the index of its first character, and the position after the play.
_Mention = tuple[int, Position]


def analysis_flaws(text: str, decision: Decision) -> list[str]:
    """Return the flaws of an analysis, each as a sentence.

    The check covers the best play, all named plays, equities (figures with a sign), equity losses
    (without a sign), percentages, the race, hitting rolls, names of errors, and effects of plays.
    """
    check = _Check(decision)
    _check_best(text, check)
    # A forced play is the subject of every sentence.
    last_play = decision.after(0) if len(decision.candidates) == 1 else None
    for sentence in _SENTENCE.split(text):
        mentions = list(_mentions(sentence, check))
        _check_sentence(sentence, mentions, last_play, check)
        if mentions:
            last_play = mentions[-1][1]
    return check.flaws


def _check_best(text: str, check: _Check) -> None:
    best = best_play_of(text)
    if best is None:
        check.flaws.append(f'It names no play after "{BEST_PLAY}".')
        return
    try:
        after, _ = parse_play(check.decision.position, best)
    except InputError:
        # ``_mentions`` reports that the play cannot be made.
        return
    # Plays with the same equity are equally good.
    if not any(play.equity >= check.decision.best.equity for play in check.candidates([after])):
        check.flaws.append(
            f"The best play is {check.decision.best.play}, not {best}, by the engine."
        )


def _mentions(sentence: str, check: _Check) -> Iterator[_Mention]:
    """Yield the plays in a sentence; add flaws for plays that are not possible."""
    for match in _PLAY.finditer(sentence):
        play = match[0]
        try:
            after, _ = parse_play(check.decision.position, play)
        except InputError as error:
            check.flaws.append(f"The play {play} cannot be made: {error}.")
            continue
        legal = legal_plays(check.decision.position, check.decision.dice)
        if after in check.ranks or any(after == other.after for other in legal):
            yield match.start(), after
            continue
        # A part of a play, as in "6/5 makes the point", is allowed.
        steps = set(play.replace("*", "").split())
        candidates = check.decision.candidates
        if not any(steps <= set(other.play.replace("*", "").split()) for other in candidates):
            check.flaws.append(f"The play {play} is not legal.")


def _check_sentence(
    sentence: str, mentions: list[_Mention], last_play: Position | None, check: _Check
) -> None:
    """Check a sentence; ``last_play`` is the last play that earlier sentences name."""

    def subjects(start: int) -> list[Position]:
        """Return the positions after the plays that may be the subject of words at an index."""
        before = [after for index, after in mentions if index < start]
        if before:
            return before[-1:]
        # Before any mention, the subject is the last play of earlier sentences, or the next play.
        following = [after for _, after in mentions[:1]]
        return following if last_play is None else [last_play, *following]

    def figure_subjects(start: int) -> list[Position]:
        # A figure after the best play may be its lead over the next play in the sentence.
        positions = subjects(start)
        following = [after for index, after in mentions if index > start][:1]
        return positions + following if positions[:1] == [check.decision.after(0)] else positions

    _check_situation(sentence, check)
    masked = _PLAY.sub(lambda match: "_" * len(match[0]), sentence)
    start = 0
    for end in [*(match.end() for match in _CLAUSE.finditer(masked)), len(masked)]:
        clause = masked[start:end]
        for match in _FIGURE.finditer(clause):
            _check_figure(clause, match, figure_subjects(start + match.start()), check)
        for match in _CHANCE.finditer(clause):
            _check_chance(clause, match, figure_subjects(start + match.start()), check)
        _check_facts(clause, start, subjects, check)
        start = end
    _check_shots(masked, subjects, check)
    _check_names(masked, subjects, check)


def _check_situation(sentence: str, check: _Check) -> None:
    own, other = check.decision.position.pips
    rolls = _ROLL.finditer(_PLAY.sub(" ", sentence))
    for match in () if _OTHER_ROLL.search(sentence) else rolls:
        if sorted(map(int, match.groups())) != sorted(check.decision.dice):
            check.flaws.append(f"The roll is not {match[0]}.")
    for match in _RACE.finditer(sentence):
        lead = int(match[2]) * (1 if match[1] in ("leads", "ahead") else -1)
        if lead != other - own or (match[3] and (int(match[3]), int(match[4])) != (own, other)):
            check.flaws.append(f"The race is {own} pips against {other}, not: {match[0]}")
    for match in _LEVEL.finditer(sentence):
        if not own == other == int(match[1]):
            check.flaws.append(f"The race is {own} pips against {other}, not level at {match[1]}.")


def _check_figure(
    clause: str, match: re.Match[str], subjects: list[Position], check: _Check
) -> None:
    """Compare an equity or equity loss with the figures of the plays that may be its subject."""
    candidates = check.candidates(subjects)
    best = check.decision.best.equity
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
    tolerance = _EQUITY if len(match[2]) == 5 else 0.0051
    if figures and not any(abs(stated - figure) < tolerance for figure in figures):
        check.flaws.append(f"{match[0]} is wrong: of {candidates[0].play} it is {figures[0]:.3f}.")


def _check_chance(
    clause: str, match: re.Match[str], subjects: list[Position], check: _Check
) -> None:
    is_loss = bool(re.search(r"\blos", clause))
    if "backgammon" in clause:
        kind = 4 if is_loss else 2
    elif "gammon" in clause:
        kind = 3 if is_loss else 1
    elif re.search(r"\b(?:win|won|los)", clause):
        kind = 0
    else:
        return
    # There is no figure of lost games: it is 1 minus that of won games.
    is_complement = is_loss and kind == 0
    candidates = check.candidates(subjects)
    best = check.decision.best.chances[kind]
    figures = []
    for candidate in candidates:
        chance = candidate.chances[kind]
        if match[2] == "%":
            figures.append(100 * (1 - chance if is_complement else chance))
        else:
            fewer = bool(re.search(r"\b(?:less|fewer|lower)\b", clause))
            figures.append(100 * (chance - best) * (-1 if fewer != is_complement else 1))
    stated = match[1]
    tolerance = _PERCENT if "." in stated else 0.51
    if figures and not any(abs(float(stated) - figure) < tolerance for figure in figures):
        check.flaws.append(
            f"{match[0]} is wrong in {clause.strip()!r}: of {candidates[0].play} it is "
            f"{figures[0]:.1f}."
        )


def _check_shots(sentence: str, subjects: Callable[[int], list[Position]], check: _Check) -> None:
    for match in _SHOTS.finditer(sentence):
        afters = subjects(match.start())
        if not afters:
            continue
        # A text may or may not count blots in the opponent's home board.
        beyond = (HOME,) if match[4] else (HOME, 0)
        positions = [position.flipped for position in (afters[0], check.decision.after(0))]
        rolls = [[hitting_rolls(position, point) for position in positions] for point in beyond]
        is_right = any(
            int(match[1]) == own and match[3] in (None, str(best)) for own, best in rolls
        )
        if not is_right or match[2] != "36":
            check.flaws.append(f"The count is wrong: {match[0]}.")


def _check_names(sentence: str, subjects: Callable[[int], list[Position]], check: _Check) -> None:
    for match in re.finditer(r"\b(?:an? )?(very bad|bad|doubtful) (?:play|error|move)\b", sentence):
        candidates = check.candidates(subjects(match.start()))
        if candidates:
            lost = round(check.decision.best.equity - candidates[0].equity, 3)
            if error_name(lost) != match[1]:
                check.flaws.append(f"{candidates[0].play} is not {match[1]}: it loses {lost:.3f}.")
    for match in re.finditer(r"worth just as much", sentence):
        candidates = check.candidates(subjects(match.start()))
        if candidates and check.decision.best.equity - candidates[0].equity >= _EQUITY:
            check.flaws.append(f"{candidates[0].play} is worth less than the best play.")


def _check_facts(
    clause: str, start: int, subjects: Callable[[int], list[Position]], check: _Check
) -> None:
    """Compare the effects that a clause attributes to a play with the board."""
    for pattern, holds in _FACTS.items():
        for match in re.finditer(pattern, clause):
            afters = subjects(start + match.start())
            if not afters:
                continue
            words_before = clause[: match.start()]
            negated = bool(re.search(r"\b(?:does not|doesn't|without|fails to)\b", words_before))
            if not negated and _NOT.search(words_before):
                # The clause is about another time or player, or it compares.
                continue
            held = [holds(match, check.features_of(after), after) for after in afters]
            if all(is_held == negated for is_held in held):
                check.flaws.append(f"This does not hold: {clause.strip()!r}.")


#: Returns True if a match holds for a play, from its effects and the position after it.
_Holds = Callable[["re.Match[str]", PlayFeatures, Position], bool]


def _points(match: re.Match[str]) -> set[int]:
    names = re.findall(r"bar|\d+", match[1])
    return {BAR_POINT if name == "bar" else int(name) for name in names}


def _count(match: re.Match[str]) -> int:
    return {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4}.get(match[1], 0)


def _splits(play: PlayFeatures) -> bool:
    return bool(play.anchors_broken) and sum(blot >= BACK for blot in play.blots) > 1


def _brings_out(match: re.Match[str], play: PlayFeatures) -> bool:
    if match[1] == "the last":
        return play.left_back > 0 == play.back
    return play.left_back == _count(match)


_HIT, _MAKE, _BREAK = r"\bhit(?:s|ting)?", r"\bmak(?:es?|ing) ", r"\bbreak(?:s|ing)? "
_NUMBER = "(a|one|two|three|four)"
#: The patterns of effects, each with its check.
_FACTS: Mapping[str, _Holds] = {
    _HIT + r"\b(?! rolls?)": lambda _, play, after: play.hits > 0,
    _HIT + " (two|three|four) checkers": lambda match, play, _: play.hits == _count(match),
    _HIT + f" (?:loose )?on {_POINTS}": lambda match, play, _: (
        _points(match) <= set(play.hit_points)
    ),
    _HIT + " loose": lambda _, play, after: bool(play.loose_hits),
    _MAKE + _POINTS: lambda match, play, _: _points(match) <= set(play.points_made),
    _MAKE + "the golden anchor": lambda _, play, after: GOLDEN_ANCHOR in play.points_made,
    _MAKE + "an anchor on " + _POINTS: lambda match, play, _: (
        _points(match) <= set(play.anchors_made)
    ),
    _BREAK + _POINTS: lambda match, play, _: _points(match) <= set(play.points_broken),
    r"\bgiv(?:es?|ing) up the anchor on " + _POINTS: lambda match, play, _: (
        _points(match) <= set(play.anchors_broken)
    ),
    r"\bsplit(?:s|ting)? the back checkers": lambda _, play, after: _splits(play),
    r"\bslot(?:s|ting)? " + _POINTS: lambda match, play, _: _points(match) <= set(play.slots),
    r"\bunstack(?:s|ing)? the (?:heavy )?(midpoint|\d+)": lambda match, play, _: (
        (13 if match[1] == "midpoint" else int(match[1])) in play.unstacked
    ),
    rf"\bbear(?:s|ing)? off {_NUMBER} checkers?": lambda match, play, _: (
        play.borne_off == _count(match)
    ),
    rf"\benter(?:s|ing)? {_NUMBER} checkers?": lambda match, play, _: play.entered == _count(match),
    _BREAK + "contact": lambda _, play, after: play.breaks_contact,
    r"\brun(?:s|ning)? with (a|two|three|four) back checkers?": lambda match, play, _: (
        play.runs == _count(match)
    ),
    r"\bbring(?:s|ing)? (a|two|three|four|the last) back checkers? out": lambda match, play, _: (
        _brings_out(match, play)
    ),
    r"\bprime (?:of|to) (\d) points?": lambda match, play, _: play.prime == int(match[1]),
    r"\bleav(?:es?|ing) no blots?\b": lambda _, play, after: not play.blots,
    r"\bleav(?:es?|ing) no (?:direct or indirect )?shots?\b": lambda _, play, after: (
        hitting_rolls(after.flipped) == 0
    ),
}
