"""Chooses a domain, a planner, a generator and models from a command's flags and settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.domains import Domain
    from casewright.planner.named import ModelSettings
    from casewright.serve.settings.settings import Loaded


@dataclass(frozen=True, slots=True)
class ChosenParts:
    """A domain, with the other parts of a session by name.

    Attributes:
        encoder: ``None`` for the packaged encoder.
        model: Settings of the planner's model.
        judge: The judge of relevance feedback; ``None`` for no feedback.
    """

    domain: Domain
    planner: str
    generator: str
    encoder: str | None
    model: ModelSettings
    judge: str | None


def read_chosen_parts(
    config: Path | None, domain: Domain | None = None, /, **flags: str | None
) -> ChosenParts:
    """Return the parts that the settings choose; see ``load_settings`` and ``chosen_parts``."""
    from casewright.serve.settings.settings import load_settings

    return chosen_parts(load_settings(config, **flags), domain)


def chosen_domain(loaded: Loaded) -> Domain:
    """Return the settings' domain; raise ``InputError`` if a settings file names Python code."""
    from casewright.domains import find_domain
    from casewright.domains.python_file import is_file_reference

    name, origin = loaded.settings.domain, loaded.origins["domain"]
    if is_file_reference(name) and origin.kind == "file":
        # The settings file must not run code, since the user may not know of the file.
        raise InputError(
            f"{origin}: the domain {name} is Python code, which a settings file may not name. "
            "Give it as --domain, or in CASEWRIGHT_DOMAIN."
        )
    return find_domain(name)


def chosen_parts(loaded: Loaded, domain: Domain | None = None) -> ChosenParts:
    """Return the parts that loaded settings choose; also set the folders of stores and caches.

    A setting that does not apply to the domain or the planner is ignored, so that one settings file
    serves all domains and planners. ``open_session`` refuses a flag that does not apply.
    """
    from casewright.planner.named import ModelSettings, named_planner, planner_for_adapter
    from casewright.serve.session.defaults import default_planner
    from casewright.serve.settings.settings import choose_folders

    choose_folders(loaded)
    settings, origins = loaded.settings, loaded.origins
    domain = domain or chosen_domain(loaded)
    planner, adapter = settings.planner, settings.adapter
    if origins["adapter"].kind == "flag" and origins["planner"].kind != "flag":
        # If the settings' planner takes no adapter, choose a planner for the adapter.
        takes_adapter = planner is not None and "adapter" in named_planner(planner).takes
        planner, adapter = planner_for_adapter(planner if takes_adapter else None, adapter)
    planner = planner or default_planner(domain)
    not_applicable = {"adapter", "device", "dtype"} - named_planner(planner).takes
    if domain.looping is None:  # The domain's searches take no judge.
        not_applicable.add("feedback")

    def if_applicable(name: str, value: str | None) -> str | None:
        return None if name in not_applicable and origins[name].kind != "flag" else value

    device, dtype = if_applicable("device", settings.device), if_applicable("dtype", settings.dtype)
    model = ModelSettings(if_applicable("adapter", adapter), device, dtype)
    judge = if_applicable("feedback", settings.feedback)
    return ChosenParts(domain, planner, settings.generator, settings.encoder, model, judge)
