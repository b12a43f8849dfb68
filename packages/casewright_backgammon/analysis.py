"""Texts of analyses of decisions: the effects of the best play, and the losses of other plays.

Every statement follows from the engine's figures and the board; ``analysis_check`` verifies it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from casewright_backgammon.analysis_phrases import (
    PHASES,
    CandidateFacts,
    Fact,
    candidate_facts,
    chances_lost,
    costs,
    merits,
    missed,
)
from casewright_backgammon.decision import AnalysedPlay, Decision
from casewright_backgammon.play_features import phase

#: The words before the best play, at the end of a text.
BEST_PLAY = "Best play:"
#: Minimum equity losses of named errors, as in GNU Backgammon 1.07 (``show analysis``).
DOUBTFUL, BAD, VERY_BAD = 0.03, 0.06, 0.12
#: Pattern of a step, such as ``bar/20*/14`` or ``6/5(2)``.
STEP = r"(?:bar|\d{1,2})(?:/(?:off|\d{1,2})\*?)+(?:\([1-4]\))?"
_BEST = re.compile(rf"{BEST_PLAY}\W{{0,6}}({STEP}(?:,? {STEP})*|cannot move)", re.IGNORECASE)
#: Losses below this are called small.
CLOSE = 0.02
#: Gammon chances below this are not mentioned.
_MIN_GAMMONS = 0.005
#: Maximum numbers of reasons for a play's loss, and of sentences.
_MAX_REASONS, _MAX_SENTENCES = 3, 7


@dataclass(frozen=True, slots=True)
class _Writer:
    decision: Decision
    rng: random.Random

    def variant(self, *variants: str) -> str:
        return self.rng.choice(variants)


def analysis_text(decision: Decision, seed: int = 0) -> str:
    """Return the analysis of a decision in three to seven sentences.

    The same decision and seed give the same text. It ends with ``Best play: 8/5 6/5.``; an equity
    has a sign and three digits, an equity loss three digits without a sign.
    """
    key = f"{seed} {decision.position.id} {decision.dice} {decision.played}"
    writer = _Writer(decision, random.Random(key))
    best = candidate_facts(decision, 0)
    sentences = [_opening(writer), _best(writer, best), _worth(writer)]
    others = _others(decision)
    if decision.played and decision.played not in others:
        others.append(decision.played)
    for number, rank in enumerate(others):
        sentences.append(_other(writer, best, rank, first=number == 0))
    if len(sentences) < _MAX_SENTENCES - 2:
        sentences += _rest(writer, others)
    if decision.played == 0 and len(decision.candidates) > 1:
        sentences.append(
            writer.variant(
                "The best play was made.",
                "The player found the best play.",
                "The play that was made is the best one.",
            )
        )
    sentences.append(f"{BEST_PLAY} {decision.best.play}.")
    return " ".join(sentences)


def best_play_of(text: str) -> str | None:
    """Return the play after the last "Best play:"; ``None`` if there is none."""
    plays = _BEST.findall(text)
    return str(plays[-1]).replace(",", "") if plays else None


def error_name(lost: float) -> str:
    """Return the name of an error by its equity loss; empty below 0.03."""
    if lost >= VERY_BAD:
        return "very bad"
    if lost >= BAD:
        return "bad"
    return "doubtful" if lost >= DOUBTFUL else ""


def signed(equity: float) -> str:
    """Return an equity as text: ``+0.218``."""
    # Adding 0.0 avoids -0.000.
    return f"{round(equity, 3) + 0.0:+.3f}"


def percent(chance: float) -> str:
    """Return a probability as text: ``55.1%``."""
    return f"{100 * chance:.1f}%"


def _opening(writer: _Writer) -> str:
    """Return the sentence on the phase and the race."""
    own, other = writer.decision.position.pips
    opening = writer.variant(*PHASES[phase(writer.decision.position)])
    player = writer.variant("the player on roll", "the side on roll", "the player to move")
    if own == other:
        return f"{opening}, the race is level at {own} pips before the roll."
    difference = abs(own - other)
    unit = "pip" if difference == 1 else "pips"
    if own < other:
        lead = writer.variant("leads the race by", "is ahead in the race by")
    else:
        lead = writer.variant("trails in the race by", "is behind in the race by")
    return (
        f"{opening}, {player} {lead} {difference} {unit} before the roll, "
        f"with {own} against {other}."
    )


def _best(writer: _Writer, best: CandidateFacts) -> str:
    play = writer.decision.best.play
    high, low = max(writer.decision.dice), min(writer.decision.dice)
    roll = writer.variant(f"With {high}-{low},", f"For {high}-{low},", f"The roll is {high}-{low}:")
    facts = [fact for fact in best.facts if fact.good >= 0][:3]
    facts += [fact for fact in best.facts if fact.good < 0][: 1 if len(facts) > 1 else 2]
    if len(writer.decision.candidates) == 1:
        forced = f"{play} is the only play" if "/" in play else "no checker can move"
        return f"{roll} {forced}."
    gap = writer.decision.lost(1)
    if not facts:
        return f"{roll} {play} {'is best' if gap >= CLOSE else 'is best by little'}."
    if gap >= VERY_BAD:
        verdict = writer.variant("is clearly best", "stands out", "is far ahead of the others")
    elif gap >= CLOSE:
        verdict = writer.variant("is best", "is right", "is the play")
    else:
        verdict = writer.variant("is best by little", "is just ahead in a close decision")
    if all(fact.good < 0 for fact in facts):
        return f"{roll} {play} {verdict}, although it {_and([fact.finite for fact in facts])}."
    if writer.rng.random() < 0.5:
        return f"{roll} {play} {verdict}: it {_gains_but_costs('finite', facts)}."
    return f"{roll} {play} {verdict}, {_gains_but_costs('gerund', facts)}."


def _gains_but_costs(form: str, facts: Sequence[Fact]) -> str:
    """Return the phrases of facts in a grammatical form: gains, then costs after a ``but``."""
    gains = [getattr(fact, form) for fact in facts if fact.good >= 0]
    costs = [getattr(fact, form) for fact in facts if fact.good < 0]
    return ", but ".join(_and(phrases) for phrases in (gains, costs) if phrases)


def _and(phrases: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))


def _worth(writer: _Writer) -> str:
    best = writer.decision.best
    win, win_gammon, _, lose_gammon, _ = best.chances
    worth, wins = signed(best.equity), percent(win)
    gammons = max(
        max(candidate.chances[1], candidate.chances[3]) for candidate in writer.decision.candidates
    )
    if gammons < _MIN_GAMMONS:
        return writer.variant(
            f"It is worth {worth} and wins {wins} of the games; gammons play no part.",
            f"Its equity is {worth}: it wins {wins} of the games, and gammons play no part.",
            f"It is put at {worth}, with {wins} wins and hardly a gammon.",
        )
    won, lost = percent(win_gammon), percent(lose_gammon)
    verbs, nouns = [f"wins {wins} of the games"], [f"{wins} wins"]
    chances = [f"{wins} winning chances"]
    if win_gammon >= _MIN_GAMMONS:
        verbs.append(f"wins a gammon in {won} of them all")
        nouns.append(f"{won} gammons won")
        chances.append(f"a gammon won in {won} of the games")
    if lose_gammon >= _MIN_GAMMONS:
        verbs.append(f"loses a gammon in {lost}")
        nouns.append(f"{lost} gammons lost")
        chances.append(f"a gammon lost in {lost}")
    return writer.variant(
        f"It is worth {worth}: it {_and(verbs)}.",
        f"Its equity is {worth}, with {_and(nouns)}.",
        f"It is put at {worth}: {_and(chances)}.",
    )


def _others(decision: Decision) -> list[int]:
    """Return the ranks of the other candidates to describe, the best first."""
    ranks = [rank for rank in (1, 2) if rank < len(decision.candidates)]
    return ranks[:1] if (decision.played or 0) > 1 else ranks


def _other(writer: _Writer, best: CandidateFacts, rank: int, *, first: bool) -> str:
    decision = writer.decision
    candidate = decision.candidates[rank]
    other = candidate_facts(decision, rank)
    name = _named(writer, candidate, rank, first=first)
    lost = round(decision.lost(rank), 3)
    if not lost:
        return f"{name} is worth just as much."
    verb = writer.variant("gives up", "costs")
    loss = f"{verb} {lost:.3f}"
    if rank == decision.played and (error := error_name(lost)):
        loss += writer.variant(f", a {error} play", f" and is a {error} play")
    elif lost < CLOSE:
        loss = f"{verb} only {lost:.3f}"
    gains = merits(best, other)[:1]
    link = "and" if lost < CLOSE else "but"
    head = f"{name} {_and(gains)}, {link} {loss}" if gains else f"{name} {loss}"
    reasons = _reasons(decision, best, other, rank, writer.rng)
    return f"{head}: it {_and(reasons)}." if reasons else f"{head}."


def _reasons(
    decision: Decision, best: CandidateFacts, other: CandidateFacts, rank: int, rng: random.Random
) -> list[str]:
    """Return the reasons for a play's loss: missed gains, risks, worse chances."""
    gains = [fact.infinitive for fact in missed(best, other)][:2]
    reasons = [f"does not {' or '.join(gains)}"] if gains else []
    reasons += costs(best, other)[:1]
    chances = chances_lost(decision, rank, rng)
    return [*reasons[: _MAX_REASONS - 1], *chances[: 2 if len(reasons) < 2 else 1]]


def _named(writer: _Writer, candidate: AnalysedPlay, rank: int, *, first: bool) -> str:
    play = candidate.play
    if rank == writer.decision.played:
        return writer.variant(
            f"The play that was made, {play},",
            f"What was played, {play},",
            f"The play in the game, {play},",
        )
    if first:
        return writer.variant(f"The next best, {play},", f"The runner-up {play}", f"Second, {play}")
    return writer.variant(play, f"The alternative {play}", f"As for {play}, it")


def _rest(writer: _Writer, others: Sequence[int]) -> list[str]:
    """Return a sentence on the best candidate that no sentence names, or nothing."""
    rest = [rank for rank in range(1, len(writer.decision.candidates)) if rank not in others]
    if not rest or writer.rng.random() < 0.4:
        return []
    first = writer.decision.candidates[rest[0]].play
    lost = writer.decision.lost(rest[0])
    if round(lost, 3) == 0:
        return []
    if len(rest) == 1:
        return [f"{first} gives up {lost:.3f}."]
    return [
        writer.variant(
            f"{first} gives up {lost:.3f}, and the others at least as much.",
            f"Of the rest the best is {first}, which gives up {lost:.3f}.",
        )
    ]
