"""The files of a results folder: where a run writes, and how they are read again."""

from pathlib import Path
from typing import Any, TypedDict

from ordinate.errors import BadInput, BadStore
from ordinate.experiment.layout import RESULTS
from ordinate.experiment.stored_json import decode, read_plain_json


class BestTrialRecord(TypedDict):
    """The best trial of a study, as far as others read it."""

    params: dict[str, Any]


class StudyRecord(TypedDict):
    """A study in the results of a search."""

    model: str
    best: BestTrialRecord | None


class LatestResults(TypedDict):
    """The results of a search."""

    winner: str
    studies: list[StudyRecord]


def load_latest_results(root: Path) -> LatestResults:
    """Return the results of the latest run, once they say what others read from them."""
    return decode(
        read_run_file(root, RESULTS),
        LatestResults,
        root / RESULTS,
        advice="Run the search again.",
    )


def read_run_files(root: Path, *names: str) -> list[dict[str, Any]]:
    """Return several files of the latest run, once they are of one and the same."""
    found = [read_run_file(root, name) for name in names]
    if any(one.get("run") != found[0].get("run") for one in found):
        raise BadStore(
            f"{' and '.join(names)} of {root} are of different runs, for the latest was not "
            "finished. Run the search again."
        )
    return found


def read_run_file(root: Path, name: str) -> dict[str, Any]:
    """Return one of the files of the latest run."""
    path = root / name
    if root.is_file():
        raise BadInput(
            f"{root} is a file, and the results folder of a search is needed: what was given to "
            "ordinate surrogate tune as -o DIR."
        )
    if not path.exists():
        raise BadInput(
            f"{root} has no {name}: no search was finished there. Make one with: "
            f"ordinate surrogate tune DATA --target COLUMN -o {root}"
        )
    found = read_plain_json(path)
    if not isinstance(found, dict) or found.get("task") != "surrogate":
        raise BadStore(f"{path} was not written by ordinate surrogate.")
    return found
