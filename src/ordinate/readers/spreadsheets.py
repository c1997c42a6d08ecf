"""A sheet of a spreadsheet as CSV, read in a process of its own: `python -m` this module.

A file of a few bytes may take any memory to read. That process has a bound, and may end.
"""

import csv
import json
import os
import subprocess
import sys
from datetime import date, datetime, time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput, MissingExtra, shorten, word_advice

MOST_MEMORY = 4 << 30  # bytes of address space that reading a spreadsheet may take
EXACT = 1e15  # below, an integer has all its digits
NO_SHEET = 3  # the exit code of the process; its output has the names of the sheets


def export_sheet(name: str, path: Path, out: Path, sheet: str | None, mark: str | None) -> None:
    """Write a sheet as CSV, with a decimal mark; without a name, the only one that there is."""
    if find_spec("python_calamine") is None:
        raise MissingExtra(f"{name} is a spreadsheet, which takes: pip install 'ordinate[excel]'")
    given = json.dumps([str(path), str(out), sheet, mark or "."])
    ran = subprocess.run(  # noqa: S603 - this very module
        [sys.executable, "-P", "-m", __name__, given],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(x or "." for x in sys.path)},
    )
    if ran.returncode == NO_SHEET:
        names = ", ".join(map(shorten, json.loads(ran.stdout)))
        lacks = f"has no sheet {shorten(sheet)}" if sheet else "has several sheets"
        way = word_advice("with {sheet}, or save it as CSV.", sheet=...)
        raise BadInput(f"{name} {lacks}: name one of {names} {way}")
    if ran.returncode:
        raise BadInput(
            f"{name} cannot be read: it is damaged, has a password or is no spreadsheet, or its "
            f"sheet takes more than {MOST_MEMORY >> 30} GB. Save the sheet as CSV."
        )


def _write_sheet(path: str, out: str, sheet: str | None, mark: str) -> int:
    """Write the rows in which anything stands."""
    import python_calamine

    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has none

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MOST_MEMORY if hard < 0 else min(hard, MOST_MEMORY)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    with Path(path).open("rb") as file, Path(out).open("w", encoding="utf-8", newline="") as rows:
        book = python_calamine.load_workbook(file)
        names = book.sheet_names
        if sheet not in names if sheet else len(names) != 1:
            sys.stdout.write(json.dumps(names))
            return NO_SHEET
        write = csv.writer(rows, lineterminator="\r\n").writerow
        for row in book.get_sheet_by_name(sheet or names[0]).iter_rows():
            cells = [_format_cell(cell, mark) for cell in row]
            if any(cells):
                write(cells)
    return 0


def _format_cell(cell: Any, mark: str) -> str:
    """Return a cell as a spreadsheet would show it, but for how numbers and dates are rounded.

    >>> _format_cell(1.0, "."), _format_cell(0.5, ","), _format_cell(True, ".")
    ('1', '0,5', 'true')
    """
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        whole = cell.is_integer() and abs(cell) < EXACT
        return str(int(cell)) if whole else repr(cell).replace(".", mark)
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


if __name__ == "__main__":
    sys.exit(_write_sheet(*json.loads(sys.argv[1])))
