"""Files that say what labels mean: those to rename, and the scales of cases."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput, BadScale, OrdinateError, shorten
from ordinate.scale.labels import is_missing
from ordinate.scale.levels import Scale

Pairs = list[tuple[str, Any]]
SCALES_HINT = (
    "Write CSV with the header case,scale and a line such as essay_1,2..12 for each case, or a "
    'JSON object such as {"essay_1": "2..12"}.'
)


def _read_pairs(path: str, title: str, parse: Callable[[str, str], Pairs], hint: str = "") -> Pairs:
    """Return the pairs of a JSON object, or of CSV, which `parse` reads."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("{"):
            # The top object is the last that is parsed; a dictionary would keep one of equal keys.
            return list(json.loads(text, object_pairs_hook=list))
        return parse(path, text)
    except OrdinateError:
        raise
    except (OSError, ValueError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"The {title} {path} cannot be read: {reason}.{hint}") from None


# --- labels to rename ----------------------------------------------------------------------------


def read_label_map(path: str) -> dict[str, str | None]:
    """Return the labels to rename: a JSON object, or CSV with the header from,to."""
    rows = _read_pairs(path, "map", _parse_label_map)
    if not rows:
        raise BadInput(
            f"The map {path} renames no label. Write labels and their levels, such as "
            '{"b1": "B1"}, or leave --map out.'
        )
    for label, level in rows:
        if not (level is None or isinstance(level, (str, int, float))):
            raise BadInput(f"The map {path} renames {label!r} to something that is no label.")
    renamed = {str(label): _name_level(level) for label, level in rows}
    if len(renamed) < len(set(rows)):
        twice = next(label for label, level in rows if renamed[str(label)] != _name_level(level))
        raise BadInput(f"The map {path} renames one label in two ways: {shorten(twice)}.")
    return renamed


def format_label_map(renamed: Mapping[str, Any]) -> str:
    """Return a label map as CSV, in which nothing stands beside what means a missing label."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("from", "to"), *renamed.items()])
    return text.getvalue()


def _name_level(level: Any) -> str | None:
    return None if is_missing(level) else str(level)


def _parse_label_map(path: str, text: str) -> Pairs:
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if not rows or rows[0] != ["from", "to"] or any(len(row) != 2 for row in rows):
        raise BadInput(
            f'The map {path} must be a JSON object such as {{"b1": "B1"}}, or CSV with two columns '
            "and the header line from,to."
        )
    return [(old, new) for old, new in rows[1:]]


# --- scales of cases -----------------------------------------------------------------------------


def read_case_scales(path: str) -> dict[str, Scale]:
    """Return the scale of each case, from CSV with the header case,scale or a JSON object."""
    scales: dict[str, Scale] = {}
    for case, declared in _read_pairs(path, "scales", _parse_case_scales, f" {SCALES_HINT}"):
        if case in scales:
            raise BadInput(
                f"{path} gives the case {shorten(case)} two scales: name each case once."
            )
        scales[case] = _parse_scale(path, case, declared)
    if not scales:
        raise BadInput(f"{path} has no scale. {SCALES_HINT}")
    return scales


def _parse_case_scales(path: str, text: str) -> Pairs:
    header, *rows = list(csv.reader(text.splitlines(), skipinitialspace=True)) or [[]]
    if len(header) != 2 or header[1].strip() != "scale":
        raise BadInput(f"{path} has no header whose second column is 'scale'. {SCALES_HINT}")
    for number, row in enumerate(rows, start=2):
        if row and (len(row) != 2 or not all(row)):
            raise BadInput(
                f"Line {number} of {path} has {len(row)} columns, and needs a case and a scale; "
                'labels that are separated by commas stand in quotes: essay_1,"low,mid,high".'
            )
    return [(row[0], row[1]) for row in rows if row]


def _parse_scale(path: str, case: str, declared: Any) -> Scale:
    if not isinstance(declared, (str, list)):
        raise BadInput(f"The case {shorten(case)} of {path} has no scale: {shorten(declared)}.")
    try:
        return Scale.of(declared)
    except BadScale as problem:
        raise BadInput(f"The case {shorten(case)} of {path}: {problem}") from None
