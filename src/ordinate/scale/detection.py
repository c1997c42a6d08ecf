"""Which scale a column is on, when the caller does not say: declared by the column, or a preset."""

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ordinate.errors import BadScale, NoItems, word_advice
from ordinate.scale.encoding import factorize_column, read_ordered_categories
from ordinate.scale.label_maps import drop_other_spellings, is_score, simplify_label
from ordinate.scale.labels import is_missing, normalize_label, tidy_label
from ordinate.scale.levels import PRESETS, Scale

MOST_PROPOSED, LONGEST_PROPOSAL = 12, 200  # labels and characters in the proposal of a scale
INTEGER, NUMBER = re.compile(r"-?\d{1,18}"), re.compile(r"-?\d*\.?\d+(e[+-]?\d+)?", re.IGNORECASE)


def resolve_scale(
    declared: "Scale | str | Iterable[Hashable] | None",
    *columns: Any,
    tidy: bool = False,
) -> Scale:
    """Return the declared scale, or the one that columns carry, or the one preset that fits.

    >>> resolve_scale(None, ["B1", "A2"], ["B2", "A2"]).preset
    'cefr'
    """
    if declared is not None:
        return Scale.of(declared)
    carried = find_carried_scale(map(read_ordered_categories, columns))
    if carried is not None:
        return carried
    found = [factorize_column(column, "labels") for column in columns]
    if not any(len(each.codes) for each in found):
        raise NoItems("There are no items: the columns are empty.")
    seen = {x for each in found for x in each.values if not is_missing(x)}
    return find_preset(seen, tidy=tidy)


def find_carried_scale(orders: "Iterable[Sequence[Any] | None]") -> Scale | None:
    """Return the scale that columns declare, of those that do."""
    carried = {tuple(labels) for labels in orders if labels}
    if len(carried) > 1:
        shown = " and ".join(str(Scale(labels)) for labels in sorted(carried, key=str))
        raise BadScale(f"The columns are ordered differently: {shown}. Pass the scale to use.")
    return Scale(carried.pop()) if carried else None


def find_preset(labels: set[Any], *, tidy: bool = False) -> Scale:
    """Return the only preset of words that has every label seen; numbers identify no scale.

    Where it has most of them in some spelling, the others are reported as off that scale.
    """
    worded = {name: set(of) for name, of in PRESETS.items() if all(isinstance(x, str) for x in of)}
    seen = {simplify_label(label) for label in labels if not is_score(label)}
    simple = {name: set(map(simplify_label, of)) for name, of in worded.items()}
    spelled = set(map(tidy_label, labels)) if tidy else labels
    known = {name: set(map(tidy_label, of)) if tidy else of for name, of in worded.items()}
    fitting = [name for name, levels in known.items() if labels and spelled - {""} <= levels]
    nearest = [name for name, levels in simple.items() if 2 * len(seen & levels) > len(seen)]
    if len(fitting) == 1 or (not fitting and len(nearest) == 1):
        return Scale.of((fitting or nearest)[0])
    names = sorted(map(normalize_label, labels))
    shown = ", ".join(names[:MOST_PROPOSED])[:LONGEST_PROPOSAL]
    if len(names) > MOST_PROPOSED:
        shown += f", … ({len(names):,} in all)"
    whose = f" for the labels {shown}" if labels else ", and there are no labels to see it by"
    several = f" They fit more than one preset: {', '.join(fitting)}." if fitting else ""
    raise BadScale(
        f"No scale was declared{whose}.{several} {_propose_scale(labels)} "
        f"There are presets, too: {', '.join(PRESETS)}.{_suggest_regression(names)}"
    )


def _suggest_regression(names: Sequence[str]) -> str:
    """Return what to do with numbers that are too many to be levels, and no integers."""
    if len(names) <= MOST_PROPOSED or not all(map(NUMBER.fullmatch, names)):
        return ""
    if all(map(INTEGER.fullmatch, names)):
        return ""
    return (
        " If these are quantities and not levels, they are for ordinate evaluate-regression and "
        "ordinate tune-regression."
    )


def _propose_scale(labels: set[Any]) -> str:
    """Return how to declare the labels that were seen: a range of integers, or words to sort."""
    names = drop_other_spellings(map(normalize_label, labels))
    numbers = [int(name) for name in names if INTEGER.fullmatch(name)]
    if 2 * len(numbers) > len(names) or (numbers and all(map(NUMBER.fullmatch, names))):
        scale = f"{min(numbers)}..{max(numbers)}"
        return word_advice("Declare its lowest and highest: {scale}.", scale=scale)
    scale = ",".join(names)
    marks = set("\"'")
    plain = 1 < len(names) <= MOST_PROPOSED and len(scale) <= LONGEST_PROPOSAL
    how = ". These are sorted by name, so put them in order:"
    if not plain or scale.count(",") >= len(names) or set(scale) & marks:
        scale, how = "low,mid,high", ", such as"
    return f"Declare all levels, lowest first{how} " + word_advice("{scale}.", scale=scale)
