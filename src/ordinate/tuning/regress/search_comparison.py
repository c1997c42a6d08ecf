"""Comparison of several searches on the test rows that all of them have."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadInput, shorten
from ordinate.render.reserved_paths import RESULTS_FILE, TEST_PREDICTIONS_FILE
from ordinate.results.regression_comparison import RegressionComparison, compare_regression
from ordinate.tuning.regress.tuning_report import RegressionReport
from ordinate.tuning.search.saved_models import explain_missing_keys, read_run_files
from ordinate.tuning.search.tuning_result import TuningResult


def compare_searches(searches: Sequence[Path | str | TuningResult]) -> RegressionComparison:
    """Compare the winners of several searches on the test rows that all of them have.

    Searches are named by their folders, or are results. One search alone is compared with itself:
    its finalists with each other.

    >>> from ordinate.examples import locate_example
    >>> from ordinate.tuning.regress import tune_regression
    >>> table, options = locate_example("densities"), {"unit": "kg/m³", "trials": 1}
    >>> plain = tune_regression(table, "density", models="poly_ridge", **options)
    >>> curved = tune_regression(table, "density", models="kernel_ridge", **options)
    >>> found = compare_searches([plain, curved])
    >>> len(found.models)
    2
    """
    roots = [one.folder if isinstance(one, TuningResult) else one for one in searches]
    if not roots:
        raise BadInput("Name the folders of searches to compare.")
    tested = [read_run_files(Path(root), TEST_PREDICTIONS_FILE, RESULTS_FILE)[0] for root in roots]
    for one, root in zip(tested, roots, strict=True):
        if one["task"] != RegressionReport.task:
            raise BadInput(
                f"{root} holds no search of regression models. Compare the models of an "
                f"experiment with: ordinate rank -e {root}"
            )
    with explain_missing_keys(", ".join(map(str, roots))):
        return _compare_finalists(tested, roots)


def _compare_finalists(
    tested: Sequence[Mapping[str, Any]], roots: Sequence[Path | str]
) -> RegressionComparison:
    if len(tested) == 1:
        found = _get_test(tested[0], roots[0])
        if len(found["predictions"]) < 2:
            raise BadInput(f"{roots[0]} has one finalist only: name a second folder.")
        # a search has one finalist of each model type: what their names add makes tables wide
        columns = {
            name.rpartition("-")[0]: np.array(x, float) for name, x in found["predictions"].items()
        }
        unit, groups = tested[0]["data"]["unit"], found.get("groups")
        return compare_regression(np.array(found["targets"]), columns, unit=unit, groups=groups)
    columns, targets, unit, groups = _collect_winner_predictions(tested, roots)
    return compare_regression(targets, columns, unit=unit, groups=groups)


def _get_test(tested: Mapping[str, Any], root: Path | str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [one for one in tested["tests"] if one["data"] == "test"]
    if not found:
        raise BadInput(f"{root} has no test rows, so it cannot be compared.")
    return found[0]


def _collect_winner_predictions(
    tested: Sequence[Mapping[str, Any]], roots: Sequence[Path | str]
) -> tuple[dict[str, Any], Any, str | None, list[str] | None]:
    """Return what each winner predicts for the rows that all were tested on, and their groups."""
    parts = [_get_test(one, root) for one, root in zip(tested, roots, strict=True)]
    units = {one["data"]["unit"] for one in tested}
    if len(units) > 1:
        named = sorted(shorten(unit) if unit else "no unit" for unit in units)
        raise BadInput(
            f"The searches have several units: {', '.join(named)}. Run them again with the same "
            "--unit."
        )
    shared = sorted(set.intersection(*(set(part["rows"]) for part in parts)))
    if not shared:
        raise BadInput(
            "The searches have no test row in common. Give them the same data, --seed, "
            "--group-column and --shift."
        )
    columns: dict[str, Any] = {}
    targets = groups = None
    for one, part, root in zip(tested, parts, roots, strict=True):
        place = {row: k for k, row in enumerate(part["rows"])}
        order = [place[row] for row in shared]
        own = np.array(part["targets"], float)[order]
        if targets is not None and not np.array_equal(own, targets):
            raise BadInput(f"{root} has other targets in the same rows: it is another table.")
        targets = own
        groups = _merge_groups(groups, part.get("groups"), order, root)
        name = str(root) if str(root) not in columns else f"{root} ({len(columns) + 1})"
        columns[name] = np.array(part["predictions"][one["winner"]], float)[order]
    return columns, targets, units.pop(), groups


def _merge_groups(
    before: list[str] | None, own: Sequence[str] | None, order: Sequence[int], root: Path | str
) -> list[str] | None:
    """Return the groups of the rows; a search that was told of none has nothing against them."""
    if own is None:
        return before
    found = [own[k] for k in order]
    if before is not None and found != before:
        raise BadInput(f"{root} has other groups in the same rows: name the same --group-column.")
    return found
