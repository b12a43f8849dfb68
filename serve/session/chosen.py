"""What commands that open a domain work with: their flags, else the settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.domains import Domain
    from casewright.planner.named import ModelSettings
    from casewright.serve.settings.settings import Loaded


@dataclass(frozen=True, slots=True)
class Chosen:
    """The domain, and what answers for it; ``None`` is each one's own default.

    Attributes:
        domain: The domain.
        planner: The planner's name.
        generator: Who words the answer.
        encoder: A sentence-transformers model.
        adapter: Of the planner's local model.
        device: Where that runs.
        dtype: In which numbers.
        feedback: Who judges what searches find.
    """

    domain: Domain
    planner: str | None
    generator: str
    encoder: str | None
    adapter: str | None
    device: str | None
    dtype: str | None
    feedback: str | None

    @property
    def model(self) -> ModelSettings:
        """Settings of the planner's language model."""
        from casewright.planner.named import ModelSettings

        return ModelSettings(self.adapter, self.device, self.dtype)


def chosen(config: Path | None, own: Domain | None = None, **flags: str | None) -> Chosen:
    """Read the settings, and return what of them ``chosen_of`` does.

    Args:
        config: The TOML file that ``--config`` names.
        own: What ``chosen_domain`` returned, where it was asked before.
        flags: What the command was given, by the setting's name; ``None`` where it was not.

    Raises:
        InputError: A setting cannot be read.
    """
    from casewright.serve.settings.settings import load_settings

    return chosen_of(load_settings(config, **flags), own)


def chosen_domain(loaded: Loaded) -> Domain:
    """Return the domain that settings choose.

    Raises:
        InputError: There is no such domain, or a settings file names code.
    """
    from casewright.domains import find_domain
    from casewright.domains.python_file import is_place

    name, origin = loaded.settings.domain, loaded.origins["domain"]
    if is_place(name) and origin.kind == "file":
        # A settings file is read wherever a command is run; code is run where somebody says so.
        raise InputError(
            f"{origin}: the domain {name} is Python code, which a settings file may not name. "
            "Give it as --domain, or in CASEWRIGHT_DOMAIN."
        )
    return find_domain(name)


def chosen_of(loaded: Loaded, own: Domain | None = None) -> Chosen:
    """Return what settings choose, and keep this process's stores where they say.

    A setting that this domain or planner has no use for is left out, so that one file serves all
    of them; a flag that it has no use for is left in, to be refused.
    """
    from casewright.planner.named import named_planner, of_adapter
    from casewright.serve.session.default_planner import default_planner
    from casewright.serve.settings.settings import choose_folders

    choose_folders(loaded)
    settings = loaded.settings
    domain = own or chosen_domain(loaded)
    planner, adapter = settings.planner, settings.adapter
    if loaded.origins["adapter"].kind == "flag" and loaded.origins["planner"].kind != "flag":
        # The flag beats a planner of the settings that could not take it.
        takes = planner is not None and "adapter" in named_planner(planner).takes
        planner, adapter = of_adapter(planner if takes else None, adapter)
    planner = planner or default_planner(domain)
    useless = {"adapter", "device", "dtype"} - named_planner(planner).takes
    if domain.looping is None:
        useless.add("feedback")
    answering = {"domain": domain, "planner": planner, "adapter": adapter}
    found: dict[str, Any] = {
        name: None if name in useless and loaded.origins[name].kind != "flag" else value
        for name in Chosen.__slots__
        for value in [answering[name] if name in answering else getattr(settings, name)]
    }
    return Chosen(**found)
