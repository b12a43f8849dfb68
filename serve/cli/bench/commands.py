"""The group `casewright bench`."""

from __future__ import annotations

from typer import Typer

from casewright.serve.cli.bench import answering, models, planning, running
from casewright.serve.cli.extended import extended_group

app = Typer(cls=extended_group("bench_command"), help="Compare systems in one run.")
for module in (planning, models, running, answering):
    app.add_typer(module.app)
