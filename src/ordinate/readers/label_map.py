"""A file of labels to rename, and their new names."""

import csv
import json
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput, shorten
from ordinate.scale.labels import is_missing


def read_label_map(path: str) -> dict[str, str | None]:
    """Return the labels to rename: a JSON object, or CSV with the header from,to."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        # The top object is the last that is parsed; a dictionary would keep one of two equal keys.
        is_json = text.lstrip().startswith("{")
        rows = json.loads(text, object_pairs_hook=list) if is_json else _parse_label_map(path, text)
    except BadInput:
        raise
    except (OSError, ValueError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"The map {path} cannot be read: {reason}.") from None
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


def _name_level(level: Any) -> str | None:
    return None if is_missing(level) else str(level)


def _parse_label_map(path: str, text: str) -> list[tuple[str, str]]:
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows or rows[0] != ["from", "to"] or any(len(row) != 2 for row in rows):
        raise BadInput(
            f'The map {path} must be a JSON object such as {{"b1": "B1"}}, or CSV with two columns '
            "and the header line from,to."
        )
    return [(old, new) for old, new in rows[1:]]
