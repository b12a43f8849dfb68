"""`casewright config`: every setting, its value, and where that came from."""

from __future__ import annotations

import json
from typing import Any

import typer

from casewright.serve.cli.options import AsJson, ConfigFile

app = typer.Typer(add_completion=False)


@app.command()
def config(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show every setting with its value and where that came from; secrets are masked."""
    from casewright.serve.cli.output import print_json, visible
    from casewright.serve.settings.settings import load_settings, unknown_variables

    loaded = load_settings(config)
    # In JSON mode pydantic masks what is secret.
    values = loaded.settings.model_dump(mode="json")
    for name, meant in unknown_variables().items():
        typer.echo(visible(f"{name} is not known. Did you mean {meant}?"), err=True)
    if as_json:
        print_json(
            {
                "file": None if loaded.file is None else str(loaded.file),
                "settings": {
                    name: {
                        "value": values[name],
                        "origin": origin.kind,
                        "where": origin.where,
                        "about": type(loaded.settings).model_fields[name].description,
                    }
                    for name, origin in loaded.origins.items()
                },
            }
        )
        return
    rows = [(name, _told(values[name]), str(loaded.origins[name])) for name in values]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, origin in rows:
        typer.echo(visible(f"{name:{widths[0]}}  {value:{widths[1]}}  {origin}"))


def _told(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
