"""Options that hide a setting: declared once, given to a command as one mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, get_type_hints

from casewright.serve.cli import options

#: Values by the setting's name; ``None`` leaves a setting to environment, file and default.
Flags = Mapping[str, Any]
#: The option of each setting.
OPTIONS = {
    "domain": options.DefaultedDomainName,
    "planner": options.DefaultedPlannerName,
    "adapter": options.Adapter,
    "device": options.Device,
    "dtype": options.DType,
    "generator": options.DefaultedGeneratorName,
    "encoder": options.EncoderName,
    "feedback": options.FeedbackJudge,
}


def with_flags(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of settings.

    The command takes their values as its parameter ``flags``, and the options stand where that
    parameter does.

    Args:
        names: The settings.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            flags = {name: given.pop(name) for name in names}
            command(flags=flags, **given)

        hints = get_type_hints(command, include_extras=True)
        parameters: list[Parameter] = []
        for own in Signature.from_callable(command).parameters.values():
            if own.name == "flags":
                parameters += [_parameter(name, None, OPTIONS[name]) for name in names]
            else:
                parameters.append(_parameter(own.name, own.default, hints[own.name]))
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        return called

    return decorated


def _parameter(name: str, default: Any, annotation: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
