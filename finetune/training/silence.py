"""Silence of the training libraries: what matters is told by results, errors and the bar."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

_LIBRARIES = ("transformers", "trl", "peft", "accelerate", "torch.distributed")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keep warnings, logs and bars of the training libraries off the terminal."""
    # Imported first: they set their loggers' levels then.
    bars: list[Any] = [import_module("transformers.utils.logging"), import_module("datasets")]
    import_module("trl")
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    levels = [logger.level for logger in loggers]
    shown = [
        bars[0].is_progress_bar_enabled(),
        not bars[1].utils.are_progress_bars_disabled(),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bars[0].disable_progress_bar()
        bars[1].disable_progress_bars()
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            if shown[0]:
                bars[0].enable_progress_bar()
            if shown[1]:
                bars[1].enable_progress_bars()
