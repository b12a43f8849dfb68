"""The backgammon domain: from a board's picture and a roll to a checked analysis (MCBR-RAG)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, get_args

from casewright.domains.domain import OpenDomain
from casewright.domains.own_answer import IMAGE_OPTIONS, Option, OwnAnswer, OwnRequest
from casewright.errors import InputError
from casewright.stores import Binary, Case, CaseSchema, CaseStore
from casewright_backgammon.analysis import STEP
from casewright_backgammon.answerer import BoardAnswerer
from casewright_backgammon.board_layout import Colour, Home
from casewright_backgammon.board_reader import shipped_reader
from casewright_backgammon.case_base import case_file
from casewright_backgammon.cases import decision_case, decision_schema
from casewright_backgammon.decision import read_decisions
from casewright_backgammon.judge import default_judge
from casewright_backgammon.latent import NETWORK_FILE, shipped_network
from casewright_backgammon.lines import json_of, lines_of
from casewright_backgammon.page import page_of
from casewright_backgammon.play_text import dice_of
from casewright_backgammon.position import position_of_id
from casewright_mcbr.domain import one_tool_domain
from casewright_mcbr.picture import media_type

#: The modules that determine the cases; the store is rebuilt when one changes.
CASE_MODULES = (
    "analysis.py",
    "analysis_phrases.py",
    "cases.py",
    "decision.py",
    "domain.py",
    "encoding.py",
    "latent.py",
    "play_features.py",
)
#: Example questions; the domain's tool answers each in one call.
QUERIES = (
    "What is the best play with 3-1 in the position 4HPwATDgc/ABMA?",
    "How should I play 5-2 in 4PPgASjgc/ABMA?",
    "Position 4PPBASLg8+ABJA, roll 6-4: what would you play?",
    "In mLeDATCwZ+QRIA I rolled 6-1. Is 16/9 right?",
)
OPTIONS = (
    *IMAGE_OPTIONS,
    Option("roll", "With a board's image: the dice, such as 3-1.", "DICE"),
    Option("move", 'The play to analyse, such as "16/13 2/1"; by default the best play.', "PLAY"),
    Option("checkers", "Colour of the player on roll (below): light (default) or dark.", "COLOUR"),
    Option("home", "Side where the player on roll bears off: right (default) or left.", "SIDE"),
    Option(
        "off",
        "Numbers of checkers that the player on roll and the opponent have borne off, such as 2-0, "
        "if the picture does not show them.",
        "N-N",
    ),
)
#: A position id: ten bytes in base64. The last character encodes two bits, so it is A, Q, g or w.
_POSITION_ID = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{13}[AQgw](?![A-Za-z0-9+/])")
_ROLL = re.compile(r"(?<![\d/])([1-6])\s*[-–:]\s*([1-6])(?![\d/])")
_MOVE = re.compile(rf"{STEP}(?:,? +{STEP})*", re.IGNORECASE)


def _schema() -> CaseSchema:
    return decision_schema(lambda image: shipped_reader().read(image).position, shipped_network())


def decision_cases() -> list[Case]:
    """Return a case for each decision in the file of cases that has two candidates or more."""
    decisions = read_decisions(case_file())
    return [decision_case(decision) for decision in decisions if len(decision.candidates) > 1]


def _evidence(store: CaseStore, question: str) -> list[str]:
    """Return the lines that answer a question: check, analysis, advice and cases, in this order."""
    position, roll = _POSITION_ID.search(question), _ROLL.search(question)
    if position is None or roll is None:
        raise InputError(
            "A question about backgammon needs a position id of GNU Backgammon and a roll. "
            f"For example: {QUERIES[0]}"
        )
    move = _MOVE.search(question.replace(position[0], " "))
    network = shipped_network()
    answer = BoardAnswerer(store, network, default_judge(network)).answer(
        position_of_id(position[0]),
        dice_of(roll[0].replace("–", "-")),
        move[0].replace(",", "") if move else None,
    )
    line_starts = (("Check", "Analysis"), ("Advice",), ("Case",))
    lines = lines_of(answer)
    return [line for starts in line_starts for line in lines if line.startswith(starts)]


def answer_board(opened: OpenDomain, request: OwnRequest) -> OwnAnswer:
    """Answer a request about a board; retain the engine's analysis as a case if requested.

    Raises:
        InputError: The image cannot be read, or shows no board or an impossible position; the roll
            is missing, or the move is illegal. In these cases nothing is retained.
        ToolError: The engine failed.
    """
    image, options = request.image, request.options
    if "roll" not in options:
        raise InputError("A board needs a roll. Add it, for example: --roll 3-1")
    dice = dice_of(options["roll"])
    reading = shipped_reader().read(
        image,
        own=_choice(options, "checkers", get_args(Colour)),
        home=_choice(options, "home", get_args(Home)),
        off=_off_counts(options.get("off")),
    )
    network = shipped_network()
    store, judge = opened.stores["backgammon"], default_judge(network)
    answerer = BoardAnswerer(store, network, judge, request.chat, request.name)
    data = image.read_bytes()
    answer = answerer.answer(
        reading.position,
        dice,
        options.get("move"),
        picture=Binary(media_type(data), data),
        retain="retain" in options,
    )
    lines = lines_of(answer)
    lines[0] += f" ({reading.confidence:.3f} sure)"
    record = {"confidence": reading.confidence, **json_of(answer)}
    page = page_of(answer, data)
    return OwnAnswer(lines, record, page, right=answer.advice.is_right).save_page(request)


def _choice(options: Mapping[str, str], name: str, allowed: Sequence[Any]) -> Any:
    """Return the value of an option, by default the first of the allowed values."""
    value = options.get(name, allowed[0])
    if value not in allowed:
        raise InputError(f"--{name} {value!r:.40} is not one of {', '.join(allowed)}.")
    return value


def _off_counts(text: str | None) -> tuple[int, int] | None:
    """Return the numbers of borne-off checkers in the value of the option ``off``."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,2})\s*[-,]\s*(\d{1,2})\s*", text)
    if match is None:
        raise InputError(
            f"--off {text!r:.40} is not a pair of numbers. Give the numbers of checkers that the "
            "player on roll and the opponent have borne off, such as 2-0."
        )
    return int(match[1]), int(match[2])


DOMAIN = one_tool_domain(
    "backgammon",
    "A player asks how to play a roll on a board that a picture or a position id shows.",
    QUERIES,
    tool="analyse_position",
    tool_description="Analyses a backgammon decision by similar cases, and checks the advice.",
    schema=_schema,
    cases=decision_cases,
    sources=lambda: [
        *(files("casewright_backgammon") / name for name in CASE_MODULES),
        case_file(),
        NETWORK_FILE,
    ],
    evidence=_evidence,
    options=OPTIONS,
    answer=answer_board,
)
