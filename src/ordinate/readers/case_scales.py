"""The scales of cases that have their own: a file of case and scale."""

import csv
import json
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput, BadScale, OrdinateError, shorten
from ordinate.scale import Scale

SCALE_HEAD = "scale"
FORM_HINT = (
    "Write CSV with the header case,scale and a line such as essay_1,2..12 for each case, or a "
    'JSON object such as {"essay_1": "2..12"}.'
)


def read_case_scales(path: str) -> dict[str, Scale]:
    """Return the scale of each case, from CSV with the header case,scale or a JSON object."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        # A dictionary would keep one of two equal keys; the top object is the last that is parsed.
        is_json = text.lstrip().startswith("{")
        rows = json.loads(text, object_pairs_hook=list) if is_json else list(_parse_csv(path, text))
    except OrdinateError:
        raise
    except (OSError, ValueError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"The scales {path} cannot be read: {reason}. {FORM_HINT}") from None
    scales: dict[str, Scale] = {}
    for case, declared in rows:
        if case in scales:
            raise BadInput(
                f"{path} gives the case {shorten(case)} two scales: name each case once."
            )
        scales[case] = _parse_scale(path, case, declared)
    if not scales:
        raise BadInput(f"{path} has no scale. {FORM_HINT}")
    return scales


def _parse_csv(path: str, text: str) -> list[tuple[str, str]]:
    rows = list(csv.reader(text.splitlines(), skipinitialspace=True))
    if not rows or len(rows[0]) != 2 or rows[0][1].strip() != SCALE_HEAD:
        raise BadInput(f"{path} has no header whose second column is {SCALE_HEAD!r}. {FORM_HINT}")
    found = []
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != 2 or not all(row):
            raise BadInput(
                f"Line {number} of {path} has {len(row)} columns, and needs a case and a scale; "
                'labels that are separated by commas stand in quotes: essay_1,"low,mid,high".'
            )
        found.append((row[0], row[1]))
    return found


def _parse_scale(path: str, case: str, declared: Any) -> Scale:
    if not isinstance(declared, (str, list)):
        raise BadInput(f"The case {shorten(case)} of {path} has no scale: {shorten(declared)}.")
    try:
        return Scale.of(declared)
    except BadScale as problem:
        raise BadInput(f"The case {shorten(case)} of {path}: {problem}") from None
