"""Configuration files: every flag of a command as TOML, read and written again."""

import json
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ordinate.cli.flags import parse_json_object
from ordinate.errors import BadInput, BadOption, shorten, suggest_names

FlagTypes = Mapping[str, type]
CODE_FLAG = "load"  # the flag that runs code, which comes from the command line only
TYPE_NAMES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a string or a list of strings",
    dict: "a table, such as {degree = 3}, or a string of JSON",
}


def merge_flags(given: Mapping[str, Any], path: str | None, types: FlagTypes) -> dict[str, Any]:
    """Return what the command line says, and where it says nothing, what the file says.

    `types` has every flag that the file may set, by its name with underscores, as
    `list_flag_types` returns it.
    """
    flags = {name: value for name, value in given.items() if name in types and value is not None}
    return flags if path is None else read_config(path, types, code=CODE_FLAG in given) | flags


def read_config(path: str, types: FlagTypes, *, code: bool = False) -> dict[str, Any]:
    """Return the flags of a TOML file, by their names with underscores; each is checked.

    `code` says whether the command takes Python code, which no file may ask for.
    """
    found: dict[str, Any] = {}
    for key, value in _parse_toml(path).items():
        name = key.replace("-", "_")
        if name == CODE_FLAG and code:
            raise BadOption(
                f"{path}: {CODE_FLAG} runs Python code, which no file may ask for. Say "
                f"--{CODE_FLAG} FILE.py on the command line."
            )
        if name not in types:
            known = [format_flag(one) for one in types]
            raise BadOption(
                f"{path}: {shorten(key)} is no flag of this "
                f"command.{suggest_names(format_flag(name), known)} "
                f"The flags are: {', '.join(known)}."
            )
        if name in found:
            raise BadOption(
                f"{path}: {format_flag(name)} is set twice, as {format_flag(name)} and {name}."
            )
        found[name] = _check_value(path, name, value, types[name])
    return found


def format_toml(values: Mapping[str, Any]) -> str:
    """Return flags as TOML, which `read` takes; what is None is left out.

    >>> print(format_toml({"top_k": 5, "models": ["logistic"], "timeout": None}), end="")
    top-k = 5
    models = ["logistic"]
    """
    lines = [
        f"{format_flag(name)} = {_format_value(x)}" for name, x in values.items() if x is not None
    ]
    return "".join(f"{line}\n" for line in lines)


def format_command(name: str, values: Mapping[str, Any]) -> str:
    """Return the command line that says the same.

    >>> format_command("tune", {"experiment": "my study", "nested": True, "train": ["a", "b"]})
    "ordinate tune --experiment 'my study' --nested --train a --train b"
    """
    words = ["ordinate", name]
    for option, value in values.items():
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{format_flag(option)}")
        else:
            several = value if isinstance(value, (list, tuple)) else [value]
            for one in several:
                said = json.dumps(one) if isinstance(one, dict) else str(one)
                words += [f"--{format_flag(option)}", said]
    return shlex.join(words)


def format_flag(name: str) -> str:
    """Return a name as the command line writes it, without the dashes before it."""
    return name.replace("_", "-")


def _parse_toml(path: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise BadInput(f"{shorten(path)} cannot be read: {problem.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadInput(f"{path} is no TOML: {problem}. Write lines such as seed = 5.") from None


def _check_value(path: str, name: str, value: Any, type_: type) -> Any:
    """Return the value of a flag, an integer also where any number will do."""
    if type_ is list:
        several = [value] if isinstance(value, str) else value
        if isinstance(several, list) and all(isinstance(one, str) for one in several):
            return several
    elif type_ is float and type(value) is int:
        return float(value)
    elif type_ is dict and isinstance(value, (dict, str)):
        # what JSON lacks, such as dates, becomes a string
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        return parse_json_object(f"{path}: {format_flag(name)}", text)
    elif issubclass(type_, str) and isinstance(value, str):
        return type_(value)  # a path of its own type where the flag takes one
    elif type(value) is type_:
        return value
    expected = TYPE_NAMES[str if issubclass(type_, str) else type_]
    raise BadOption(f"{path}: {format_flag(name)} takes {expected}, not {shorten(value)}.")


def _format_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        value = json.dumps(value)
    # JSON and TOML write strings, numbers and booleans alike, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
