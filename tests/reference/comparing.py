"""What was recorded beside what is there now, under the new names."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from reading import find_numbers
from renaming import Place, Renames

ABSENT = "(nothing)"
LONGEST = 60  # letters of a value in a message


@dataclass(frozen=True)
class Difference:
    """A place where the two are not the same."""

    path: Place
    old: Any
    new: Any

    @property
    def place(self) -> str:
        """The path as it is written: without the case, with positions in lists."""
        return ".".join(self.path)

    @property
    def hint(self) -> str | None:
        """What a renaming would look like: a key that is gone or new, or a word for another."""
        if self.new == ABSENT:
            return f"key gone: {self.path[-1]}"
        if self.old == ABSENT:
            return f"key new: {self.path[-1]}"
        words = isinstance(self.old, str) and isinstance(self.new, str)
        return f"word: {_show(self.old)} -> {_show(self.new)}" if words else None

    def __str__(self) -> str:
        return f"{self.place}: {_show(self.old)} -> {_show(self.new)}"


class Comparison:
    """Compares records, and counts the numbers that it looked at."""

    def __init__(self, renames: Renames) -> None:
        self.renames, self.numbers = renames, 0

    def find_differences(self, case: str, old: Any, new: Any) -> list[Difference]:
        """Return all places of a case where old, renamed, and new are not the same."""
        return list(self._compare(old, new, (case,), ()))

    def _compare(self, old: Any, new: Any, keys: Place, path: Place) -> Iterator[Difference]:
        """Compare two values; `keys` are the path without the positions in lists."""
        if isinstance(old, dict) and isinstance(new, dict):
            yield from self._compare_dicts(old, new, keys, path)
        elif isinstance(old, list) and isinstance(new, list):
            yield from self._compare_lists(old, new, keys, path)
        elif isinstance(old, str) and isinstance(new, str):
            yield from self._compare_words(old, new, keys, path)
        else:
            self.numbers += _is_number(old)
            if not _is_same(old, new):
                yield Difference(path, old, new)

    def _compare_dicts(
        self, old: dict[str, Any], new: dict[str, Any], keys: Place, path: Place
    ) -> Iterator[Difference]:
        left = dict(new)
        for key, value in old.items():
            name = self.renames.rename_key((*keys, key))
            if name in left:
                yield from self._compare(value, left.pop(name), (*keys, key), (*path, key))
            else:
                yield Difference((*path, key), value, ABSENT)
        for key, value in left.items():
            yield Difference((*path, key), ABSENT, value)

    def _compare_lists(
        self, old: list[Any], new: list[Any], keys: Place, path: Place
    ) -> Iterator[Difference]:
        if path and path[-1] == "numbers" and all(isinstance(one, str) for one in old + new):
            yield from self._compare_numbers(old, new, path)
            return
        if len(old) != len(new):
            yield Difference((*path, "length"), len(old), len(new))
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from self._compare(one, other, keys, (*path, str(index)))

    def _compare_words(self, old: str, new: str, keys: Place, path: Place) -> Iterator[Difference]:
        """Compare words after renaming, and sentences by the numbers in them."""
        renamed = self.renames.rename_value(keys, old)
        if renamed is None and " " in old:
            yield from self._compare_numbers(find_numbers(old), find_numbers(new), path)
        elif new != (old if renamed is None else renamed):
            yield Difference(path, old, new)

    def _compare_numbers(self, old: list[str], new: list[str], path: Place) -> Iterator[Difference]:
        """Compare the numbers of texts in their order: one that is lost shifts no others."""
        self.numbers += len(old)
        if old == new:
            return
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        for what, begin, end, first, last in matcher.get_opcodes():
            if what != "equal":
                place = (*path, str(begin))
                yield Difference(place, " ".join(old[begin:end]), " ".join(new[first:last]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_same(old: Any, new: Any) -> bool:
    if _is_number(old) and _is_number(new):
        return old == new or (math.isnan(old) and math.isnan(new))
    return type(old) is type(new) and old == new


def _show(value: Any) -> str:
    text = value if value == ABSENT else repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
