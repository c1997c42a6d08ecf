"""The files of a results folder: where a run writes, and how they are read again."""

import json
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput, BadStore, shorten
from ordinate.experiment.layout import RESULTS


def load_latest_results(root: Path) -> dict[str, Any]:
    """Return the results of the latest run, once they say what others read from them."""
    found = read_run_file(root, RESULTS)
    studies = found.get("studies")
    if not (
        isinstance(found.get("winner"), str)
        and isinstance(studies, list)
        and all(_is_study(one) for one in studies)
    ):
        raise BadStore(f"{root / RESULTS} is not whole: run the search again.")
    return found


def _is_study(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("model"), str) or "best" not in one:
        return False
    best = one["best"]
    return best is None or (isinstance(best, dict) and isinstance(best.get("params"), dict))


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
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(
            f"{root} has no {name}: no search was finished there. Make one with: "
            f"ordinate surrogate tune DATA --target COLUMN -o {root}"
        ) from None
    except NotADirectoryError:
        raise BadInput(
            f"{root} is a file, and the results folder of a search is needed: what was given to "
            "ordinate surrogate tune as -o DIR."
        ) from None
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}.") from None
    except (ValueError, RecursionError) as problem:
        raise BadStore(f"{path} is no JSON: {shorten(str(problem))}") from None
    if not isinstance(found, dict) or found.get("task") != "surrogate":
        raise BadStore(f"{path} was not written by ordinate surrogate.")
    return found
