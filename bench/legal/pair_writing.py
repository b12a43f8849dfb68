"""The generation of the questions that ``bench legal`` reads beside ALQA's cases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.bench.legal.data import FEWEST, SHIPPED
from casewright.domains.legal import entity_pairs, read_alqa, read_with_chat, write_questions
from casewright.domains.legal.alqa import is_dataset
from casewright.domains.legal.data import data_file
from casewright.domains.legal.question_pairs import cited_as
from casewright.errors import CasewrightError, InputError
from casewright.finetune.queries.query_files import check_output
from casewright.stores.progress import note

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True)
class PairsWritten:
    """The counts of a generation; ``skipped`` counts pairs by the reason why they have none."""

    output: str
    cases: int
    cases_left_out_as_others_are_cited_alike: int
    pairs: int
    questions: int
    skipped: Mapping[str, int]


def check_pairs_output(output: Path, source: str) -> None:
    """Raise ``InputError`` if a file of questions cannot be written; see ``check_output``."""
    inputs = [Path(str(data_file(name))) for name in ("cases", "pairs")]
    if source != SHIPPED and not is_dataset(source):
        inputs.append(Path(source))
    check_output(output, *inputs)


def write_pairs(
    source: str,
    output: Path,
    model: BaseChatModel,
    *,
    pairs: int = 50,
    seed: int = 0,
    extractor: BaseChatModel | None = None,
    progress: bool | None = True,
) -> PairsWritten:
    """Let a chat model write questions that two cases answer together (CBR-RAG, section 6.1).

    The file is JSON Lines: id, question, answer, parents, shared. Cases that share a citation are
    in no pair.

    Raises:
        InputError: The source cannot be read, no cases share a name, or the output cannot be
            written.
        DependencyError: The source is a name, and ``datasets`` is not installed.
        CasewrightError: The model wrote no usable question.
    """
    check_pairs_output(output, source)
    file = str(data_file("cases")) if source == SHIPPED else source
    if extractor is None:
        cases = read_alqa(file)
    else:
        cases = read_with_chat(file, extractor, progress=progress)
    cited = Counter(map(cited_as, cases))
    unambiguous = [case for case in cases if cited[cited_as(case)] == 1]
    chosen = entity_pairs(unambiguous, limit=pairs, seed=seed)
    if not chosen:
        raise InputError(
            f"{source}: no two of its {len(cases)} cases share an Act or another name, so there is "
            "nothing to ask about."
        )
    written = write_questions(chosen, model, progress=progress)
    if not written.questions:
        why = "; ".join(f"{reason} ({count})" for reason, count in written.skipped.items())
        raise CasewrightError(
            f"The chat model wrote no usable question for {len(chosen)} pairs: {why}. {output} was "
            "not written."
        )
    lines = [json.dumps(q.to_json(), ensure_ascii=False) for q in written.questions]
    try:
        output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--output {output} cannot be written: {error.strerror}.") from error
    if len(lines) < FEWEST:
        note(f"bench legal needs {FEWEST} questions at least; these are {len(lines)}.")
    left_out = len(cases) - len(unambiguous)
    return PairsWritten(
        str(output), len(cases), left_out, len(chosen), len(lines), dict(written.skipped)
    )
