"""Label maps: labels renamed, tidied and cut before the scale sees them, and unknown ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from ordinate.errors import BadOption, OffScale, shorten, word_advice
from ordinate.scale.labels import (
    convert_to_python,
    find_word,
    is_missing,
    normalize_label,
    parse_number,
    tidy_label,
)
from ordinate.scale.levels import Scale

MOST_LISTED = 20  # unknown labels in an error
LOOKALIKES = str.maketrans("li|oіоавсеркмнтух", "111010abcepkmhtyx")  # the latter are Cyrillic
SIMILAR = 0.6  # of letters in common, from which on a label is near a level
CORRECT_HINT = "Correct it, or declare another scale."


class LabelMap(dict[str, str | None]):
    """From labels to levels, None where one means a missing label.

    `tidy` says that blanks around labels, their case and Unicode form make no difference, and
    `edges` are scores between neighbouring levels, by which numbers are predicted levels.
    """

    def __init__(
        self,
        renamed: Mapping[str, str | None] | None = None,
        *,
        tidy: bool = False,
        edges: Iterable[float] = (),
    ) -> None:
        if isinstance(renamed, str):
            raise BadOption(f"label_map={renamed!r} is no label map: pass {{'b1': 'B1'}}, say.")
        super().__init__(renamed or {})
        self.tidy = tidy or getattr(renamed, "tidy", False)
        self.edges = check_edges(edges) or getattr(renamed, "edges", ())

    def rename(self, label: Any) -> Any:
        """Return the label under its new name, where it has one."""
        return self.get(normalize_label(label), label)

    def cut(self, label: Any, scale: Scale) -> Any:
        """Return the level of a score; one that equals an edge is of the level above."""
        if not self.edges or is_missing(label):
            return label
        if len(self.edges) != len(scale) - 1:
            raise BadOption(
                f"The scale {scale} has {len(scale)} levels, and so {len(scale) - 1} edges "
                f"between them, not {len(self.edges)}."
            )
        score = parse_number(normalize_label(convert_to_python(label)))
        if score is None:
            return label
        return scale.labels[int(np.searchsorted(self.edges, score, side="right"))]

    def adjust(self, scale: Scale) -> Scale:
        """Return the scale that finds tidied labels, where they are to be."""
        return scale.tidied() if self.tidy else scale

    def describe(self, scale: Scale) -> list[str]:
        """Return notes that say which labels of an adjusted scale were tidied, and what was cut."""
        notes = []
        if self.tidy:
            names = (*scale.labels, "missing")
            found = [f"{shorten(x)} as {names[code]}" for x, code in scale.lookup.tidied.items()]
            shown = ", ".join(found[:MOST_LISTED]) + (", …" if len(found) > MOST_LISTED else "")
            notes.append(
                f"Labels were tidied (blanks around them, case, Unicode form): {shown or 'none'}."
            )
        if self.edges:
            edges = ", ".join(f"{edge:g}" for edge in self.edges)
            notes.append(f"Scores were cut at {edges}, each edge to the level above it.")
        return notes


@contextmanager
def explain_unknown_labels(way: str | None = None) -> Iterator[None]:
    """Say what to do about labels off the scale where they are read."""
    try:
        yield
    except OffScale as problem:
        raise problem.advise(suggest_label_map() if way is None else way) from None


def suggest_label_map() -> str:
    """Return what to do about labels off the scale where a label map is taken."""
    return word_advice(
        "Map it first ({label_map}), take case and blanks as they come ({tidy_labels}), or declare "
        "another scale ({scale}).",
        CORRECT_HINT,
        label_map=...,
        tidy_labels=True,
        scale=...,
    )


def check_edges(edges: Iterable[float]) -> tuple[float, ...]:
    """Return rising numbers between levels, or refuse others."""
    try:
        found = tuple(map(float, edges))
    except (TypeError, ValueError, OverflowError):
        found = (np.nan,)
    if not np.isfinite(found).all() or any(low >= high for low, high in pairwise(found)):
        raise BadOption(
            f"Edges between levels are rising numbers, such as 1.5,2.5, not {shorten(edges)}."
        )
    return found


# --- unknown labels ------------------------------------------------------------------------------


def make_off_scale_error(
    scale: Scale, counts: Mapping[Any, int], first: Any, where: str, way: str = CORRECT_HINT
) -> OffScale:
    """Return the error for all labels that the scale does not have, and how many items have each.

    `first` stands in the place `where`; `way` says what to do.
    """
    known = {x: find_nearest_level(scale, x) for x in map(convert_to_python, counts)}
    head = f"Label {shorten(convert_to_python(first))} ({where}) is not on the scale {scale}."
    scores = any(map(is_score, known))
    words = [
        x for x in zip(known, counts.values(), strict=True) if not (scores and _spells_number(x[0]))
    ]
    if len(words) > 1 or any(known[label] is not None for label, _ in words):
        head += f" {_list_unknown_labels(known, words)}"
    if scores:
        head += f" {_suggest_edges(scale)}"
    return OffScale(head, way if words else "", known)


def _spells_number(label: Any) -> bool:
    return parse_number(normalize_label(label)) is not None


def is_score(label: Any) -> bool:
    """Tell whether a label is a number that is no integer, such as 2.37."""
    number = parse_number(normalize_label(label))
    return number is not None and number % 1 != 0


def _list_unknown_labels(nearest: Mapping[Any, Any], counts: Sequence[tuple[Any, int]]) -> str:
    """Return labels with their counts and nearest levels, the most frequent first."""
    listed = [
        f"{shorten(label)} ({count:,}{'' if nearest[label] is None else f': {nearest[label]}?'})"
        for label, count in sorted(counts, key=lambda x: -x[1])[:MOST_LISTED]
    ]
    more = f", … ({len(counts):,} in all)" if len(counts) > MOST_LISTED else ""
    return f"Unknown labels, their items and nearest levels: {', '.join(listed)}{more}."


def _suggest_edges(scale: Scale) -> str:
    """Return what to do with scores where levels are asked for."""
    numbers = [parse_number(normalize_label(label)) for label in scale.labels]
    known = [x for x in numbers if x is not None]
    rising = len(known) == len(scale) and all(low < high for low, high in pairwise(known))
    places = known if rising else range(1, len(scale) + 1)
    edges = [(low + high) / 2 for low, high in pairwise(places)]
    where = "" if rising else ", where 1 is the lowest level"
    return (
        "Numbers between levels are scores: cut them into levels"
        + word_advice(f", such as {{edges}}{where}", edges=edges)
        + " (ordinate.postprocess.CutPoints finds the best edges for a metric)"
        + (
            ", or evaluate them as numbers (ordinate evaluate-regression; "
            "ordinate.evaluate_regression)."
            if rising
            else "."
        )
    )


def find_nearest_level(scale: Scale, label: Any) -> Any:
    """Return the level that a label is likely to mean, None if none is, or several are.

    >>> scale = Scale.of("cefr")
    >>> [find_nearest_level(scale, label) for label in (" b2", "B2+", "B 1", "Cl", "n/a", "B3")]
    ['B2', 'B2', 'B1', 'C1', None, None]
    >>> find_nearest_level(Scale.of("1..5"), "4 stars")
    4
    """
    text = normalize_label(convert_to_python(label))
    if parse_number(text) is not None:  # 23 is no other spelling of 2 or 3
        return None
    names = {tidy_label(x): x for x in scale.labels}
    word = find_word(tidy_label(text), names)
    if word is not None:
        return names[word]
    wanted = simplify_label(label)
    likeness = [_compare_spellings(wanted, simplify_label(x)) for x in scale.labels]
    best = max(likeness)
    return scale.labels[likeness.index(best)] if best and likeness.count(best) == 1 else None


def _compare_spellings(these: str, those: str) -> float:
    """Return the share of letters in common, 0 where it is low; a long text costs no time."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, these, those)
    likeness = matcher.ratio() if matcher.real_quick_ratio() >= SIMILAR else 0.0
    return likeness if likeness >= SIMILAR else 0.0


def simplify_label(label: Any) -> str:
    """Return what two spellings of one level have in common: letters and digits, tidied.

    >>> simplify_label("B1.") == simplify_label("b 1") == simplify_label("Bl")
    True
    """
    text = tidy_label(convert_to_python(label))
    bare = "".join(letter for letter in text if letter.isalnum())
    return (bare or text).translate(LOOKALIKES)


def drop_other_spellings(labels: Iterable[str]) -> list[str]:
    """Return labels, of those that spell one level alone the plainest, sorted.

    >>> drop_other_spellings(["b1 ", "B1.", "B1", "A2", "-1", "1"])
    ['-1', '1', 'A2', 'B1']
    """
    found: dict[str, str] = {}
    for label in sorted(labels, key=lambda x: (len(x), x)):
        number = parse_number(label)
        found.setdefault(simplify_label(label) if number is None else f"{number:g}", label.strip())
    return sorted(found.values())
