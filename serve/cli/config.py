"""The command `casewright config`: every setting with its value and origin."""

from __future__ import annotations

import json
from typing import Any

from typer import Typer, echo

from casewright.serve.cli.options import AsJson, ConfigFile
from casewright.serve.cli.output import print_json, visible

app = Typer(add_completion=False)


@app.command()
def config(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show every setting with its value and origin; secrets are masked."""
    from casewright.serve.settings.settings import load_settings, unknown_variables

    loaded = load_settings(config)
    # With mode="json", pydantic masks secrets.
    values = loaded.settings.model_dump(mode="json")
    for name, suggestion in unknown_variables().items():
        echo(visible(f"The variable {name} is unknown. Did you mean {suggestion}?"), err=True)
    if as_json:
        settings = {
            name: {
                "value": values[name],
                "origin": origin.kind,
                "where": origin.where,
                "about": type(loaded.settings).model_fields[name].description,
            }
            for name, origin in loaded.origins.items()
        }
        file = None if loaded.file is None else str(loaded.file)
        print_json({"file": file, "settings": settings})
        return
    rows = [(name, _as_text(values[name]), str(origin)) for name, origin in loaded.origins.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, origin in rows:
        echo(visible(f"{name:{widths[0]}}  {value:{widths[1]}}  {origin}"))


def _as_text(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
