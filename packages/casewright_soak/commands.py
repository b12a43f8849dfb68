"""`casewright bench soak`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from casewright.errors import InputError
from casewright.serve.cli.bench.options import Seed
from casewright.serve.cli.bench.report import show
from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import fail


def bench_soak(
    minutes: Annotated[float, Option(min=0.1, help="Approximate duration.")] = 5.0,
    seed: Seed = 0,
    only: Annotated[list[str] | None, Option(help="A kind of trials; repeatable.")] = None,
    trials: Annotated[int | None, Option(min=1, help="Maximum number of trials of a kind.")] = None,
    as_json: AsJson = False,
) -> None:
    """Count lost and wrong results after kills, damaged files, full disks and overload.

    All files are in a temporary folder. The exit code is 2 after a lost or wrong result. For root,
    the command also mounts and fills a small disk.
    """
    from casewright_soak.measure import KINDS, soak

    for name in only or ():
        if name not in KINDS:
            raise InputError(f"There is no kind {name!r} of trials. Kinds are: {', '.join(KINDS)}.")
    report = soak(minutes, seed, only or (), trials)
    show(report, as_json=as_json)
    if report.figures["lost"] or report.figures["wrong"]:
        fail("A result was lost or wrong; the notes name the trial and its seed.")
