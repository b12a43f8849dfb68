"""Starts the service from its settings."""

from __future__ import annotations

import gc
from contextlib import ExitStack, closing, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.planner.named import refuse_single_user_planner
from casewright.serve.service.answers import AnswerStore
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.server import listening_socket, run
from casewright.serve.service.telemetry import export_spans
from casewright.serve.service.tokens import check_exposure
from casewright.serve.session.choice import ChosenParts, chosen_parts
from casewright.serve.session.defaults import store_folder
from casewright.serve.session.session import Session, open_chosen
from casewright.serve.settings.settings import load_settings
from casewright.serve.settings.tokens import TokensFile, read_tokens
from casewright.stores.encoders.onnx_graph import Bert
from casewright.stores.paths import data_folder

#: The settings that are arguments of ``server.run``.
_RUN_SETTINGS = {
    *("shutdown_seconds", "request_seconds", "header_seconds", "log_level"),
    *("max_connections", "max_connections_per_address"),
}


def start(config: Path | None = None, **flags: Any) -> None:
    """Open the domain, and serve until a signal; see ``load_settings`` for the arguments.

    Raise ``CasewrightError`` if a setting is invalid, or the domain cannot be opened.
    """
    loaded = load_settings(config, **flags)
    settings = loaded.settings
    # Threads are in a file or a database. A flag for the one clears the setting for the other.
    if flags.get("threads_url") is not None:
        settings = settings.model_copy(update={"threads_file": None})
    elif flags.get("threads_file") is not None:
        settings = settings.model_copy(update={"threads_url": None})
    tokens = read_tokens(settings)
    if flags.get("without_tokens") and tokens:
        raise InputError(
            "--without-tokens is given, but bearer tokens are set. Leave out the flag or the "
            "tokens; casewright config shows their origin."
        )
    check_exposure(settings.host, tokens, without_tokens=settings.without_tokens)
    # If ``shared_runs`` is true, texts of concurrent questions are encoded together.
    Bert.shares_runs = settings.shared_runs
    chosen = chosen_parts(loaded)
    refuse_single_user_planner(chosen.planner)
    with ExitStack() as stack:
        # The socket is opened first, so that a taken port is reported at once.
        server_socket = stack.enter_context(
            listening_socket(settings.host, settings.port, share=settings.share_port)
        )
        session = stack.enter_context(closing(open_chosen(chosen)))
        parts = service_parts(session, chosen)
        option_names = {field.name for field in fields(ServiceOptions)} - {"tokens", "threads_url"}
        options = ServiceOptions(
            tokens=tokens,
            changed_tokens=TokensFile(settings).reread,
            threads_url=settings.threads_url.get_secret_value() if settings.threads_url else None,
            **settings.model_dump(include=option_names),
        )
        stack.enter_context(export_spans() if settings.otel else nullcontext())
        answers = None
        if settings.retain != "off":
            folder = data_folder() / "answers" / store_folder(parts.domain, chosen.encoder).name
            folder.mkdir(parents=True, exist_ok=True)
            answers = stack.enter_context(closing(AnswerStore(session.encoder, folder)))
        app = create_app(parts, options, answers)
        # All objects so far live until the end; to search them for garbage would delay requests.
        gc.collect()
        gc.freeze()
        run(app, server_socket, **settings.model_dump(include=_RUN_SETTINGS))


def service_parts(session: Session, chosen: ChosenParts) -> Parts:
    """Return the parts of a service for an open session."""
    return Parts(
        domain=session.domain.name,
        toolbox=session.opened.toolbox,
        planner=session.planner,
        generator=session.generator(chosen.generator),
        scopes=session.domain.scopes,
        stores=session.opened.stores,
        description=session.domain.description,
        questions=session.domain.questions,
    )
