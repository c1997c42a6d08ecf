"""What simulation studies share: a design in cells, a file that a stopped run resumes from, a page.

A study has a design, fixed beforehand: a list of cells (named tuples of plain values). Its function
simulates one cell and returns its rows (named tuples that begin with the fields of the cell). Each
finished cell is one line of a file, so that a run that was stopped goes on with the next cell, and
a page is written again from a finished file without any new simulation.
"""

import os

os.environ.update(  # read by the libraries when they are imported: the processes share the cores
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMEXPR_NUM_THREADS="1"
)

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from writing import log

Row = TypeVar("Row")
BUILD = Path(__file__).parents[1] / "build"


def simulate(
    cells: Sequence[Any],
    study: Callable[[Any], list[Row]],
    row_type: Callable[..., Row],
    options: argparse.Namespace,
) -> list[Row]:
    """Return the rows of all cells, simulating those that the file does not have."""
    settings = {"replicates": options.replicates, "resamples": options.resamples}
    done = load_cells(options.file, settings)
    left = [cell for cell in cells if tuple(cell) not in done]
    start = time.perf_counter()
    with multiprocessing.Pool(min(options.processes, max(1, len(left)))) as pool:
        work = ((study, cell) for cell in left)
        for count, (cell, rows) in enumerate(pool.imap_unordered(_simulate_cell, work), 1):
            done[tuple(cell)] = rows
            _append_line(options.file, {"cell": cell, **settings, "rows": rows})
            seconds = time.perf_counter() - start
            log(f"{count} of {len(left)} design cells after {seconds:.0f} s: {cell}")
    return [row_type(*row) for cell in cells for row in done[tuple(cell)]]


def _simulate_cell(work: tuple[Callable[[Any], Any], Any]) -> tuple[Any, Any]:
    study, cell = work
    return cell, study(cell)


def load_cells(file: Path, settings: dict[str, int]) -> dict[tuple[Any, ...], list[Any]]:
    """Return the rows of each cell of a file, without a last line that was cut short."""
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    done = {}
    for line in map(json.loads, whole.splitlines()):
        if any(line[name] != value for name, value in settings.items()):
            raise SystemExit(
                f"{file} has other {' or '.join(settings)}: name another, or remove it."
            )
        done[tuple(line["cell"])] = line["rows"]
    return done


def _append_line(file: Path, line: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def parse_options(
    description: str,
    name: str,
    *,
    replicates: int = 2_000,
    resamples: int = 1_000,
    quick_replicates: int = 100,
    add_more: Callable[[argparse.ArgumentParser], None] | None = None,
) -> argparse.Namespace:
    """Return the options that every study has; `file` is where its cells are kept."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a small design: a smoke test")
    parser.add_argument("--replicates", type=int, help="of each design cell")
    parser.add_argument("--resamples", type=int, default=resamples, help="from each replicate")
    parser.add_argument("--processes", type=int, default=2, help="at a time")
    parser.add_argument("--file", type=Path, help="where finished cells are kept")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    if add_more is not None:
        add_more(parser)
    options = parser.parse_args()
    if options.replicates is None:
        options.replicates = quick_replicates if options.quick else replicates
    if options.file is None:
        options.file = BUILD / f"{name}{'-quick' if options.quick else ''}.jsonl"
    return options


def publish(page: str, options: argparse.Namespace) -> None:
    """Print a page, and write it where asked to."""
    print(page)
    if options.write:
        options.write.write_text(page, encoding="utf-8")


def standard_error(share: float, replicates: int) -> float:
    """Return the Monte Carlo standard error of a share."""
    return math.sqrt(share * (1.0 - share) / replicates)


def percent(share: float) -> str:
    """Return a share in percent, without the sign."""
    return f"{100 * share:.1f}"
