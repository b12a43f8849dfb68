"""MkDocs hook: shows the version of Casewright at the foot of every page."""

from __future__ import annotations

from importlib.metadata import version

from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the theme's copyright line to the name and the installed version."""
    config.copyright = f"Casewright {version('casewright')}"
    return config
