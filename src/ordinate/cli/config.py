"""Configuration files: every flag of a command as TOML, read and written again."""

import json
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput, BadOption, brief, suggest

Kinds = Mapping[str, type]
CODE = "load"  # the flag that runs code, which comes from the command line only
WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a text or a list of texts",
    dict: "a table, such as {degree = 3}, or a text of JSON",
}


def merged(given: Mapping[str, Any], path: str | None, kinds: Kinds) -> dict[str, Any]:
    """Return what the command line says, and where it says nothing, what the file says.

    `kinds` has every flag that the file may set, by its name with underscores.
    """
    said = {name: value for name, value in given.items() if name in kinds and value is not None}
    return said if path is None else read(path, kinds) | said


def read(path: str, kinds: Kinds) -> dict[str, Any]:
    """Return the flags of a TOML file, by their names with underscores; each is checked."""
    found: dict[str, Any] = {}
    for key, value in _parsed(path).items():
        name = key.replace("-", "_")
        if name == CODE:
            raise BadOption(
                f"{path}: {CODE} runs Python code, which no file may ask for. Say --{CODE} FILE.py "
                "on the command line."
            )
        if name not in kinds:
            known = [flag(one) for one in kinds]
            raise BadOption(
                f"{path}: {brief(key)} is no flag of this command.{suggest(flag(name), known)} "
                f"The flags are: {', '.join(known)}."
            )
        if name in found:
            raise BadOption(f"{path}: {flag(name)} is set twice, as {flag(name)} and {name}.")
        found[name] = _checked(path, name, value, kinds[name])
    return found


def written(values: Mapping[str, Any]) -> str:
    """Return flags as TOML, which `read` takes; what is None is left out.

    >>> print(written({"top_k": 5, "models": ["logistic"], "timeout": None}), end="")
    top-k = 5
    models = ["logistic"]
    """
    lines = [f"{flag(name)} = {_spelled(x)}" for name, x in values.items() if x is not None]
    return "".join(f"{line}\n" for line in lines)


def command(name: str, values: Mapping[str, Any]) -> str:
    """Return the command line that says the same.

    >>> command("tune", {"experiment": "my study", "nested": True, "train": ["a", "b"]})
    "ordinate tune --experiment 'my study' --nested --train a --train b"
    """
    words = ["ordinate", name]
    for option, value in values.items():
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{flag(option)}")
        else:
            several = value if isinstance(value, (list, tuple)) else [value]
            words += [word for one in several for word in (f"--{flag(option)}", str(one))]
    return shlex.join(words)


def flag(name: str) -> str:
    """Return a name as the command line writes it, without the dashes before it."""
    return name.replace("_", "-")


def _parsed(path: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise BadInput(f"{brief(path)} cannot be read: {problem.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadInput(f"{path} is no TOML: {problem}. Write lines such as seed = 5.") from None


def _checked(path: str, name: str, value: Any, kind: type) -> Any:
    """Return the value of a flag, a whole number also where any number will do."""
    if kind is list:
        several = [value] if isinstance(value, str) else value
        if isinstance(several, list) and all(isinstance(one, str) for one in several):
            return several
    elif kind is float and type(value) is int:
        return float(value)
    elif kind is dict and isinstance(value, (dict, str)):
        # as the command line has it; what JSON lacks, such as dates, becomes a text
        return value if isinstance(value, str) else json.dumps(value, default=str)
    elif type(value) is kind:
        return value
    raise BadOption(f"{path}: {flag(name)} takes {WORDS[kind]}, not {brief(value)}.")


def _spelled(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_spelled, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # JSON and TOML write texts, numbers, true and false alike, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
