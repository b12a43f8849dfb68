"""Analyses of decisions as texts: the effects of the best play, and the losses of other plays.

Every statement follows from the engine's figures and the board; ``analysis_check`` checks this.
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
    costs,
    merits,
    missing_gains,
    worse_chances,
)
from casewright_backgammon.decision import Decision
from casewright_backgammon.play_features import phase

#: The words before the best play, at the end of an analysis.
BEST_PLAY = "Best play:"
#: Minimum equity losses of errors with these names in GNU Backgammon 1.07 (``show analysis``).
DOUBTFUL, BAD, VERY_BAD = 0.03, 0.06, 0.12
#: Pattern of the steps of one checker, such as ``bar/20*/14``, or of several, such as ``6/5(2)``.
STEP = r"(?:bar|\d{1,2})(?:/(?:off|\d{1,2})\*?)+(?:\([1-4]\))?"
_NAMED_BEST = re.compile(rf"{BEST_PLAY}\W{{0,6}}({STEP}(?:,? {STEP})*|cannot move)", re.IGNORECASE)
#: Two plays are close if their equities differ by less than this.
MAX_CLOSE_LOSS = 0.02
#: Minimum chance of a gammon that a text mentions.
_MIN_GAMMON_CHANCE = 0.005
#: Maximum number of reasons for a play's loss, and of an analysis's sentences.
_MAX_REASONS, _MAX_SENTENCES = 3, 7


@dataclass(frozen=True, slots=True)
class _Writer:
    """A decision, and the random generator that chooses the wordings of its analysis."""

    decision: Decision
    rng: random.Random

    def variant(self, *variants: str) -> str:
        return self.rng.choice(variants)


def analysis_text(decision: Decision, seed: int = 0) -> str:
    """Return the analysis of a decision in three to seven sentences.

    The same decision and seed give the same text, which ends like ``Best play: 8/5 6/5.`` Equities
    and equity losses have three decimals; only equities have a sign.
    """
    key = f"{seed} {decision.position.id} {decision.dice} {decision.made_rank}"
    writer = _Writer(decision, random.Random(key))
    best = candidate_facts(decision, 0)
    sentences = [_race_sentence(writer), _best_sentence(writer, best), _value_sentence(writer)]
    ranks = _described_ranks(decision)
    sentences += [_other_sentence(writer, best, rank, is_first=rank == ranks[0]) for rank in ranks]
    if len(sentences) < _MAX_SENTENCES - 2:  # at most two sentences follow
        sentences += _rest_sentences(writer, ranks)
    if decision.made_rank == 0 and len(decision.candidates) > 1:
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
    """Return the play after the last ``BEST_PLAY`` in a text; ``None`` if there is none."""
    plays = _NAMED_BEST.findall(text)
    return str(plays[-1]).replace(",", "") if plays else None


def error_name(loss: float) -> str:
    """Return the name of an error with this equity loss; empty below ``DOUBTFUL``."""
    if loss >= VERY_BAD:
        return "very bad"
    if loss >= BAD:
        return "bad"
    return "doubtful" if loss >= DOUBTFUL else ""


def equity_text(equity: float) -> str:
    """Return an equity as text: ``+0.218``."""
    # Adding 0.0 avoids -0.000.
    return f"{round(equity, 3) + 0.0:+.3f}"


def chance_text(chance: float) -> str:
    """Return a probability as text: ``55.1%``."""
    return f"{100 * chance:.1f}%"


def _race_sentence(writer: _Writer) -> str:
    """Return the sentence on the phase of the game and the race."""
    own, other = writer.decision.position.pips
    intro = writer.variant(*PHASES[phase(writer.decision.position)])
    player = writer.variant("the player on roll", "the side on roll", "the player to move")
    if own == other:
        return f"{intro}, the race is level at {own} pips before the roll."
    if own < other:
        verb = writer.variant("leads the race by", "is ahead in the race by")
    else:
        verb = writer.variant("trails in the race by", "is behind in the race by")
    lead = f"{abs(own - other)} pip{'' if abs(own - other) == 1 else 's'}"
    return f"{intro}, {player} {verb} {lead} before the roll, with {own} against {other}."


def _best_sentence(writer: _Writer, best: CandidateFacts) -> str:
    play = writer.decision.best.play
    dice = f"{max(writer.decision.dice)}-{min(writer.decision.dice)}"
    roll = writer.variant(f"With {dice},", f"For {dice},", f"The roll is {dice}:")
    # At most three effects that are no costs, and one or two costs.
    facts = [fact for fact in best.facts if fact.gain >= 0][:3]
    facts += [fact for fact in best.facts if fact.gain < 0][: 1 if len(facts) > 1 else 2]
    if len(writer.decision.candidates) == 1:
        forced = f"{play} is the only play" if "/" in play else "no checker can move"
        return f"{roll} {forced}."
    lead = writer.decision.equity_loss(1)
    if not facts:
        return f"{roll} {play} {'is best' if lead >= MAX_CLOSE_LOSS else 'is best by little'}."
    if lead >= VERY_BAD:
        verdict = writer.variant("is clearly best", "stands out", "is far ahead of the others")
    elif lead >= MAX_CLOSE_LOSS:
        verdict = writer.variant("is best", "is right", "is the play")
    else:
        verdict = writer.variant("is best by little", "is just ahead in a close decision")
    if all(fact.gain < 0 for fact in facts):
        return f"{roll} {play} {verdict}, although it {_joined([fact.finite for fact in facts])}."
    if writer.rng.random() < 0.5:
        return f"{roll} {play} {verdict}: it {_gains_but_costs('finite', facts)}."
    return f"{roll} {play} {verdict}, {_gains_but_costs('gerund', facts)}."


def _gains_but_costs(form: str, facts: Sequence[Fact]) -> str:
    """Return facts as one phrase, the gains first; ``form`` names a property of ``Fact``."""
    gain_phrases = [getattr(fact, form) for fact in facts if fact.gain >= 0]
    cost_phrases = [getattr(fact, form) for fact in facts if fact.gain < 0]
    return ", but ".join(_joined(phrases) for phrases in (gain_phrases, cost_phrases) if phrases)


def _joined(phrases: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))


def _value_sentence(writer: _Writer) -> str:
    best = writer.decision.best
    win, win_gammon, _, lose_gammon, _ = best.chances
    equity, wins = equity_text(best.equity), chance_text(win)
    candidates = writer.decision.candidates
    if all(max(play.chances[1], play.chances[3]) < _MIN_GAMMON_CHANCE for play in candidates):
        return writer.variant(
            f"It is worth {equity} and wins {wins} of the games; gammons play no part.",
            f"Its equity is {equity}: it wins {wins} of the games, and gammons play no part.",
            f"It is put at {equity}, with {wins} wins and hardly a gammon.",
        )
    gammons_won, gammons_lost = chance_text(win_gammon), chance_text(lose_gammon)
    # Three wordings of the same chances.
    verbs, nouns = [f"wins {wins} of the games"], [f"{wins} wins"]
    chances = [f"{wins} winning chances"]
    if win_gammon >= _MIN_GAMMON_CHANCE:
        verbs.append(f"wins a gammon in {gammons_won} of them all")
        nouns.append(f"{gammons_won} gammons won")
        chances.append(f"a gammon won in {gammons_won} of the games")
    if lose_gammon >= _MIN_GAMMON_CHANCE:
        verbs.append(f"loses a gammon in {gammons_lost}")
        nouns.append(f"{gammons_lost} gammons lost")
        chances.append(f"a gammon lost in {gammons_lost}")
    return writer.variant(
        f"It is worth {equity}: it {_joined(verbs)}.",
        f"Its equity is {equity}, with {_joined(nouns)}.",
        f"It is put at {equity}: {_joined(chances)}.",
    )


def _described_ranks(decision: Decision) -> list[int]:
    """Return the ranks of the plays to describe: the second best, and the play that was made.

    If the play that was made is the best or the second best, the third best takes its place.
    """
    if decision.made_or_best_rank > 1:
        return [1, decision.made_or_best_rank]
    return [rank for rank in (1, 2) if rank < len(decision.candidates)]


def _other_sentence(writer: _Writer, best: CandidateFacts, rank: int, *, is_first: bool) -> str:
    decision = writer.decision
    other = candidate_facts(decision, rank)
    subject = _subject(writer, rank, is_first=is_first)
    loss = round(decision.equity_loss(rank), 3)
    if not loss:
        return f"{subject} is worth just as much."
    verb = writer.variant("gives up", "costs")
    verdict = f"{verb} {loss:.3f}"
    if rank == decision.made_rank and (error := error_name(loss)):
        verdict += writer.variant(f", a {error} play", f" and is a {error} play")
    elif loss < MAX_CLOSE_LOSS:
        verdict = f"{verb} only {loss:.3f}"
    if gains := merits(best, other):
        verdict = f"{gains[0]}, {'and' if loss < MAX_CLOSE_LOSS else 'but'} {verdict}"
    reasons = _reasons(decision, best, other, rank, writer.rng)
    return f"{subject} {verdict}: it {_joined(reasons)}." if reasons else f"{subject} {verdict}."


def _reasons(
    decision: Decision, best: CandidateFacts, other: CandidateFacts, rank: int, rng: random.Random
) -> list[str]:
    """Return the reasons for the other play's equity loss: missing gains, costs, worse chances."""
    gains = [fact.infinitive for fact in missing_gains(best, other)][:2]
    reasons = [f"does not {' or '.join(gains)}"] if gains else []
    reasons += costs(best, other)[:1]
    chances = worse_chances(decision, rank, rng)
    return [*reasons[: _MAX_REASONS - 1], *chances[: 2 if len(reasons) < 2 else 1]]


def _subject(writer: _Writer, rank: int, *, is_first: bool) -> str:
    play = writer.decision.candidates[rank].play
    if rank == writer.decision.made_rank:
        return writer.variant(
            f"The play that was made, {play},",
            f"What was played, {play},",
            f"The play in the game, {play},",
        )
    if is_first:
        return writer.variant(f"The next best, {play},", f"The runner-up {play}", f"Second, {play}")
    return writer.variant(play, f"The alternative {play}", f"As for {play}, it")


def _rest_sentences(writer: _Writer, described_ranks: Sequence[int]) -> list[str]:
    """Return a sentence on the best of the plays that are not described, or at random none."""
    decision = writer.decision
    ranks = [rank for rank in range(1, len(decision.candidates)) if rank not in described_ranks]
    if not ranks or writer.rng.random() < 0.4:
        return []
    play, loss = decision.candidates[ranks[0]].play, decision.equity_loss(ranks[0])
    if round(loss, 3) == 0:
        return []
    if len(ranks) == 1:
        return [f"{play} gives up {loss:.3f}."]
    return [
        writer.variant(
            f"{play} gives up {loss:.3f}, and the others at least as much.",
            f"Of the rest the best is {play}, which gives up {loss:.3f}.",
        )
    ]
