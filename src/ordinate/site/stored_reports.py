"""Stored reports: what lies in a folder, each report read by itself, or the reason why not."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from ordinate.errors import BadInput, OrdinateError
from ordinate.experiment.layout import (
    RESERVED,
    RESULTS,
    RESULTS_FILE,
    RUNS,
    holds_search,
    is_store,
)
from ordinate.experiment.manifest import MANIFEST_FILE, Manifest
from ordinate.experiment.safe_files import compute_digest, resolve_inside
from ordinate.experiment.stored_json import read_json
from ordinate.results.base import Record, Result, to_plain
from ordinate.results.shards import SCHEMA as SHARD_SCHEMA
from ordinate.results.verification import BESIDE, load_report
from ordinate.search.analysis import analyze_search
from ordinate.site.reported_values import ReportedValue, get_kind, list_values

ARTIFACT = "site"  # in the manifest of a site
SUFFIXES = (".json", ".html")


@dataclass(frozen=True)
class StoredReport:
    """A report: where it lies in its folder, when that was written, what it says of systems.

    `result` makes its page; earlier runs of a search have none. A search has items, too.
    """

    path: str
    date: datetime
    kind: str
    values: tuple[ReportedValue, ...]
    result: Result | None
    digest: str  # the same for the same report in another format
    holds_items: bool = False


@dataclass(frozen=True)
class BrokenReport:
    """What cannot be shown, and why."""

    path: str
    reason: str


def read_reports(folder: Path) -> "Iterator[StoredReport | BrokenReport]":
    """Yield every report in a folder, and what cannot be read.

    Links are not followed, shards are no reports, and neither are hidden files and other sites
    looked into.
    """
    unread: list[OSError] = []
    for where, folders, names in os.walk(folder, onerror=unread.append):
        home = Path(where)
        if is_site(home):
            folders.clear()
            continue
        if holds_search(home):
            yield _read(home, folder, _read_search)
            yield from (_read(run, folder, _read_run) for run in _list_earlier_runs(home))
        reserved = RESERVED if is_store(home) else set()
        folders[:] = sorted(x for x in folders if not x.startswith(".") and x not in reserved)
        for name in sorted(set(names) - reserved):
            path = home / name
            if _may_be_report(path):
                yield _read(path, folder, _read_file)
    for problem in unread:
        path = Path(problem.filename)
        yield BrokenReport(_name_within(path, folder), f"it cannot be read: {problem.strerror}.")


def locate_report(folder: Path, name: str) -> Path:
    """Return the file or the folder of a report by its path in the folder of all."""
    return folder if folder.resolve().name == name and holds_search(folder) else folder / name


def _may_be_report(path: Path) -> bool:
    hidden = path.name.startswith(".") or path.suffix.lower() not in SUFFIXES
    if hidden or path.is_symlink() or not path.is_file():
        return False
    return not (_is_part(path) or _is_shard(path))


def _is_part(path: Path) -> bool:
    """Tell whether a file holds what a report beside it is made of."""
    report = path.name.removesuffix(".json").rpartition(".")[0]
    return bool(BESIDE.fullmatch(path.name)) and path.with_name(report).is_file()


def _is_shard(path: Path) -> bool:
    """Tell by how it begins whether a file is what `ordinate count` wrote."""
    try:
        with path.open("rb") as file:
            return SHARD_SCHEMA.encode() in file.read(100)
    except OSError:
        return False  # reading it as a report says why it cannot be read


def is_site(folder: Path) -> bool:
    """Tell whether a folder is a site that Ordinate wrote."""
    if not (folder / MANIFEST_FILE).is_file():
        return False
    try:
        return Manifest.read(folder).artifact == ARTIFACT
    except OrdinateError:
        return False


def _read(
    path: Path, folder: Path, read: Callable[[Path, str], StoredReport]
) -> StoredReport | BrokenReport:
    name = _name_within(path, folder)
    try:
        return read(path, name)
    except OrdinateError as problem:
        return BrokenReport(name, str(problem).replace(f"{folder}{os.sep}", ""))
    except Exception as problem:  # noqa: BLE001 - a damaged file may break anything, and no other
        return BrokenReport(name, f"it is damaged ({type(problem).__name__}).")


def _name_within(path: Path, folder: Path) -> str:
    return folder.resolve().name if path == folder else path.relative_to(folder).as_posix()


def _read_file(path: Path, name: str) -> StoredReport:
    result = load_report(path)
    return _describe_report(path, name, to_plain(result.to_dict()), result)


def _read_search(root: Path, name: str) -> StoredReport:
    """Return the latest run of a search, whose page is its analysis."""
    path = resolve_inside(root, RESULTS, RESULTS_FILE)
    if not path.is_file():
        raise BadInput(f"no search was finished there: it has no {RESULTS}/{RESULTS_FILE}.")
    values = read_json(path, dict[str, Any])
    report = _describe_report(path, name, values, analyze_search(root))
    return replace(report, holds_items=True)


def _list_earlier_runs(root: Path) -> Iterator[Path]:
    """Yield the folders of all runs but the latest."""
    folder = root / RESULTS / RUNS
    if folder.is_symlink() or folder.parent.is_symlink():
        return
    try:
        latest = read_json(root / RESULTS / RESULTS_FILE, dict[str, Any]).get("run")
    except OrdinateError:
        latest = None
    for run in sorted(folder.iterdir()) if folder.is_dir() else ():
        if run.is_dir() and not run.is_symlink() and run.name != latest:
            yield run


def _read_run(run: Path, name: str) -> StoredReport:
    path = resolve_inside(run, RESULTS_FILE)
    return _describe_report(path, name, read_json(path, dict[str, Any]), None)


def _describe_report(path: Path, name: str, values: Record, result: Result | None) -> StoredReport:
    date = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    found = tuple(list_values(values, PurePath(name).stem))
    return StoredReport(name, date, get_kind(values), found, result, compute_digest(values))
