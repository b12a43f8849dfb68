"""Check of an analysis against the engine's figures and the board.

The subject of a statement is the last play that the text names before the statement.
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

#: Tolerances of equities and percentages: the difference of two rounded figures may be wrong by 1
#: in the last digit.
_EQUITY_TOLERANCE, _PERCENT_TOLERANCE = 0.0011, 0.11
_PLAY = re.compile(rf"(?<![\w/.]){STEP}(?: {STEP})*(?![\w/])", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE_END = re.compile(r"[,;:]| and (?!\d+ points?\b)| but | against | while ")
_EQUITY_FIGURE = re.compile(r"(?<![\w.])([+\-\u2212\u2013]?)(\d\.\d{2,3})(?![\d%]| ?%| percent)")
_CHANCE = re.compile(r"(\d{1,3}(?:\.\d+)?) ?(%|percentage points?)")
_RACE = re.compile(
    r"\b(leads|ahead|trails|behind)\b[^.;]{0,40}?\bby (\d+) pips?"
    r"(?:[^.;\d]*?with (\d+) against (\d+))?"
)
_HITTING_ROLLS = re.compile(
    r"(\d+) shots? out of (\d+)(?: against (\d+))?( outside the opponent's home board)?"
)
_VERDICT = re.compile(
    r"\b(?:an? )?(very bad|bad|doubtful) (?:play|error|move)\b|worth just as much"
)
_LEVEL = re.compile(r"race is level at (\d+) pips")
_ROLL = re.compile(r"(?<![\w/.\-])(\d)-(\d)(?![\w/\-])")
#: Words before an effect that is not claimed: negated, hypothetical, later, or the opponent's.
_NOT_CLAIMED = re.compile(
    r"\b(?:not|without|fails?|instead|rather|neither|nor|never|cannot|unlike|than|if|could|would|"
    r"might|next|later|threat\w*|opponent|to)\b|n't\b"
)
#: Words in sentences about a later or hypothetical roll.
_OTHER_ROLL = re.compile(r"\b(?:if|next|later|after|rolls|such as|like)\b", re.IGNORECASE)
_POINTS = r"the ((?:bar|\d+)(?:(?:, | and )(?:bar|\d+))*) points?\b"


@dataclass(frozen=True, slots=True)
class _IndexedDecision:
    """A decision, with ranks and cached effects of plays, each by the position after the play."""

    decision: Decision
    rank_by_position: dict[Position, int] = field(default_factory=dict)
    cached_features: dict[Position, PlayFeatures] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rank in range(len(self.decision.candidates)):
            self.rank_by_position.setdefault(self.decision.after(rank), rank)

    def candidates(self, afters: Sequence[Position]) -> list[AnalysedPlay]:
        """Return the candidates after which the position is one of ``afters``."""
        ranks = [self.rank_by_position[after] for after in afters if after in self.rank_by_position]
        return [self.decision.candidates[rank] for rank in ranks]

    def features_of(self, after: Position) -> PlayFeatures:
        if after not in self.cached_features:
            self.cached_features[after] = play_features(self.decision.position, after)
        return self.cached_features[after]


#: A play in a sentence: the index of its first character, and the position after the play.
_Mention = tuple[int, Position]
#: Returns the plays that the words at an index may be about, each as the position after the play.
_Subjects = Callable[[int], list[Position]]


def analysis_flaws(text: str, decision: Decision) -> list[str]:
    """Return the flaws of an analysis, each as a sentence.

    The check covers the best play, all named plays, equities (figures with a sign), equity losses
    (without a sign), percentages, the race, hitting rolls, names of errors, and effects of plays.
    """
    indexed = _IndexedDecision(decision)
    flaws = list(_best_play_flaws(text, indexed))
    # A forced play is the subject of every sentence.
    last_after = decision.after(0) if len(decision.candidates) == 1 else None
    for sentence in _SENTENCE_END.split(text):
        mentions, play_flaws = _named_plays(sentence, indexed)
        flaws += [*play_flaws, *_sentence_flaws(sentence, mentions, last_after, indexed)]
        if mentions:
            last_after = mentions[-1][1]
    return flaws


def _best_play_flaws(text: str, indexed: _IndexedDecision) -> Iterator[str]:
    named = best_play_of(text)
    if named is None:
        yield f'It names no play after "{BEST_PLAY}".'
        return
    try:
        after, _ = parse_play(indexed.decision.position, named)
    except InputError:
        # ``_named_plays`` reports a play that cannot be made.
        return
    # Plays with the same equity are equally good.
    best = indexed.decision.best
    if not any(play.equity >= best.equity for play in indexed.candidates([after])):
        yield f"By the engine, the best play is {best.play}, not {named}."


def _named_plays(sentence: str, indexed: _IndexedDecision) -> tuple[list[_Mention], list[str]]:
    """Return the legal plays that a sentence names, and the flaws of the impossible ones."""
    mentions, flaws = [], []
    for match in _PLAY.finditer(sentence):
        play = match[0]
        try:
            after, _ = parse_play(indexed.decision.position, play)
        except InputError as error:
            flaws.append(f"The play {play} cannot be made: {error}.")
            continue
        legal = legal_plays(indexed.decision.position, indexed.decision.dice)
        if after in indexed.rank_by_position or any(after == other.after for other in legal):
            mentions.append((match.start(), after))
            continue
        # A text may name a part of a play, as in "6/5 makes the point".
        steps = set(play.replace("*", "").split())
        candidates = indexed.decision.candidates
        if not any(steps <= set(other.play.replace("*", "").split()) for other in candidates):
            flaws.append(f"The play {play} is not legal.")
    return mentions, flaws


def _sentence_flaws(
    sentence: str, mentions: list[_Mention], last_after: Position | None, indexed: _IndexedDecision
) -> Iterator[str]:
    """Yield a sentence's flaws; ``last_after`` is the position after the last play before it."""

    def subjects(start: int) -> list[Position]:
        before = [after for index, after in mentions if index < start]
        if before:
            return before[-1:]
        # Before any mention, the subject is the last play of earlier sentences, or the next play.
        following = [after for _, after in mentions[:1]]
        return following if last_after is None else [last_after, *following]

    def figure_subjects(start: int) -> list[Position]:
        # A figure after the best play may be its lead over the play that the sentence names next.
        positions = subjects(start)
        following = [after for index, after in mentions if index > start][:1]
        return positions + following if positions[:1] == [indexed.decision.after(0)] else positions

    yield from _situation_flaws(sentence, indexed)
    masked = _PLAY.sub(lambda match: "_" * len(match[0]), sentence)
    start = 0
    for end in [*(match.end() for match in _CLAUSE_END.finditer(masked)), len(masked)]:
        clause = masked[start:end]
        for pattern, figure_flaws in ((_EQUITY_FIGURE, _equity_flaws), (_CHANCE, _chance_flaws)):
            for match in pattern.finditer(clause):
                candidates = indexed.candidates(figure_subjects(start + match.start()))
                if candidates:
                    yield from figure_flaws(clause, match, candidates, indexed.decision.best)
        yield from _effect_flaws(clause, start, subjects, indexed)
        start = end
    yield from _shot_flaws(masked, subjects, indexed)
    yield from _verdict_flaws(masked, subjects, indexed)


def _situation_flaws(sentence: str, indexed: _IndexedDecision) -> Iterator[str]:
    """Yield the flaws of statements about the roll and the race."""
    own, other = indexed.decision.position.pips
    is_this_roll = not _OTHER_ROLL.search(sentence)
    for match in _ROLL.finditer(_PLAY.sub(" ", sentence)):
        if is_this_roll and sorted(map(int, match.groups())) != sorted(indexed.decision.dice):
            yield f"The roll is not {match[0]}."
    for match in _RACE.finditer(sentence):
        lead = int(match[2]) * (1 if match[1] in ("leads", "ahead") else -1)
        if lead != other - own or (match[3] and (int(match[3]), int(match[4])) != (own, other)):
            yield f"The race is {own} pips against {other}, not: {match[0]}"
    for match in _LEVEL.finditer(sentence):
        if not own == other == int(match[1]):
            yield f"The race is {own} pips against {other}, not level at {match[1]}."


def _equity_flaws(
    clause: str, match: re.Match[str], candidates: Sequence[AnalysedPlay], best: AnalysedPlay
) -> Iterator[str]:
    """Yield a flaw if a stated equity or equity loss is that of no candidate."""
    sign, stated = match[1], float(match[2])
    if sign:
        figures = [candidate.equity for candidate in candidates]
        stated = stated if sign == "+" else -stated
    else:  # an equity loss; in some clauses perhaps an equity or a chance
        figures = [best.equity - candidate.equity for candidate in candidates]
        if re.search(r"equity|worth|value", clause):
            figures += [candidate.equity for candidate in candidates]
        if re.search(r"win|won|gammon|chance|probab", clause):
            figures += [chance for candidate in candidates for chance in candidate.chances]
            figures += [1 - candidate.chances[0] for candidate in candidates]
    tolerance = _EQUITY_TOLERANCE if len(match[2]) == 5 else 0.0051  # three decimals, or two
    if not any(abs(stated - figure) < tolerance for figure in figures):
        yield f"{match[0]} is wrong: of {candidates[0].play} it is {figures[0]:.3f}."


def _chance_flaws(
    clause: str, match: re.Match[str], candidates: Sequence[AnalysedPlay], best: AnalysedPlay
) -> Iterator[str]:
    """Yield a flaw if a stated percentage is that of no candidate."""
    is_loss = bool(re.search(r"\blos", clause))
    # Indices of ``AnalysedPlay.chances``.
    if "backgammon" in clause:
        index = 4 if is_loss else 2
    elif "gammon" in clause:
        index = 3 if is_loss else 1
    elif re.search(r"\b(?:win|won|los)", clause):
        index = 0
    else:
        return
    # ``chances`` has no share of lost games, which is 1 minus the share of won games.
    is_complement = is_loss and index == 0
    chances = [candidate.chances[index] for candidate in candidates]
    if match[2] == "%":
        figures = [100 * (1 - chance if is_complement else chance) for chance in chances]
    else:  # percentage points, the difference from the best play
        is_fewer = bool(re.search(r"\b(?:less|fewer|lower)\b", clause))
        sign = -1 if is_fewer != is_complement else 1
        figures = [100 * (chance - best.chances[index]) * sign for chance in chances]
    tolerance = _PERCENT_TOLERANCE if "." in match[1] else 0.51
    if not any(abs(float(match[1]) - figure) < tolerance for figure in figures):
        yield (
            f"{match[0]} is wrong in {clause.strip()!r}: of {candidates[0].play} it is "
            f"{figures[0]:.1f}."
        )


def _shot_flaws(sentence: str, subjects: _Subjects, indexed: _IndexedDecision) -> Iterator[str]:
    """Yield the flaws of numbers of hitting rolls."""
    for match in _HITTING_ROLLS.finditer(sentence):
        afters = subjects(match.start())
        if not afters:
            continue
        # A text may or may not count blots in the opponent's home board.
        limits = (HOME,) if match[4] else (HOME, 0)
        positions = [after.flipped for after in (afters[0], indexed.decision.after(0))]
        is_right = False
        for limit in limits:
            count, best_count = (hitting_rolls(position, limit) for position in positions)
            is_right |= int(match[1]) == count and match[3] in (None, str(best_count))
        if not is_right or match[2] != "36":
            yield f"The count is wrong: {match[0]}."


def _verdict_flaws(sentence: str, subjects: _Subjects, indexed: _IndexedDecision) -> Iterator[str]:
    """Yield the flaws of names of errors, and of statements that a play is as good as the best."""
    for match in _VERDICT.finditer(sentence):
        for candidate in indexed.candidates(subjects(match.start()))[:1]:
            loss = indexed.decision.best.equity - candidate.equity
            if match[1] is None and loss >= _EQUITY_TOLERANCE:
                yield f"{candidate.play} is worth less than the best play."
            elif match[1] and error_name(round(loss, 3)) != match[1]:
                yield f"{candidate.play} is not {match[1]}: it loses {round(loss, 3):.3f}."


def _effect_flaws(
    clause: str, start: int, subjects: _Subjects, indexed: _IndexedDecision
) -> Iterator[str]:
    """Yield a flaw for each effect that a clause attributes to a play and the board contradicts."""
    for pattern, holds in _CHECK_BY_EFFECT.items():
        for match in re.finditer(pattern, clause):
            afters = subjects(start + match.start())
            words_before = clause[: match.start()]
            is_negated = bool(re.search(r"\b(?:does not|doesn't|without|fails to)\b", words_before))
            if not afters or (not is_negated and _NOT_CLAIMED.search(words_before)):
                # The clause is about no play, about another time or player, or compares plays.
                continue
            held = [holds(match, indexed.features_of(after), after) for after in afters]
            if all(is_held == is_negated for is_held in held):
                yield f"This does not hold: {clause.strip()!r}."


#: Returns True if the effect in a match holds, for a play's features and the position after it.
_EffectCheck = Callable[["re.Match[str]", PlayFeatures, Position], bool]


def _points_are_in(attribute: str) -> _EffectCheck:
    """Return the check that the points of a match are in an attribute of the features."""

    def holds(match: re.Match[str], play: PlayFeatures, _: Position) -> bool:
        names = re.findall(r"bar|\d+", match[1])
        points = {BAR_POINT if name == "bar" else int(name) for name in names}
        return points <= set(getattr(play, attribute))

    return holds


def _count_is(attribute: str) -> _EffectCheck:
    """Return the check that the number word of a match is the value of an attribute."""
    return lambda match, play, _: bool(getattr(play, attribute) == _NUMBER_BY_WORD[match[1]])


_NUMBER_BY_WORD = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4}
_HIT, _MAKE, _BREAK = r"\bhit(?:s|ting)?", r"\bmak(?:es?|ing) ", r"\bbreak(?:s|ing)? "
_NUMBER_WORD = "(a|one|two|three|four)"
#: The check of each effect, by the pattern of the words for the effect.
_CHECK_BY_EFFECT: Mapping[str, _EffectCheck] = {
    _HIT + r"\b(?! rolls?)": lambda _, play, after: play.hits > 0,
    _HIT + " (two|three|four) checkers": _count_is("hits"),
    _HIT + f" (?:loose )?on {_POINTS}": _points_are_in("hit_points"),
    _HIT + " loose": lambda _, play, after: bool(play.loose_hits),
    _MAKE + _POINTS: _points_are_in("points_made"),
    _MAKE + "the golden anchor": lambda _, play, after: GOLDEN_ANCHOR in play.points_made,
    _MAKE + "an anchor on " + _POINTS: _points_are_in("anchors_made"),
    _BREAK + _POINTS: _points_are_in("points_broken"),
    r"\bgiv(?:es?|ing) up the anchor on " + _POINTS: _points_are_in("anchors_broken"),
    r"\bsplit(?:s|ting)? the back checkers": lambda _, play, after: (
        bool(play.anchors_broken) and sum(blot >= BACK for blot in play.blots) > 1
    ),
    r"\bslot(?:s|ting)? " + _POINTS: _points_are_in("slots"),
    r"\bunstack(?:s|ing)? the (?:heavy )?(midpoint|\d+)": lambda match, play, _: (
        (13 if match[1] == "midpoint" else int(match[1])) in play.unstacked
    ),
    rf"\bbear(?:s|ing)? off {_NUMBER_WORD} checkers?": _count_is("borne_off"),
    rf"\benter(?:s|ing)? {_NUMBER_WORD} checkers?": _count_is("entered"),
    _BREAK + "contact": lambda _, play, after: play.breaks_contact,
    r"\brun(?:s|ning)? with (a|two|three|four) back checkers?": _count_is("runs"),
    r"\bbring(?:s|ing)? (a|two|three|four) back checkers? out": _count_is("left_back"),
    r"\bbring(?:s|ing)? the last back checkers? out": lambda _, play, after: (
        play.left_back > 0 and play.back == 0
    ),
    r"\bprime (?:of|to) (\d) points?": lambda match, play, _: play.prime == int(match[1]),
    r"\bleav(?:es?|ing) no blots?\b": lambda _, play, after: not play.blots,
    r"\bleav(?:es?|ing) no (?:direct or indirect )?shots?\b": lambda _, play, after: (
        hitting_rolls(after.flipped) == 0
    ),
}
