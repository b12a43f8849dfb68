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
    library: Any = import_module("transformers.utils.logging")
    data: Any = import_module("datasets")
    import_module("trl")
    loggers = {logging.getLogger(name): logging.getLogger(name).level for name in _LIBRARIES}
    bars = library.is_progress_bar_enabled(), not data.utils.are_progress_bars_disabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.disable_progress_bar()
        data.disable_progress_bars()
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in loggers.items():
                logger.setLevel(level)
            if bars[0]:
                library.enable_progress_bar()
            if bars[1]:
                data.enable_progress_bars()
