"""Verb phrases for the effects of a play, and for its differences from the best play."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from casewright_backgammon.decision import Decision
from casewright_backgammon.play_features import (
    BACK,
    BAR_POINT,
    GOLDEN_ANCHOR,
    Phase,
    PlayFeatures,
    hitting_rolls,
    play_features,
)
from casewright_backgammon.position import HOME, POINTS

#: Minimum length of a prime (made points in a row) that a text mentions.
_MIN_PRIME = 4
#: Minimum differences that a text mentions, in hitting rolls and in chances of a win or a gammon.
_MIN_SHOT_DIFFERENCE, _MIN_WIN_DIFFERENCE, _MIN_GAMMON_DIFFERENCE = 3, 0.005, 0.01

#: The word for each number of checkers.
_NUMBER_WORDS = ("no", "a", "two", "three", "four")
#: The first words of a text, by phase.
PHASES: dict[Phase, tuple[str, ...]] = {
    "opening": ("In this opening", "In the opening", "Early in the game"),
    "middle": ("In this middle game", "In the middle game"),
    "holding": ("In this holding game", "In this holding position"),
    "back game": ("In this back game", "With two anchors held in a back game"),
    "contact bear-off": ("With one side home and contact left", "Late in the game, with contact"),
    "race": ("In this race", "In this pure race", "With no contact left"),
    "bear-off": ("In this bear-off", "With no contact left and all checkers home"),
}
_FEWER_WINS = ("wins {} less often", "has {} fewer wins")
_MORE_GAMMON_LOSSES = ("loses a gammon {} more often", "risks {} more gammon losses")
_FEWER_GAMMON_WINS = ("wins a gammon {} less often", "has {} fewer gammon wins")
_OUTSIDE = " outside the opponent's home board"
_IRREGULAR_GERUNDS = {"hit": "hitting", "run": "running", "slot": "slotting", "split": "splitting"}


@dataclass(frozen=True, slots=True)
class Fact:
    """An effect of a play, as a verb phrase."""

    key: str  # the kind of effect and its points, such as "make 5 7"
    verb: str  # the infinitive, such as "make" or "bear off"
    object: str  # the words after the verb
    gain: int = 1  # 1 for a gain, -1 for a cost, 0 for neither

    @property
    def finite(self) -> str:
        """The phrase after the play as subject: ``makes the 5 point``."""
        first, *particle = self.verb.split()
        return " ".join([f"{first}s", *particle, self.object])

    @property
    def infinitive(self) -> str:
        """The phrase after ``does not``: ``make the 5 point``, but only ``hit`` for any hit."""
        return "hit" if self.key == "hit" else f"{self.verb} {self.object}"

    @property
    def gerund(self) -> str:
        """The phrase with a gerund: ``making the 5 point``."""
        first, *particle = self.verb.split()
        gerund = _IRREGULAR_GERUNDS.get(first) or f"{first.removesuffix('e')}ing"
        return " ".join([gerund, *particle, self.object])


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """The effects of a candidate play."""

    features: PlayFeatures  # the effects on the board
    facts: tuple[Fact, ...]  # the effects as phrases, the most important first
    #: Number of the 36 rolls with which the opponent hits a blot outside the opponent's home board.
    shots: int
    has_back_blots: bool  # True if the player has blots in the opponent's home board


def candidate_facts(decision: Decision, rank: int) -> CandidateFacts:
    """Return the effects of a candidate."""
    after = decision.after(rank)
    features = play_features(decision.position, after)
    can_be_hit = any(after.own) and features.contact
    shots = hitting_rolls(after.flipped, HOME) if can_be_hit else 0
    has_back_blots = any(blot >= BACK for blot in features.blots)
    is_safe = not has_back_blots or (can_be_hit and not hitting_rolls(after.flipped))
    facts = _facts(features)
    if features.contact and shots:
        outside = _OUTSIDE if has_back_blots else ""
        facts.append(Fact("shots", "leave", f"{_shots_text(shots)}{outside}", -1))
    elif features.contact and is_safe:
        facts.append(Fact("safe", "leave", "no shot" if features.blots else "no blot"))
    return CandidateFacts(features, tuple(facts), shots, has_back_blots)


def _facts(features: PlayFeatures) -> list[Fact]:
    facts = []
    if features.breaks_contact:
        facts.append(Fact("contact", "break", "contact", 0))
    if features.hits:
        facts.append(_hit_fact(features))
    if features.contact_before:
        facts += [*_point_facts(features), *_back_facts(features)]
    if features.borne_off:
        facts.append(Fact(f"off {features.borne_off}", "bear off", _checkers(features.borne_off)))
    if features.contact_before:
        if features.prime >= _MIN_PRIME and features.prime > features.prime_before:
            facts.append(Fact("prime", "build", f"a prime of {features.prime} points"))
        if features.prime < features.prime_before and features.prime_before >= _MIN_PRIME:
            length = f"{features.prime} point{'' if features.prime == 1 else 's'}"
            facts.append(Fact("shortens", "shorten", f"the prime to {length}", -1))
        for point in features.slots[:1]:
            facts.append(Fact(f"slot {point}", "slot", f"the {_point_text(point)}", 0))
        # The points with heavy stacks at the start of a game; the 13 point is the midpoint.
        for point in [point for point in features.unstacked if point in (6, 8, 13)][:1]:
            stack = "midpoint" if point == 13 else f"heavy {point} point"
            facts.append(Fact(f"unstack {point}", "unstack", f"the {stack}"))
        if features.entered:
            facts.append(Fact("enter", "enter", f"{_checkers(features.entered)} from the bar", 0))
    return facts


def _hit_fact(features: PlayFeatures) -> Fact:
    if features.hits > 1:
        return Fact("hit", "hit", f"{_NUMBER_WORDS[features.hits]} checkers")
    point = features.hit_points[0]
    loose = "loose " if features.loose_hits and point <= HOME else ""
    return Fact("hit", "hit", f"{loose}on the {_point_text(point)}")


def _point_facts(features: PlayFeatures) -> list[Fact]:
    facts = []
    for point in features.anchors_made:
        phrase = f"an anchor on the {point} point"
        phrase = "the golden anchor" if point == GOLDEN_ANCHOR else phrase
        facts.append(Fact(f"make {point}", "make", phrase))
    # Home points and the bar point come first, from the highest.
    made = [point for point in features.points_made if point < BACK]
    made.sort(key=lambda point: (point > BAR_POINT, -point))
    if made:
        facts.append(Fact(_key("make", made), "make", f"the {_points_text(made)}"))
    if features.anchors_broken and sum(blot >= BACK for blot in features.blots) >= 2:
        facts.append(Fact("split", "split", "the back checkers", 0))
    elif features.back:
        # A player without back checkers needs no anchor, and the initial 24 point is no anchor.
        facts += [
            Fact(f"break {point}", "give up", f"the anchor on the {point} point", -1)
            for point in features.anchors_broken
            if point < POINTS
        ]
    broken = [point for point in features.points_broken if point < BACK]
    if broken:
        facts.append(Fact(_key("break", broken), "break", f"the {_points_text(broken)}", -1))
    return facts


def _back_facts(features: PlayFeatures) -> list[Fact]:
    leaving, running = features.left_back, features.runs
    if leaving and not (features.back and running):
        number = _NUMBER_WORDS[leaving] if features.back else "the last"
        phrase = f"{number} back checker{'s' * (leaving > 1)} out of the opponent's home board"
        return [Fact("leave", "bring", phrase)]
    if running:
        phrase = f"with {_NUMBER_WORDS[running]} back checker{'s' * (running > 1)}"
        return [Fact("run", "run", phrase)]
    return []


def missing_gains(play: CandidateFacts, other: CandidateFacts) -> list[Fact]:
    """Return the most important gains of a play that the other play does not have."""
    keys = {fact.key for fact in other.facts}
    points = set(other.features.points_made)
    return [
        fact
        for fact in play.facts
        if fact.gain > 0
        and fact.key.split()[0] in ("hit", "make", "run", "leave")
        and fact.key not in keys
        # A gain of several points is not missing if the other play makes one of them.
        and not (fact.key.startswith("make") and points & _key_points(fact.key))
        # "run" and "leave" are the same gain.
        and not (fact.key in ("run", "leave") and keys & {"run", "leave"})
    ]


def costs(best: CandidateFacts, other: CandidateFacts) -> list[str]:
    """Return the other play's costs that the best play does not have, as finite phrases."""
    best_keys, best_broken = {fact.key for fact in best.facts}, set(best.features.points_broken)
    phrases = [
        fact.finite
        for fact in other.facts
        if fact.gain < 0
        and fact.key != "shots"
        and fact.key not in best_keys
        and not (fact.key.startswith("break") and _key_points(fact.key) <= best_broken)
    ]
    if other.shots >= best.shots + _MIN_SHOT_DIFFERENCE:
        phrases.append(f"leaves {_compared_shots_text(best, other)}")
    return phrases


def merits(best: CandidateFacts, other: CandidateFacts) -> list[str]:
    """Return the other play's gains that the best play does not have, as finite phrases."""
    phrases = [fact.finite for fact in missing_gains(other, best)]
    if other.shots <= best.shots - _MIN_SHOT_DIFFERENCE:
        if other.shots:
            phrases.append(f"leaves {_compared_shots_text(best, other)}")
        else:
            phrases += [fact.finite for fact in other.facts if fact.key == "safe"]
    return phrases


def worse_chances(decision: Decision, rank: int, rng: random.Random) -> list[str]:
    """Return finite phrases on a candidate's chances that are worse than the best play's."""
    best, other = decision.best.chances, decision.candidates[rank].chances
    phrases = []
    # The chances have the indices 0 (win), 1 (gammon won) and 3 (gammon lost).
    for is_worse, index, variants in (
        (other[0] <= best[0] - _MIN_WIN_DIFFERENCE, 0, _FEWER_WINS),
        (other[3] >= best[3] + _MIN_GAMMON_DIFFERENCE, 3, _MORE_GAMMON_LOSSES),
        (other[1] <= best[1] - _MIN_GAMMON_DIFFERENCE, 1, _FEWER_GAMMON_WINS),
    ):
        if is_worse:
            difference = 100 * abs(round(best[index], 3) - round(other[index], 3))
            phrases.append(rng.choice(variants).format(f"{difference:.1f} percentage points"))
    return phrases


def _key(verb: str, points: Sequence[int]) -> str:
    return " ".join([verb, *map(str, points)])


def _key_points(key: str) -> set[int]:
    return {int(word) for word in key.split()[1:]}


def _point_text(point: int) -> str:
    return "bar point" if point == BAR_POINT else f"{point} point"


def _points_text(points: Sequence[int]) -> str:
    if len(points) == 1:
        return _point_text(points[0])
    names = ["bar" if point == BAR_POINT else str(point) for point in points]
    return f"{', '.join(names[:-1])} and {names[-1]} points"


def _shots_text(shots: int) -> str:
    return f"{shots} shot{'' if shots == 1 else 's'} out of 36"


def _compared_shots_text(best: CandidateFacts, other: CandidateFacts) -> str:
    against = f" against {best.shots}" if best.shots else ""
    outside = _OUTSIDE if best.has_back_blots or other.has_back_blots else ""
    return f"{_shots_text(other.shots)}{against}{outside}"


def _checkers(count: int) -> str:
    return f"{_NUMBER_WORDS[count]} checker{'' if count == 1 else 's'}"
