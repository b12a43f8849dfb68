"""Tells at the foot of every page which version the site is of."""

from __future__ import annotations

from importlib.metadata import version

from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have the theme show the version that is installed, where it shows a copyright."""
    config.copyright = f"Casewright {version('casewright')}"
    return config
