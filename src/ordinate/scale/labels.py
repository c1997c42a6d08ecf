"""What counts as the same label, and what counts as missing."""

import math
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any


def normalize_label(label: Hashable) -> str:
    """Return the text under which a label is recognised: 3, 3.0 and '3' are one label."""
    if isinstance(label, str):
        return label
    if isinstance(label, bool):
        return str(label)
    try:
        whole = int(label)  # type: ignore[call-overload] # asks whether it can
        return str(whole) if whole == label else str(label)
    except (TypeError, ValueError, OverflowError):  # an integer of 5,000 digits has no decimal text
        return hex(label) if isinstance(label, int) else str(label)


def is_missing(label: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, a null of a data frame, or an empty text.

    >>> [is_missing(cell) for cell in (None, float("nan"), "", "NA", 0)]
    [True, True, True, False, False]
    """
    if isinstance(label, str):
        return not label
    if label is None or type(label).__name__ == "NAType":  # pandas, which need not be imported
        return True
    differs = label != label  # noqa: PLR0124 - NaN and NaT alone differ from themselves
    return differs is True or (hasattr(differs, "dtype") and differs.ndim == 0 and bool(differs))


def is_hashable(label: Any) -> bool:
    """Tell whether something can be a label at all: a list, or a tuple with one, cannot."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


def convert_to_python(label: Any) -> Any:
    """Return a NumPy scalar as the Python value that it stands for."""
    return label.item() if hasattr(label, "item") and hasattr(label, "dtype") else label


def tidy_label(label: Hashable) -> str:
    """Return a label without blanks around it, in one case and one Unicode form.

    >>> [tidy_label(label) for label in (" b2", "Ｂ２", 2.0)]
    ['b2', 'b2', '2']
    """
    return unicodedata.normalize("NFKC", normalize_label(label)).strip().casefold()


def find_word(text: str, names: Iterable[str]) -> str | None:
    """Return the one of the names that is a word of a text; None if none is, or several are.

    >>> [find_word(text, "12345") for text in ("4 stars", "4.5 stars", "1 or 2", "level 23")]
    ['4', None, None, None]
    """
    found = set(text.split()) & set(names)
    return found.pop() if len(found) == 1 else None


def parse_number(text: str) -> float | None:
    """Return the finite number that a text spells, if it spells one; integers exactly."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if abs(number) < math.inf else None
    return None


class LabelLookup(dict[Any, int]):
    """From label to position; spellings of the same number are found, missing is `len(labels)`.

    A `tidy` one finds labels whose blanks, case and Unicode form differ, too, unless two levels
    differ in nothing else; `tidied` has those that it found, and the position of each.
    """

    def __init__(self, labels: tuple[Hashable, ...], *, tidy: bool = False) -> None:
        super().__init__((normalize_label(label), code) for code, label in enumerate(labels))
        self.update((label, code) for code, label in enumerate(labels))
        spelled = [tidy_label(label) for label in labels] if tidy else []
        clear = Counter(spelled)
        self.tidy = {text: code for code, text in enumerate(spelled) if clear[text] == 1}
        self.tidied: dict[Any, int] = {}
        self.missing = len(labels)
        numbers = {code: parse_number(normalize_label(label)) for code, label in enumerate(labels)}
        self.numeric = False
        for code, number in numbers.items():
            if number is not None:
                self.setdefault(normalize_label(number), code)
                self.numeric = True

    def __missing__(self, label: Any) -> int:
        """Find a label in another spelling, and remember it; a KeyError is off the scale."""
        if is_missing(label):
            return self.missing
        text = normalize_label(convert_to_python(label))
        if text not in self and self.numeric and (number := parse_number(text)) is not None:
            text = normalize_label(number)
        if text not in self:
            return self._find_tidied(label)
        self[label] = code = self[text]
        return code

    def _find_tidied(self, label: Any) -> int:
        """Find a label by its tidied spelling; one of blanks alone is missing."""
        text = tidy_label(convert_to_python(label)) if self.tidy else ""
        if not self.tidy or (text and text not in self.tidy):
            raise KeyError(label)
        self[label] = self.tidied[label] = code = self.tidy.get(text, self.missing)
        return code
