"""Starting the service from settings: what is opened first, and closed last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner.named import check_shared
from casewright.serve.service.answers import Answers
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.server import listening, run
from casewright.serve.service.tokens import check_exposure
from casewright.serve.session.chosen import chosen_of
from casewright.serve.session.session import open_chosen
from casewright.serve.settings.settings import load_settings
from casewright.serve.settings.tokens import Grant, TokensFile, read_tokens
from casewright.stores.paths import data_folder

if TYPE_CHECKING:
    from casewright.serve.settings.settings import Settings
    from casewright.stores import Encoder


def start(config: Path | None = None, **flags: Any) -> None:
    """Open the domain, and serve until a signal says to end.

    Args:
        config: The TOML file of settings; see ``load_settings``.
        flags: Values of flags by the setting's name; ``None`` leaves a setting to environment,
            file and default.

    Raises:
        CasewrightError: A setting has no such value, or something cannot be opened.
    """
    # Read once: a flag is to hide what the environment says, be that right or wrong.
    loaded = load_settings(config, **flags)
    settings = loaded.settings
    # The flag is one of two settings, and hides both.
    if flags.get("threads_url") is not None:
        settings = settings.model_copy(update={"threads_file": None})
    elif flags.get("threads_file") is not None:
        settings = settings.model_copy(update={"threads_url": None})
    tokens = read_tokens(settings)
    if flags.get("without_tokens") and tokens:
        raise InputError(
            "--without-tokens is given, and so are bearer tokens, which would be asked for. Leave "
            "the flag out, or the tokens; casewright config shows where those come from."
        )
    check_exposure(settings.host, tokens, without_tokens=settings.without_tokens)
    using = chosen_of(loaded)
    check_shared(using.planner)
    # Before what takes long: a port that is taken is told at once.
    opened = listening(settings.host, settings.port, share=settings.share_port)
    try:
        session = open_chosen(using)
    except BaseException:
        opened.close()
        raise
    try:
        parts = Parts(
            domain=session.domain.name,
            toolbox=session.opened.toolbox,
            planner=session.planner,
            generator=session.generator(using.generator),
            scopes=session.domain.scopes,
            stores=session.opened.stores,
            description=session.domain.description,
            questions=session.domain.questions,
        )
        with _answers(settings, session.encoder, session.domain.name, using.encoder) as answers:
            app = create_app(parts, options_of(settings, tokens), answers)
            run(
                app,
                opened,
                shutdown_seconds=settings.shutdown_seconds,
                request_seconds=settings.request_seconds,
                header_seconds=settings.header_seconds,
                max_connections=settings.max_connections,
                max_connections_per_address=settings.max_connections_per_address,
                log_level=settings.log_level,
            )
    finally:
        session.close()
        opened.close()


def options_of(settings: Settings, tokens: dict[str, Grant]) -> ServiceOptions:
    """Return what the settings say of the service."""
    same = {option.name for option in fields(ServiceOptions)} - {"tokens", "threads_url"}
    return ServiceOptions(
        tokens=tokens,
        tokens_again=TokensFile(settings).again,
        threads_url=settings.threads_url.get_secret_value() if settings.threads_url else None,
        **settings.model_dump(include=same),
    )


@contextmanager
def _answers(
    settings: Settings, encoder: Encoder, domain: str, encoder_name: str | None
) -> Iterator[Answers | None]:
    """Open the kept answers of a domain, where any are kept: each encoder has its own."""
    if settings.retain == "off":
        yield None
        return
    from casewright.serve.session.place import place_of

    folder = data_folder() / "answers" / place_of(domain, encoder_name).name
    folder.mkdir(parents=True, exist_ok=True)
    answers = Answers(encoder, folder)
    try:
        yield answers
    finally:
        answers.close()
