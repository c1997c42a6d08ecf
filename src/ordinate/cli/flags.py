"""Flags of settings: name, type, help and default come from the declaration that they fill."""

import argparse
import csv
import json
import shlex
from collections.abc import Collection, Mapping
from typing import Any, Self

from ordinate.errors import BadOption, shorten
from ordinate.settings import REQUIRED, DeclaredSetting, format_flag, list_settings

METAVARS = {int: "N", float: "X", list: "A,B,…", dict: "JSON"}


FLAGS = {"label_map": "--map FILE, a proposal of which --propose-map FILE writes"}


def name_flag(option: str, value: Any = ...) -> str:
    """Return an option as the command line takes it.

    >>> name_flag("missing", "drop"), name_flag("renormalize", True)
    ('--missing drop', '--renormalize')
    """
    flag = FLAGS.get(option, format_flag(option))
    if value is ... or isinstance(value, bool):
        return flag if value else format_flag(f"no_{option}")
    shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{flag} {shlex.quote(shown)}"


class InputPath(str):
    """A path that a command reads, and so never writes: the type of every flag that names one."""

    __slots__ = ()


class StorePath(InputPath):
    """The folder of an experiment or of a search, in which reports may be written."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Refuse an address, of whose password a folder would be made."""
        if "://" in text:
            raise argparse.ArgumentTypeError(f"{text} is an address and no folder")
        return super().__new__(cls, text)


PATH_TYPES = {"file": InputPath, "folder": StorePath}


def add_flags(
    parser: argparse._ActionsContainer,
    owner: Any,
    only: Collection[str] | None = None,
    *,
    without: Collection[str] = (),
    config: bool = False,
) -> None:
    """Add the flags of the settings that a data class or a function declares.

    A flag that is not given leaves nothing behind, so that the owner's own default counts. `only`
    names the settings that get a flag here; `config` says that a configuration file may give what
    is required.

    >>> from dataclasses import dataclass
    >>> from typing import Annotated
    >>> from ordinate.settings import Setting
    >>> @dataclass
    ... class Search:
    ...     folds: Annotated[int, Setting("of cross-validation", metavar="K", least=2)] = 5
    ...     models: Annotated[list[str] | None, Setting("model types")] = None
    >>> parser = argparse.ArgumentParser()
    >>> add_flags(parser, Search)
    >>> given = collect_given(parser.parse_args(["--models", "svm,forest"]), Search)
    >>> Search(**given)
    Search(folds=5, models=['svm', 'forest'])

    In a configuration file the keys are the same: `merge_flags(given, path, list_flag_types(Search))`.
    """  # noqa: E501 - a call is one line
    for one in list_settings(owner):
        if one.name not in without and (only is None or one.name in only):
            _add_flag(parser, one, required=one.default is REQUIRED and not config)


def collect_given(options: argparse.Namespace, *owners: Any) -> dict[str, Any]:
    """Return the settings of the owners that the command line gave, by their names."""
    settings = [one for owner in owners for one in list_settings(owner)]
    return {one.name: getattr(options, one.key) for one in settings if hasattr(options, one.key)}


def list_flag_types(*owners: Any) -> dict[str, type]:
    """Return what a configuration file may set, and to what: the settings of the owners.

    >>> from ordinate.cli.config import merge_flags
    >>> from ordinate.settings import Setting
    >>> from typing import Annotated
    >>> def tune(*, seed: Annotated[int, Setting("of all draws")] = 0): ...
    >>> list_flag_types(tune)
    {'seed': <class 'int'>}
    """
    return {one.key: _get_flag_type(one) for owner in owners for one in list_settings(owner)}


def parse_names(option: str, text: str) -> tuple[str, ...]:
    """Return names separated by commas; a name with a comma stands in quotes."""
    try:
        found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:
        found = []
    if not found or not all(found):
        raise BadOption(f"{option} takes names separated by commas, such as a,b, not {text!r}.")
    return tuple(found)


def parse_json_object(option: str, text: str) -> dict[str, Any]:
    """Return the object that a JSON text holds, in which no key stands twice."""
    from ordinate.errors import BadStore
    from ordinate.tuning.experiment.stored_json import refuse_duplicate_keys

    try:
        found = json.loads(text, object_pairs_hook=refuse_duplicate_keys)
    except (ValueError, BadStore) as problem:
        raise BadOption(f"{option} takes a JSON object, and that is none: {problem}") from None
    if not isinstance(found, dict):
        raise BadOption(f"{option} takes a JSON object, not {shorten(text)}.")
    return found


def parse_number(text: str) -> float | None:
    """Return a number, or None of `none`."""
    try:
        return None if text == "none" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid float value: {text!r}") from None


PARSERS = {list: parse_names, dict: parse_json_object}


def _add_flag(parser: argparse._ActionsContainer, one: DeclaredSetting, *, required: bool) -> None:
    names = [one.flag] if one.setting.letter is None else [one.setting.letter, one.flag]
    parser.add_argument(
        *names,
        default=argparse.SUPPRESS,
        required=required,
        help=_format_help(one),
        **_describe_value(one),
    )


def _describe_value(one: DeclaredSetting) -> Mapping[str, Any]:
    """Return what argparse has to know of the values of a flag."""
    if one.value_type is bool:
        return {"action": argparse.BooleanOptionalAction}
    metavar = one.setting.metavar or METAVARS.get(one.value_type)
    if one.choices:
        spelled = {choice.replace("_", "-"): choice for choice in one.choices}
        return {
            "choices": one.choices,
            "type": lambda text: spelled.get(text, text),
            "metavar": one.setting.metavar,
        }
    if one.value_type in PARSERS:
        return {"action": _ParseText, "const": PARSERS[one.value_type], "metavar": metavar}
    type_ = parse_number if one.value_type is float else _get_flag_type(one)
    return {"type": type_, "metavar": metavar}


def _get_flag_type(one: DeclaredSetting) -> type:
    return one.value_type if one.setting.path is None else PATH_TYPES[one.setting.path]


def _format_help(one: DeclaredSetting) -> str:
    shown = one.setting.default or _format_default(one.default)
    text = f"{one.setting.help} (default: {shown})" if shown else one.setting.help
    return text.replace("%", "%%")


def _format_default(value: Any) -> str:
    """Return how help shows a default; nothing where there is nothing to show."""
    if value is REQUIRED or value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value) if value else ""
    return f"{value:g}" if isinstance(value, float) else str(value)


class _ParseText(argparse.Action):
    """A text that the function in `const` parses; a list grows when its flag is repeated."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - as argparse calls it
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        found: Any = self.const(option_string, values)
        if isinstance(found, tuple):
            found = [*getattr(namespace, self.dest, ()), *found]
        setattr(namespace, self.dest, found)
