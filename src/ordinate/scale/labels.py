"""What counts as the same label, and what counts as missing."""

from collections.abc import Hashable
from typing import Any


def normalize_label(label: Hashable) -> str:
    """Return the text under which a label is recognised: 3, 3.0 and '3' are one label."""
    if isinstance(label, str):
        return label
    if isinstance(label, bool):
        return str(label)
    try:
        whole = int(label)  # type: ignore[call-overload] # asks whether it can
    except (TypeError, ValueError, OverflowError):
        return str(label)
    return str(whole) if whole == label else str(label)


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


def convert_to_python(label: Any) -> Any:
    """Return a NumPy scalar as the Python value that it stands for."""
    return label.item() if hasattr(label, "item") and hasattr(label, "dtype") else label


def parse_number(text: str) -> float | None:
    """Return the number that a text spells, if it spells one; integers of any size exactly."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


class LabelLookup(dict[Any, int]):
    """From label to position; spellings of the same number are found, missing is `len(labels)`."""

    def __init__(self, labels: tuple[Hashable, ...]) -> None:
        super().__init__((normalize_label(label), code) for code, label in enumerate(labels))
        self.update((label, code) for code, label in enumerate(labels))
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
            raise KeyError(label)
        self[label] = code = self[text]
        return code
