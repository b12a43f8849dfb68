"""GNU Backgammon, an optional engine that computes equities of plays and positions.

Each call runs the program on a file of commands, for a money game without the Jacoby rule, with the
cube at 1 in the middle. The user's settings of the program are neither read nor written.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TypeVar

from casewright.errors import DependencyError, InputError, ToolError, cleaned
from casewright.stores.progress import progress_bar
from casewright_backgammon.decision import AnalysedPlay, Chances, chances_after_win, chances_of
from casewright_backgammon.moves import Dice, Play, legal_plays
from casewright_backgammon.play_text import legal_play, parse_play
from casewright_backgammon.position import Position, require_possible

#: Path of the program on Debian, in a folder that is not in every user's PATH.
_DEBIAN_PATH = Path("/usr/games/gnubg")
#: Maximum number of positions in one run of the program.
_BATCH_SIZE = 100
#: Time limits in seconds: for the start of the program, and for each position, by number of plies.
#: They are about ten times the usual times.
_START_LIMIT = 30.0
_POSITION_LIMITS = {0: 0.5, 1: 1.0, 2: 4.0, 3: 60.0, 4: 300.0}
#: The commands at the start of each run.
_SETTINGS = """set confirm new off
set automatic game off
set automatic roll off
set automatic move off
set player 0 human
set player 1 human
set display off
set threads 1
set output digits 4
set variation standard
set jacoby off
set cube use on
"""
#: The question at the end of errors about the program's output.
_VERSION_HINT = "Is it version 1.06 or later?"
_T = TypeVar("_T")
# Parts of the program's output: a number, a roll, a play, a position's value, a cube action.
_NUMBER = r"([+-]?\d+\.\d+)"
_DICE = re.compile(r"^The dice have been set to (\d) and (\d)\.$", re.MULTILINE)
_HINT = re.compile(
    rf"^ *\d+\. Cubeful (\d)-ply +(\S.*?) +Eq\.: +{_NUMBER}.*\n"
    rf" +{_NUMBER} {_NUMBER} {_NUMBER} - {_NUMBER} {_NUMBER} {_NUMBER}",
    re.MULTILINE,
)
_VALUE = re.compile(
    rf"^ *(static|\d ply): +{_NUMBER} +{_NUMBER} +{_NUMBER} +{_NUMBER} +{_NUMBER} +"
    rf"{_NUMBER} +{_NUMBER}",
    re.MULTILINE,
)
_CUBE = re.compile(rf"^\d\. (No double|Double, pass|Double, take) +{_NUMBER}", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PositionValue:
    """The value of a position for the player on roll, before the roll."""

    chances: Chances  # chances of this player
    equity: float  # equity in points if both players use the cube optimally; 1 for a single win


def find_engine() -> Path | None:
    """Return the path of the program; ``None`` if the program is not installed or is disabled.

    The environment variable ``CASEWRIGHT_GNUBG`` may be the path of another program, or ``none`` to
    disable the engine.
    """
    if setting := os.environ.get("CASEWRIGHT_GNUBG"):
        return None if setting == "none" else Path(setting)
    if path := shutil.which("gnubg"):
        return Path(path)
    return _DEBIAN_PATH if os.access(_DEBIAN_PATH, os.X_OK) else None


@dataclass(frozen=True, slots=True)
class GnuBackgammon:
    """The program GNU Backgammon; each run is a separate process.

    All methods except ``draw`` raise ``InputError`` for an impossible position or roll, a finished
    game, or a number of plies that is not 0 to 4. All methods raise ``ToolError`` if the program
    crashes, takes too long, or writes an unknown format.
    """

    #: The path of the program, by default of the installed program.
    path: Path = field(default_factory=lambda: _installed_path())
    #: Time limit of a run in seconds; the default depends on the positions and plies.
    limit: float | None = None

    def analyse(
        self, decisions: Sequence[tuple[Position, Dice]], plies: int = 2, max_plays: int = 5
    ) -> list[list[AnalysedPlay]]:
        """Return the best plays of each decision, the best first.

        Args:
            decisions: Pairs of a position, from the side of the player on roll, and a roll.
            plies: Number of plies of look-ahead, the same for all returned plays.
            max_plays: Maximum number of plays of a decision.

        Returns:
            At least one play for each decision; if no checker can move, the play ``cannot move``.
        """
        _check_plies(plies)
        legal = [legal_plays(require_possible(position), dice) for position, dice in decisions]
        candidates: list[list[AnalysedPlay]] = [[] for _ in decisions]
        forced_indices = [index for index, plays in enumerate(legal) if len(plays) == 1]
        # The program writes nothing about a roll without a legal step. So a forced play gets the
        # value of the position after it.
        forced_plays = [legal[index][0] for index in forced_indices]
        analyses = self._analyse_by_value(forced_plays, plies)
        for index, candidate in zip(forced_indices, analyses, strict=True):
            candidates[index] = [candidate]
        choice_indices = [index for index, plays in enumerate(legal) if len(plays) > 1]
        with progress_bar("Analysing decisions", len(choice_indices)) as advance:
            for batch in _batches(choice_indices):
                texts = self._hints([decisions[index] for index in batch], plies, max_plays)
                for index, text in zip(batch, texts, strict=True):
                    candidates[index] = _candidates(text, decisions[index], legal[index])
                advance(len(batch))
        return candidates

    def values(self, positions: Sequence[Position], plies: int = 2) -> list[PositionValue]:
        """Return the values of positions of unfinished games, for the player on roll."""
        _check_plies(plies)
        for position in positions:
            require_possible(position)
        values: list[PositionValue] = []
        with progress_bar("Evaluating positions", len(positions)) as advance:
            for batch in _batches(positions):
                values += self._evaluate(batch, plies)
                advance(len(batch))
        return values

    def analyse_play(
        self, position: Position, dice: Dice, play: str, plies: int = 2
    ) -> AnalysedPlay:
        """Return the analysis of a play, even if ``analyse`` does not list it.

        Raise ``InputError`` if the play is not legal.
        """
        _check_plies(plies)
        legal = legal_play(require_possible(position), dice, play)
        return self._analyse_by_value([legal], plies)[0]

    def draw(self, positions: Sequence[Position], folder: Path) -> list[Path]:
        """Draw each position's board as a PNG file in a folder, and return the files in order."""
        files = [folder / f"{number}.png" for number in range(len(positions))]
        commands = ["new game"]
        for position, file in zip(positions, files, strict=True):
            commands += [f"set board {position.id}", "set turn 1", f"export position png {file}"]
        text = self._run(commands, len(positions), plies=0)
        if not all(file.is_file() for file in files):
            raise self._output_error(text, f"{len(files)} pictures")
        return files

    def _analyse_by_value(self, plays: Sequence[Play], plies: int) -> list[AnalysedPlay]:
        """Return analyses of plays, computed from the values of the positions after them."""
        unfinished = [play.after.flipped for play in plays if any(play.after.own)]
        values = iter(self.values(unfinished, plies))
        analyses = []
        for play in plays:
            if any(play.after.own):
                value = next(values)
                win, win_g, win_bg, lose_g, lose_bg = value.chances
                equity, chances = -value.equity, (round(1 - win, 4), lose_g, lose_bg, win_g, win_bg)
            else:
                chances = chances_after_win(play.after)
                equity = sum(chances)  # 1 for a win, 2 for a gammon, 3 for a backgammon
            analyses.append(AnalysedPlay(play.text, equity, chances))
        return analyses

    def _hints(
        self, decisions: Sequence[tuple[Position, Dice]], plies: int, max_plays: int
    ) -> list[str]:
        """Return the program's output for each decision."""
        commands = [f"set evaluation chequerplay evaluation plies {plies}"]
        # By default, the program looks less deeply at plays that are much worse than the best.
        # These filters keep ``max_plays`` plays at the first level, and skip the later levels.
        for depth in range(1, plies + 1):
            commands.append(f"set evaluation movefilter {depth} 0 {max_plays} 0 0")
            commands += [
                f"set evaluation movefilter {depth} {level} -1 0 0" for level in range(1, depth)
            ]
        commands += ["new session", "set turn 1"]
        for position, dice in decisions:
            commands += [f"set board {position.id}", f"set dice {dice[0]} {dice[1]}"]
            commands.append(f"hint {max_plays}")
        text = self._run(commands, len(decisions), plies)
        # Each decision gives three parts: two dice, and the text after them.
        _, *parts = _DICE.split(text)
        rolls = list(zip(map(int, parts[::3]), map(int, parts[1::3]), strict=True))
        if rolls != [tuple(dice) for _, dice in decisions]:
            raise self._output_error(text, f"{len(decisions)} decisions, not {len(rolls)}")
        return parts[2::3]

    def _evaluate(self, positions: Sequence[Position], plies: int) -> list[PositionValue]:
        commands = [
            f"set evaluation chequerplay evaluation plies {plies}",
            f"set evaluation cubedecision evaluation plies {plies}",
            "new session",
            "set turn 1",
        ]
        for position in positions:
            commands += [f"set board {position.id}", "eval"]
        text = self._run(commands, len(positions), plies)
        _, *parts = re.split(r"^Evaluator:", text, flags=re.MULTILINE)
        if len(parts) != len(positions):
            raise self._output_error(text, f"{len(positions)} positions, not {len(parts)}")
        return [self._value(part, plies) for part in parts]

    def _value(self, text: str, plies: int) -> PositionValue:
        """Return the value of a position from the program's output about it."""
        label = f"{plies} ply" if plies else "static"
        rows = {row[1]: list(map(float, row.groups()[1:])) for row in _VALUE.finditer(text)}
        if label not in rows:
            raise self._output_error(text, f"a row {label!r}")
        *chances, _, equity = rows[label]
        equities = {row[1]: float(row[2]) for row in _CUBE.finditer(text)}
        if len(equities) == 3:
            # If the player on roll doubles, the opponent passes or takes, whichever loses less.
            doubled = min(equities["Double, pass"], equities["Double, take"])
            equity = max(equities["No double"], doubled)
        return PositionValue(chances_of(chances), equity)

    def _run(self, commands: Sequence[str], position_count: int, plies: int) -> str:
        """Run the program on commands, in an empty home folder, and return its output.

        The default time limit depends on ``position_count`` and ``plies``.
        """
        limit = self.limit
        if limit is None:
            limit = _START_LIMIT + _POSITION_LIMITS[plies] * position_count
        with TemporaryDirectory(prefix="casewright-gnubg-") as folder:
            home = Path(folder)
            (home / "commands").write_text(_SETTINGS + "\n".join(commands) + "\n", "ascii")
            with (home / "output").open("wb") as output:
                code = self._exit_code(home, output, limit)
            text = (home / "output").read_text("utf-8", errors="replace")
        if code:
            output_end = cleaned(text[-400:]) or "It wrote nothing."
            raise ToolError(
                f"GNU Backgammon at {self.path} ended with code {code}: {output_end} "
                "Try it by hand, or install the package gnubg again."
            )
        return text

    def _exit_code(self, home: Path, output: IO[bytes], limit: float) -> int:
        """Return a run's exit code; end the run with ``ToolError`` after ``limit`` seconds."""
        try:
            child = subprocess.Popen(
                [str(self.path), "-t", "-q", "-c", str(home / "commands")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=home,
                env=_environment(home),
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(
                f"GNU Backgammon at {self.path} cannot be run: {error.strerror}. "
                "Give the path of the program gnubg."
            ) from error
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            raise ToolError(
                f"GNU Backgammon at {self.path} took longer than {limit:g} seconds and was ended. "
                "Use fewer plies, or a higher limit."
            ) from None
        finally:
            if child.poll() is None:
                # This also kills the child processes of the program.
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def _output_error(self, text: str, expected: str) -> ToolError:
        return ToolError(
            f"GNU Backgammon at {self.path} should have written about {expected}; it wrote: "
            f"{cleaned(text[-200:]) or 'nothing'}. {_VERSION_HINT}"
        )


def _installed_path() -> Path:
    path = find_engine()
    if path is None:
        raise DependencyError(
            "GNU Backgammon is not installed: there is no program gnubg on the path. Install the "
            "package gnubg, on Debian and Ubuntu with `apt install gnubg`."
        )
    return path


def _environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "TMPDIR")}
    # With another locale, the program may write a decimal comma.
    return inherited | {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "LC_ALL": "C", "LANG": "C"}


def _check_plies(plies: int) -> None:
    if plies not in _POSITION_LIMITS:
        raise InputError(f"plies is {plies}; give a number from 0 to {max(_POSITION_LIMITS)}.")


def _batches(items: Sequence[_T]) -> list[Sequence[_T]]:
    return [items[start : start + _BATCH_SIZE] for start in range(0, len(items), _BATCH_SIZE)]


def _candidates(
    text: str, decision: tuple[Position, Dice], legal: Sequence[Play]
) -> list[AnalysedPlay]:
    """Return the plays in the program's output for a decision, the best first.

    Raise ``ToolError`` if the output lists no play, or an illegal play.
    """
    position, dice = decision
    situation = f"for {dice[0]}-{dice[1]} in {position.id}"
    legal_afters = {play.after for play in legal}
    candidates = []
    for row in _HINT.finditer(text):
        play = row[2]
        try:
            if parse_play(position, play)[0] not in legal_afters:
                raise InputError("it is not one of the legal plays")
        except InputError as error:
            raise ToolError(
                f"GNU Backgammon names the play {play!r:.60} {situation}, and it cannot be made: "
                f"{error}. {_VERSION_HINT}"
            ) from None
        equity, *chances = map(float, row.groups()[2:])
        # ``Chances`` has no chance of losing, which is the fourth chance here.
        del chances[3]
        candidates.append(AnalysedPlay(play, equity, chances_of(chances)))
    if not candidates:
        raise ToolError(
            f"GNU Backgammon names no play {situation}; it wrote: "
            f"{cleaned(text[:200]) or 'nothing'}. {_VERSION_HINT}"
        )
    return sorted(candidates, key=lambda candidate: -candidate.equity)
