"""Record every number that the package gives, and compare with it after a renaming.

python tests/reference/reference.py record
python tests/reference/reference.py compare [--only PATTERN] [--show N]

See README.md beside this file.
"""

import argparse
import contextlib
import gzip
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RECORD = FOLDER / "recorded.json.gz"
WORKERS = 2
MOST_HINTS = 40  # of what renames.json may lack
# One thread for each process: sums in another order differ in their last digits.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Records = dict[str, Any]
Complaints = dict[str, str]


def main() -> int:
    """Do what the command line says."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    asked = _read_arguments()
    old = load_record() if asked.action == "compare" else {}  # before minutes of work
    started = time.monotonic()
    records, complaints = run_cases(asked.only)
    _say(f"ran {len(records)} cases in {time.monotonic() - started:.0f} s")
    if asked.action == "record":
        return write_record(records, complaints)
    return compare_records(old, records, complaints, asked.only, asked.show)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("--only", metavar="PATTERN", help="cases to compare, such as 'tune/*'")
    parser.add_argument("--show", metavar="N", type=int, default=3, help="differences of a case")
    asked = parser.parse_args()
    if asked.action == "record" and asked.only:
        parser.error("--only compares some cases; a record is of all of them")
    return asked


# --- running -------------------------------------------------------------------------------------


def run_cases(only: str | None) -> tuple[Records, Complaints]:
    """Run all groups of cases that have a wanted one, two at a time."""
    records: Records = {}
    complaints: Complaints = {}
    with tempfile.TemporaryDirectory(prefix="ordinate_reference_") as folder:
        spawning = get_context("spawn")  # so that a process sees the number of threads
        with ProcessPoolExecutor(WORKERS, mp_context=spawning) as pool:
            groups = {pool.submit(run_group, name, folder, only): name for name in _list_groups()}
            for group in as_completed(groups):
                found, said, seconds = group.result()
                records |= found
                complaints |= said
                if found:
                    _say(f"{groups[group]}: {len(found)} cases in {seconds:.0f} s")
    return records, complaints


def _list_groups() -> list[str]:
    import commands  # here and below: NumPy counts its threads when it is imported
    import library

    return [*commands.GROUPS, *library.GROUPS]


def run_group(name: str, folder: str, only: str | None) -> tuple[Records, Complaints, float]:
    """Run the cases of a group in this process, unless none of them is wanted."""
    import commands
    import library

    started = time.monotonic()
    records: Records = {}
    complaints: Complaints = {}
    if not _is_wanted_group(name, only):
        return records, complaints, 0.0
    if name in commands.GROUPS:
        place = Path(folder) / name
        place.mkdir()
        cases = commands.run_group(name, place)
    else:
        cases = library.run_group(name)
    for case, record, complaint in cases:
        records[case] = record
        if complaint:
            complaints[case] = complaint
    return records, complaints, time.monotonic() - started


def _is_wanted_group(name: str, only: str | None) -> bool:
    """Ask whether a group has a wanted case: later cases of a group need what earlier ones left."""
    import commands
    import library

    if only is None:
        return True
    cases = commands.list_names(name) if name in commands.GROUPS else library.GROUPS[name]
    return any(_is_wanted(case, only) for case in cases)


def _is_wanted(case: str, only: str | None) -> bool:
    return only is None or fnmatchcase(case, only) or only in case


# --- recording -----------------------------------------------------------------------------------


def write_record(records: Records, complaints: Complaints) -> int:
    """Write what was seen, unless something went wrong: a record of failures proves nothing."""
    for case, complaint in sorted(complaints.items()):
        _print(f"{case}: {_shorten(complaint)}")
    if complaints:
        _print(f"{len(complaints)} cases failed; nothing was written")
        return 1
    text = json.dumps(records, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    content = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    RECORD.write_bytes(content)
    _print(f"{len(records)} cases, {len(content) / 1e6:.2f} MB written to {RECORD.name}")
    return 0


def load_record() -> Records:
    """Read what was recorded."""
    if not RECORD.exists():
        sys.exit(f"There is no {RECORD.name} yet: record first.")
    return json.loads(gzip.decompress(RECORD.read_bytes()))


# --- comparing -----------------------------------------------------------------------------------


def compare_records(
    old: Records, new: Records, complaints: Complaints, only: str | None, show: int
) -> int:
    """Print the cases that differ, and how much was compared."""
    from comparing import Comparison
    from layouts import convert
    from renaming import RENAMES

    comparison = Comparison(RENAMES)
    plain = json.loads(json.dumps(new))  # tuples are lists, as in the record
    cases = sorted(case for case in {*old, *plain} if _is_wanted(case, only))
    differ = accepted = 0
    unsettled: Counter[str] = Counter()
    for case in cases:
        lines = list(_say_missing(case, old, plain, complaints))
        if not lines:
            found = comparison.find_differences(case, convert(case, old[case]), plain[case])
            unmeant = [one for one in found if not RENAMES.accept(case, one.place)]
            accepted += len(found) - len(unmeant)
            unsettled.update(one.hint for one in unmeant if one.hint)
            lines = [str(one) for one in unmeant]
        if lines:
            differ += 1
            _print(f"{case}: {_join_some(lines, show)}")
    _print(
        f"{len(cases)} cases, {comparison.numbers} numbers compared, {differ} differ"
        + (f" ({accepted} differences accepted)" if accepted else "")
    )
    for hint, count in unsettled.most_common(MOST_HINTS):
        _say(f"{hint} ({count} times)")
    return 1 if differ else 0


def _say_missing(case: str, old: Records, new: Records, complaints: Complaints) -> Iterator[str]:
    if case not in old:
        yield "is not in the record"
    if case not in new:
        yield "was not run"
    if case in complaints:
        yield _shorten(complaints[case])


def _join_some(lines: Iterable[str], show: int) -> str:
    lines = list(lines)
    more = f"; and {len(lines) - show} more" if len(lines) > show else ""
    return "; ".join(lines[:show]) + more


def _shorten(complaint: str) -> str:
    """Return the first line and the last one: the latter says what a traceback ends with."""
    lines = complaint.strip().splitlines() or [""]
    return " … ".join(dict.fromkeys((lines[0], lines[-1])))[:400]


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
