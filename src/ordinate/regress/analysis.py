"""Analysis: what a finished search found, from its files alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadInput, BadStore, OrdinateError, shorten
from ordinate.experiment.layout import RESULTS, TEST_PREDICTIONS, TRIALS
from ordinate.regress.result_files import read_run_files
from ordinate.regress.tuning_text import CI_HEAD, build_summary_blocks, parse_estimate
from ordinate.render import Document, Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import format_estimate, format_number
from ordinate.results.base import SCHEMA, Result, align_columns
from ordinate.results.regression_comparison import RegressionComparison, compare_regression
from ordinate.search.trials import import_optuna, silence_optuna

FEWEST_TRIALS = 4  # complete trials before anything can be said of parameters
ROUNDING_TOLERANCE = 1e-12  # relative: values that differ by no more are the same


@dataclass(frozen=True, repr=False, eq=False)
class SearchAnalysis(Result):
    """A search: the measures that matter, the parameters that did, and how fits went."""

    results: dict[str, Any]
    importance: dict[str, dict[str, float] | None]  # by model type; None where trials are too few
    curves: dict[str, Any]  # of the best trial of each model type: (step, RMSE) by part

    @property
    def summary(self) -> list[dict[str, Any]]:
        """The measures, each with its interval."""
        return list(self.results["summary"])

    @property
    def cautions(self) -> list[str]:
        """What is to be known of the data: first of all rows of the test that stand in training."""
        leaks = self.results["leaks"] or {"notes": []}
        return list(dict.fromkeys([*leaks["notes"], *self.results["data"]["notes"]]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "schema": SCHEMA,
            "task": "surrogate analysis",
            "run": self.results["run"],
            "winner": self.results["winner"],
            "data": self.results["data"],
            "summary": self.summary,
            "studies": [_summarize_study(one) for one in self.results["studies"]],
            "importance": self.importance,
            "learning_curves": self.curves,
            "leaks": self.results["leaks"],
            "notes": self.results["notes"],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each measure, parameter, and step of a learning curve."""
        rows = [{"part": "summary"} | one for one in self.summary]
        rows += [
            {"part": "importance", "model": model_type, "measure": name, "value": value}
            for model_type, found in self.importance.items()
            for name, value in (found or {}).items()
        ]
        rows += [
            {
                "part": "learning curve",
                "model": model_type,
                "fit": fit + 1,
                "step": step,
                "value": value,
            }
            for model_type, curves in self.curves.items()
            for fit, curve in enumerate(curves)
            for step, value in curve
        ]
        notes = [*self.cautions, *self.results["notes"]]
        rows += [{"part": "note", "note": note} for note in notes]
        return align_columns(rows)

    def document(self) -> Document:
        """Return the report for people."""
        data = self.results["data"]
        unit = f" in {data['unit']}" if data["unit"] else ""
        error = f"RMSE ({data['unit']})" if data["unit"] else "RMSE"
        blocks: list[str | Grid] = [
            f"Run {self.results['run']}. The winner is {self.results['winner']}.",
            *self.cautions,
            *build_summary_blocks(self.summary),
            _build_studies_grid(self.results, f"held-out {error}"),
            *_build_importance_grids(self.importance),
            *_build_curves_grid(self.curves, f"{error} there"),
            *self.results["notes"],
        ]
        return Document(f"Search for a surrogate of {data['target']}{unit}", tuple(blocks))


def analyze_search(root: Path | str) -> SearchAnalysis:
    """Return what the latest run in a results folder found."""
    home = Path(root)
    results, trials = read_run_files(home, RESULTS, TRIALS)
    with _explain_missing_keys(home):
        studies = {one["model"]: one["trials"] for one in trials["studies"]}
        best = {one["model"]: one["best"] for one in results["studies"]}
        importance = {model_type: _compute_importance(made) for model_type, made in studies.items()}
        curves = {
            model_type: _collect_curves(made, best[model_type])
            for model_type, made in studies.items()
        }
        told = {model_type: curve for model_type, curve in curves.items() if curve}
        found = SearchAnalysis(results, importance, told)
        _ = found.to_dict(), found.document(), found.rows()  # whatever is lacking, they need
    return found


@contextmanager
def _explain_missing_keys(where: Any) -> Iterator[None]:
    """Say in words what the files of a search lack."""
    try:
        yield
    except OrdinateError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        lacking = f"lack {problem}" if isinstance(problem, KeyError) else f"are damaged: {problem}"
        raise BadStore(f"The files of {where} {lacking}. Run the search again.") from None


def _summarize_study(one: Mapping[str, Any]) -> dict[str, Any]:
    best = one["best"] or {}
    rmse = best["validation"]["metrics"]["rmse"] if best else None
    about = {"model": one["model"], "trials": one["trials"], "rmse": rmse}
    return about | {"params": best.get("params")}


# --- parameters ----------------------------------------------------------------------------------


def _compute_importance(trials: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """Return the share of the variance of the RMSE that each parameter explains, by fANOVA.

    Where the RMSE does not vary, there is nothing to explain.
    """
    complete = [one for one in trials if one["state"] == "complete"]
    names = _find_varied_hyperparameters(complete)
    if len(complete) < FEWEST_TRIALS or not names or _are_alike([one["value"] for one in complete]):
        return None
    optuna = import_optuna()
    with silence_optuna():
        study = optuna.create_study(direction="minimize")
        for one in complete:
            params = {name: one["params"][name] for name in names}
            spaces = {name: _infer_distribution(optuna, complete, name) for name in names}
            study.add_trial(
                optuna.trial.create_trial(params=params, distributions=spaces, value=one["value"])
            )
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        try:
            found = optuna.importance.get_param_importances(study, evaluator=evaluator)
        except RuntimeError:  # its trees see no variance either
            return None
    return {name: float(value) for name, value in found.items()}


def _are_alike(values: Sequence[float]) -> bool:
    """Tell whether values are the same but for rounding."""
    return bool(np.ptp(values) <= ROUNDING_TOLERANCE * np.abs(values).max())


def _find_varied_hyperparameters(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the parameters that all trials have, and not all alike."""
    first = trials[0]["params"] if trials else {}
    shared = [name for name in first if all(name in one["params"] for one in trials)]
    return [name for name in shared if len({str(one["params"][name]) for one in trials}) > 1]


def _infer_distribution(optuna: Any, trials: Sequence[Mapping[str, Any]], name: str) -> Any:
    """Return the range of a parameter that was tried."""
    values = [one["params"][name] for one in trials]
    distributions = optuna.distributions
    if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in values):
        low, high = min(values), max(values)
        return distributions.FloatDistribution(low, high, log=low > 0 and high / low > 10)
    return distributions.CategoricalDistribution(sorted(set(values), key=str))


# --- learning curves -----------------------------------------------------------------------------


def _collect_curves(
    trials: Sequence[Mapping[str, Any]], best: Mapping[str, Any] | None
) -> list[Any]:
    """Return the curves of the fits of the best trial, one for each part."""
    if best is None:
        return []
    rmse = best["validation"]["metrics"]["rmse"]["value"]
    complete = [one for one in trials if one["value"] is not None]
    found = min(complete, key=lambda one: abs(one["value"] - rmse), default={})
    return list(found.get("curves", []))


# --- grids ---------------------------------------------------------------------------------------


def _build_studies_grid(results: Mapping[str, Any], error: str) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for one in results["studies"]:
        counts = one["trials"]
        numbers = (counts["complete"], counts["pruned"], counts["failed"])
        rows.append((one["model"], _format_rmse(one["best"]), *numbers))
    if results["blend"] is not None:
        rows.append(("blend", _format_rmse(results["blend"]), None, None, None))
    header = ("model", error, "complete", "pruned", "failed")
    title = f"Studies: the best trial of each model type, with {CI_HEAD}"
    return Grid(title, header, tuple(rows))


def _format_rmse(finalist: Mapping[str, Any] | None) -> Cell:
    return (
        None
        if finalist is None
        else format_estimate(parse_estimate(finalist["validation"]["metrics"]["rmse"]))
    )


def _build_importance_grids(importance: Mapping[str, dict[str, float] | None]) -> list[str | Grid]:
    blocks: list[str | Grid] = []
    few = [model_type for model_type, found in importance.items() if found is None]
    for model_type, found in importance.items():
        if found is not None:
            title = f"{model_type}: the share of the variance of the RMSE that a parameter explains"
            rows: tuple[tuple[Cell, ...], ...] = tuple(found.items())
            blocks.append(Grid(title, ("parameter", "importance"), rows))
    if few:
        told = f"No importance of parameters for {', '.join(few)}"
        blocks.append(
            f"{told}: that takes {FEWEST_TRIALS} complete trials that differ in parameters and in "
            "RMSE."
        )
    return blocks


def _build_curves_grid(
    curves: Mapping[str, Sequence[Sequence[tuple[int, float]]]], error: str
) -> list[str | Grid]:
    rows: list[tuple[Cell, ...]] = []
    for model_type, fits in curves.items():
        for fit, curve in enumerate(fits):
            step, value = min(curve, key=lambda point: point[1])
            rows.append((model_type, fit + 1, len(curve), step, format_number(value)))
    if not rows:
        return []
    header = ("model", "fit", "points", "best step", error)
    title = "Learning curves, on rows by which fits stop early (all points are in JSON and CSV)"
    return [Grid(title, header, tuple(rows))]


# --- several searches ----------------------------------------------------------------------------


def compare_searches(roots: Sequence[Path | str]) -> RegressionComparison:
    """Compare the winners of several searches on the test rows that all of them have.

    One search alone is compared with itself: its finalists with each other.
    """
    tested = [read_run_files(Path(root), TEST_PREDICTIONS, RESULTS)[0] for root in roots]
    with _explain_missing_keys(", ".join(map(str, roots))):
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
    found: dict[str, Any] | None = tested["tests"].get("test")
    if found is None:
        raise BadInput(f"{root} has no test rows, so it cannot be compared.")
    return found


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
            "The searches have no test row in common. Give them the same data, --seed, --group "
            "and --shift."
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
        raise BadInput(f"{root} has other groups in the same rows: name the same --group.")
    return found
