"""The group `casewright bench`."""

from __future__ import annotations

from typer import Typer

from casewright.serve.cli.bench import models, planning, running, studies
from casewright.serve.cli.extended import extended_group

app = Typer(cls=extended_group("bench_command"), help="Measure, side by side in one run.")
for module in (planning, models, running, studies):
    app.add_typer(module.app)
