"""Old names in, new names out: what `renames.json` says, applied to commands, calls and records.

The cases speak the old names throughout. The tables of `renames.json`, each old -> new:

- `commands`: words that a command line begins with, "evaluate --task values"; the longest match.
- `flags`: "--draws"; of one command only, "compare --draws"; of one value, "--decode average" ->
  "--decode rounded_mean" (also of a value in a list with commas). Keys of TOML files follow.
- `python`: dotted names; a renamed prefix takes along what is below it.
- `python_arguments`: names of keyword arguments; of one function only, "ordinate.compare.draws".
- `keys`: keys of JSON and columns of CSV; with the end of a path, "metrics.*.first_in". A path
  begins with the name of the case, positions in lists do not count, and each part may have * and ?.
- `values`: words that are values, such as verdicts, and parts of paths of files; of some places
  only, "verdict:undecided" with the end of a path before the colon.
- `accepted`: "CASE PATH" with * and ? -> the reason: differences that are meant.
"""

import json
import re
import shlex
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TABLES = ("commands", "flags", "python", "python_arguments", "keys", "values", "accepted")
ENDING = re.compile(r"([^(=]*)(.*)", re.DOTALL)
Place = tuple[str, ...]


class Renames:
    """The tables of `renames.json`."""

    def __init__(self, tables: dict[str, dict[str, str]]) -> None:
        unknown = set(tables) - set(TABLES)
        if unknown:
            raise ValueError(f"renames.json has unknown tables: {', '.join(sorted(unknown))}")
        for name in TABLES:
            setattr(self, name, tables.get(name, {}))

    @classmethod
    def load(cls, path: Path = FOLDER / "renames.json") -> "Renames":
        """Read the tables from a file."""
        return cls(json.loads(path.read_text("utf-8")))

    # --- command lines -----------------------------------------------------------------------

    def rename_words(self, command: str, words: Iterable[str]) -> list[str]:
        """Return the words of a command line, the command first."""
        (found, rest), flag = self._rename_command(command), ""
        for word in (*rest, *words):
            if word.startswith("-") and len(word) > 1 and not word[1].isdigit():
                flag = word
                found += shlex.split(self.rename_flag(command, flag))
            else:
                found.append(self.rename_setting(command, flag, word))
        return found

    def rename_flag(self, command: str, flag: str) -> str:
        """Return a flag as it is called now."""
        return self._find_flag(command, flag) or flag

    def rename_setting(self, command: str, flag: str, word: str) -> str:
        """Return what follows a flag, or an argument that follows none."""
        if not flag:
            return self.rename_place(word)
        return ",".join(self._rename_word(command, flag, part) for part in word.split(","))

    def rename_place(self, path: str) -> str:
        """Return a path, each part of it by its new name."""
        return "/".join(self.values.get(part, part) for part in path.split("/"))

    def _rename_command(self, command: str) -> tuple[list[str], list[str]]:
        """Return the words that a command is called by, and the flags that are left to rename."""
        words = command.split()
        called = 0
        found: list[str] = []
        for count in range(len(words), 0, -1):
            new = self.commands.get(" ".join(words[:count]))
            if new is not None:
                called, found = count, new.split()
                break
        while called < len(words) and not words[called].startswith("-"):
            found.append(words[called])
            called += 1
        return found, words[called:]

    def _find_flag(self, command: str, flag: str) -> str | None:
        """Look for the flag of this command first, then for that of all commands."""
        words = command.split()
        for count in range(len(words), -1, -1):
            new = self.flags.get(" ".join([*words[:count], flag]))
            if new is not None:
                return new
        return None

    def _rename_word(self, command: str, flag: str, word: str) -> str:
        """Return one value of a flag; of rmse=40 and ece(bins=5), the name before may be new."""
        name, rest = ENDING.fullmatch(word).groups()
        for part, end in ((word, ""), (name, rest)):
            new = self._find_flag(command, f"{flag} {part}")
            if new is not None:
                return shlex.split(new)[-1] + end
        return self.rename_place(word)

    # --- Python ------------------------------------------------------------------------------

    def rename_dotted(self, name: str) -> str:
        """Return a dotted name as it is called now."""
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            new = self.python.get(".".join(parts[:count]))
            if new is not None:
                return ".".join([new, *parts[count:]])
        return name

    def rename_argument(self, function: str, name: str) -> str:
        """Return a keyword argument of a function as it is called now."""
        return self.python_arguments.get(
            f"{function}.{name}", self.python_arguments.get(name, name)
        )

    # --- records -----------------------------------------------------------------------------

    def rename_key(self, path: Place) -> str:
        """Return the last key of a path as it is called now."""
        old = path[-1]
        for parts, new in self._key_patterns.get(old, ()):
            if _ends_with(path, parts):
                return new
        return self.keys.get(old, old)

    def rename_value(self, path: Place, word: str) -> str | None:
        """Return a word as it is called now, or None where nothing is said of it."""
        for parts, new in self._value_patterns.get(word, ()):
            if _ends_with(path, parts):
                return new
        return self.values.get(word)

    def accept(self, case: str, path: str) -> bool:
        """Tell whether a difference is meant."""
        return any(fnmatchcase(f"{case} {path}", pattern) for pattern in self.accepted)

    @cached_property
    def _key_patterns(self) -> dict[str, list[tuple[Place, str]]]:
        """Paths by their last key, the longest first: these say most about a place."""
        found: dict[str, list[tuple[Place, str]]] = {}
        for pattern, new in self.keys.items():
            parts = tuple(pattern.split("."))
            if len(parts) > 1:
                found.setdefault(parts[-1], []).append((parts, new))
        return {key: sorted(some, key=lambda one: -len(one[0])) for key, some in found.items()}

    @cached_property
    def _value_patterns(self) -> dict[str, list[tuple[Place, str]]]:
        found: dict[str, list[tuple[Place, str]]] = {}
        for pattern, new in self.values.items():
            place, colon, word = pattern.rpartition(":")
            if colon:
                found.setdefault(word, []).append((tuple(place.split(".")), new))
        return {word: sorted(some, key=lambda one: -len(one[0])) for word, some in found.items()}


def _ends_with(path: Place, parts: Place) -> bool:
    if len(path) < len(parts):
        return False
    tail = path[len(path) - len(parts) :]
    return all(fnmatchcase(name, part) for name, part in zip(tail, parts, strict=True))


RENAMES = Renames.load()


def resolve(name: str) -> Any:
    """Return what an old dotted name stands for now.

    The last part is never imported: a package may have the name of a public function.
    """
    parts = RENAMES.rename_dotted(name).split(".")
    for count in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:count])
        try:
            found = import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise  # the module is there, and something that it needs is not
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(f"Nothing of {'.'.join(parts)} can be imported.")


def call(name: str, /, *positional: Any, **named: Any) -> Any:
    """Call a function, a class or, with its object first, a method by its old name."""
    renamed = {RENAMES.rename_argument(name, key): value for key, value in named.items()}
    return resolve(name)(*positional, **renamed)


def read_attribute(owner: Any, name: str) -> Any:
    """Return an attribute of an object by the old dotted name that it has in its class."""
    return getattr(owner, RENAMES.rename_dotted(name).rpartition(".")[2])
