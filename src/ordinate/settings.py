"""Settings: each declared once with its help and its bounds, and filled by a flag of its name.

A field of a data class, or a keyword argument of a function, is a setting when its annotation says
so: `trials: Annotated[int, Setting("trials of each study", least=1)] = 20`. From that come the
flag, its type, its default and its help on the command line, the key of a configuration file, and
the check, whose error names the flag.
"""

import inspect
import math
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ordinate.errors import BadOption, shorten, suggest_names

REQUIRED = object()  # the default of a setting that has none


@dataclass(frozen=True)
class Setting:
    """What is known of a setting beside its name, its type and its default.

    Numbers lie between `least` and `most`. `default` is how help shows the default where the value
    itself says too little; `metavar` is what help writes for the value. `flag` is for a setting
    whose flag has another name, `letter` is a short flag beside the long one, such as -e; `path`
    says that a file is read, or the folder of an experiment or a search.
    """

    help: str
    metavar: str | None = None
    least: float = -math.inf
    most: float = math.inf
    default: str | None = None
    flag: str | None = None
    letter: str | None = None
    path: Literal["file", "folder"] | None = None


Level = Annotated[
    float, Setting("level of the confidence intervals", metavar="LEVEL", flag="--interval")
]
Resamples = Annotated[int, Setting("of the bootstrap", metavar="N")]
Seed = Annotated[int, Setting("of random numbers", least=0)]


@dataclass(frozen=True)
class DeclaredSetting:
    """A setting of a data class or a function, as its declaration says."""

    name: str
    setting: Setting
    value_type: type  # bool, int, float, str, list (of strings) or dict
    choices: tuple[str, ...]  # of a string; none where it may be any
    default: Any  # REQUIRED where there is none
    optional: bool  # whether None is a value

    @property
    def flag(self) -> str:
        """The flag that fills it."""
        return self.setting.flag or format_flag(self.name)

    @property
    def key(self) -> str:
        """The name of its flag as the command line and configuration files keep it."""
        return self.flag.removeprefix("--").replace("-", "_")

    def check(self, value: Any) -> None:
        """Refuse a value that cannot be."""
        if value is None and self.optional:
            return
        if self.choices:
            check_choice(self.name, value, self.choices)
        elif self.value_type is bool:
            check_boolean(self.name, value)
        elif self.value_type is int:
            check_integer(self.name, value, self.setting.least, self.setting.most)
        elif self.value_type is float:
            check_number(self.name, value, self.setting.least, self.setting.most)


@cache
def list_settings(owner: Any) -> tuple[DeclaredSetting, ...]:
    """Return the settings that a data class or a function declares, in their order.

    >>> @dataclass
    ... class Example:
    ...     folds: Annotated[int, Setting("of cross-validation", least=2)] = 5
    >>> [(one.flag, one.value_type.__name__, one.default) for one in list_settings(Example)]
    [('--folds', 'int', 5)]
    """
    hints = get_type_hints(owner, include_extras=True)
    return tuple(
        _read_declaration(name, hints[name], default)
        for name, default in _list_defaults(owner)
        if get_origin(hints.get(name)) is Annotated
        and isinstance(hints[name].__metadata__[-1], Setting)
    )


def check_settings(values: object) -> None:
    """Refuse a data class whose settings are not what they are declared to be."""
    owner: Any = type(values)
    for one in list_settings(owner):
        one.check(getattr(values, one.name))


def _list_defaults(owner: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(owner):
        for field in fields(owner):
            made = REQUIRED if field.default_factory is MISSING else field.default_factory()
            yield field.name, made if field.default is MISSING else field.default
        return
    for name, parameter in inspect.signature(owner).parameters.items():
        required = parameter.default is parameter.empty
        yield name, REQUIRED if required else parameter.default


def _read_declaration(name: str, hint: Any, default: Any) -> DeclaredSetting:
    setting = hint.__metadata__[-1]
    allowed = _list_alternatives(get_args(hint)[0])
    plain = [one for one in allowed if one is not types.NoneType]
    choices = tuple(
        choice for one in plain if get_origin(one) is Literal for choice in get_args(one)
    )
    value_type = str if choices or setting.path else _find_value_type(plain)
    return DeclaredSetting(
        name, setting, value_type, choices, default, optional=types.NoneType in allowed
    )


def _list_alternatives(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        return get_args(hint)
    return (hint,)


def _find_value_type(alternatives: Sequence[Any]) -> type:
    """Return what a flag gives: a list where a sequence may be, even if a string may be as well."""
    origins = [get_origin(one) or one for one in alternatives]
    for value_type in (bool, int, float):
        if value_type in origins:
            return value_type
    containers = [one for one in origins if one is not str]
    if not containers:
        return str
    return dict if issubclass(containers[0], Mapping) else list


# --- checks --------------------------------------------------------------------------------------


def check_integer(name: str, value: Any, least: float, most: float = math.inf) -> None:
    """Refuse what is no integer between two bounds.

    >>> check_integer("top_k", 3, least=1)
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        bounds = f" of at least {least:g}" if math.isfinite(least) else ""
        bounds = f" of {least:g} to {most:g}" if math.isfinite(most) else bounds
        raise BadOption(f"{format_flag(name)} takes an integer{bounds}, not {shorten(value)}.")


def check_number(name: str, value: Any, least: float, most: float) -> None:
    """Refuse what is no finite number between two bounds; None stands for nothing said."""
    if value is None:
        return
    right = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (right and math.isfinite(value) and least <= value <= most):
        bounds = f" of {least:g} to {most:g}" if math.isfinite(least + most) else ""
        bounds = bounds or (f" of at least {least:g}" if math.isfinite(least) else "")
        raise BadOption(f"{format_flag(name)} takes a finite number{bounds}, not {shorten(value)}.")


def check_boolean(name: str, value: Any) -> None:
    """Refuse what is neither True nor False.

    >>> check_boolean("nested", False)
    """
    if not isinstance(value, bool):
        raise BadOption(f"{format_flag(name)} takes True or False, not {shorten(value)}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        near = suggest_names(str(value), list(choices))
        raise BadOption(
            f"{format_flag(name)} takes {', '.join(choices[:-1])} or {choices[-1]}, not "
            f"{shorten(value)}.{near}"
        )


def format_flag(name: str) -> str:
    """Return the flag that fills a setting.

    >>> format_flag("group_column")
    '--group-column'
    """
    return "--" + name.replace("_", "-")
