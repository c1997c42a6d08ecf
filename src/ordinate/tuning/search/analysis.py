"""Analysis of a finished search, from its files alone: values, hyperparameters, learning curves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadInput, BadStore, OrdinateError
from ordinate.render import Document, Grid
from ordinate.render.charts import Chart
from ordinate.render.document import Cell
from ordinate.render.estimates import format_number
from ordinate.render.reserved_paths import (
    RESULTS,
    RESULTS_FILE,
    TRIALS_FILE,
    check_search_folder,
)
from ordinate.results.base import SCHEMA, Record, Result, align_columns
from ordinate.tuning.experiment.stored_json import read_plain_json
from ordinate.tuning.search.trials import TRIAL_STATES, import_optuna, silence_optuna
from ordinate.tuning.search.tuning_result import TuningResult
from ordinate.tuning.search.tuning_text import build_summary_grid, explain_missing_intervals

FEWEST_TRIALS = 4  # complete trials before anything can be said of parameters
FURTHER_ERRORS = {  # of regression, beside the RMSE
    "mae": "MAE",
    "r2": "R²",
    "relative_accuracy": "relative accuracy",
    "baseline_rmse": "baseline RMSE",
}
ROUNDING_TOLERANCE = 1e-12  # relative: values that differ by no more are the same


@dataclass(frozen=True, repr=False, eq=False)
class SearchAnalysis(Result):
    """A search: the values that matter, the hyperparameters that did, and how fits went."""

    results: Record
    importance: dict[str, dict[str, float] | None]  # by study; None where trials are too few
    curves: dict[str, Any]  # of the best trial of each study: (step, value) by fold
    history: dict[str, list[tuple[int, float]]]  # number and value of complete trials, by study

    @property
    def summary(self) -> list[Record]:
        """The values, each with its interval."""
        return list(self.results["summary"])

    def to_dict(self) -> Record:
        """Return plain values."""
        return {
            "schema": SCHEMA,
            "task": "analyze_search",
            "run": self.results["run"],
            "winner": self.results["winner"],
            "data": self.results["data"],
            "summary": self.summary,
            "studies": [_summarize_study(one) for one in self.results["studies"]],
            "importance": self.importance,
            "learning_curves": self.curves,
            "history": {name: list(map(list, some)) for name, some in self.history.items()},
            "notes": self.results["notes"],
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return trials, the importance of hyperparameters, and learning curves."""
        from ordinate.tuning.search.search_charts import chart_analysis  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_analysis(self)

    def rows(self) -> list[Record]:
        """Return one flat record for each value, hyperparameter, and step of a learning curve."""
        rows: list[Record] = [{"part": "summary"} | one for one in self.summary]
        rows += [
            {"part": "importance", "model": study, "title": name, "value": value}
            for study, found in self.importance.items()
            for name, value in (found or {}).items()
        ]
        rows += [
            {
                "part": "learning curve",
                "model": study,
                "fit": fit + 1,
                "step": step,
                "value": value,
            }
            for study, curves in self.curves.items()
            for fit, curve in enumerate(curves)
            for step, value in curve
        ]
        notes = [*list_cautions(self.results), *self.results["notes"]]
        rows += [{"part": "note", "note": note} for note in notes]
        return align_columns(rows)

    def document(self) -> Document:
        """Return the report for people."""
        metric, unit = self.results["metric"], self.results["unit"]
        winner = name_winner(self.results)
        value = format_number(self.results["winning"]["value"])
        verdict = (
            f"The best model is {winner}: {metric} {value}{f' {unit}' if unit else ''} on "
            "held-out items."
        )
        blocks: list[str | Grid] = [
            build_summary_grid(self.summary),
            build_studies_grid(self.results),
            *_build_importance_grids(self.importance, metric),
            *_build_curves_grid(self.curves, f"{name_value(self.results)} there"),
        ]
        notes = [
            *list_cautions(self.results),
            *self.results["notes"],
            *explain_missing_intervals(self.summary),
            _explain_missing_importance(self.importance, metric),
        ]
        return Document(f"Search for the best {metric}", tuple(blocks), verdict, tuple(notes))


def analyze_search(root: Path | str | TuningResult) -> SearchAnalysis:
    """Return what the latest run of a search found; `root` is its folder, or a result.

    >>> from ordinate.tuning.classify import tune
    >>> from ordinate.examples import locate_example
    >>> tuned = tune(locate_example("texts"), preset="minimal", trials=1)
    >>> found = analyze_search(tuned)
    >>> found.document().title
    'Search for the best cem_ord'
    """
    home = Path(root.folder if isinstance(root, TuningResult) else root)
    results, trials = read_run_files(home, RESULTS_FILE, TRIALS_FILE)
    with explain_missing_keys(home):
        made = {_name_study(one): one["trials"] for one in trials["studies"]}
        best = {_name_study(one): one["best"] for one in results["studies"]}
        importance = {name: _compute_importance(some) for name, some in made.items()}
        curves = {name: collect_curves(some, best[name]) for name, some in made.items()}
        shown = {name: curve for name, curve in curves.items() if curve}
        found = SearchAnalysis(results, importance, shown, collect_histories(trials))
        _ = found.to_dict(), found.document(), found.rows()  # whatever is lacking, they need
    return found


def read_tuned_params(root: Path) -> dict[str, dict[str, Any]]:
    """Return the hyperparameters that a search found, by model type, one study each."""
    (results,) = read_run_files(root, RESULTS_FILE)
    with explain_missing_keys(root):
        best = [one["best"] for one in results["studies"] if one["best"]]
        return {one["model"]: dict(one["params"]) for one in best}


def read_run_files(root: Path, *names: str) -> list[Record]:
    """Return several files of the latest run, once they are of one and the same."""
    found = [_read_run_file(root, name) for name in names]
    if any(one.get("run") != found[0].get("run") for one in found):
        raise BadStore(
            f"{' and '.join(names)} of {root / RESULTS} are of different runs, for the latest was "
            "not finished. Run the search again."
        )
    return found


def _read_run_file(root: Path, name: str) -> Record:
    check_search_folder(root)
    path = root / RESULTS / name
    if not path.exists():
        raise BadInput(
            f"{root} has no {RESULTS}/{name}: no search was finished there. Make one with: "
            f"ordinate tune -e {root}, or ordinate tune-regression DATA -e {root}"
        )
    found = read_plain_json(path)
    if not isinstance(found, dict) or not str(found.get("task")).startswith("tune"):
        raise BadStore(f"{path} was not written by a search of Ordinate.")
    return found


def list_cautions(results: Mapping[str, Any]) -> list[str]:
    """Return what is to be known of the data: first of all test rows that stand in training."""
    data = results["data"]
    leaks = data.get("leaks") or {"notes": []}
    return list(dict.fromkeys([*leaks["notes"], *data.get("notes", [])]))


def name_value(results: Mapping[str, Any]) -> str:
    """Return the metric of a search, with its unit."""
    metric, unit = results["metric"], results["unit"]
    return f"{metric} ({unit})" if unit else str(metric)


def _name_study(one: Mapping[str, Any]) -> str:
    return f"{one['set']}/{one['model']}" if one["set"] else str(one["model"])


def name_winner(results: Record) -> str:
    """Return what people call the model that won."""
    winner = results["winning"]
    named = {"set": "" if winner["members"] else "".join(winner["sets"]), "model": winner["model"]}
    return _name_study(named)


@contextmanager
def explain_missing_keys(where: Any) -> Iterator[None]:
    """Say in words what the files of a search lack."""
    try:
        yield
    except OrdinateError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        lacking = f"lack {problem}" if isinstance(problem, KeyError) else f"are damaged: {problem}"
        raise BadStore(f"The files of {where} {lacking}. Run the search again.") from None


def _summarize_study(one: Mapping[str, Any]) -> Record:
    best = one["best"] or {}
    about = {"set": one["set"], "model": one["model"], "trials": one["trials"]}
    about |= {"value": best.get("value"), "params": best.get("params")}
    return about | _collect_further_errors(best)


def _collect_further_errors(best: Mapping[str, Any]) -> dict[str, float]:
    """Return what regression reports beside the RMSE; nothing for other tasks."""
    found = best.get("cross_validation") or {}
    if found.get("task") != "regression":
        return {}
    values = {name: one["value"] for name, one in found["metrics"].items()}
    values["baseline_rmse"] = found["baselines"][0]["rmse"]
    return {name: values[name] for name in FURTHER_ERRORS}


# --- parameters ----------------------------------------------------------------------------------


def _compute_importance(trials: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """Return the share of the variance of values that each hyperparameter explains, by fANOVA.

    Where values do not vary, there is nothing to explain.
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


# --- trials and learning curves ------------------------------------------------------------------


def collect_histories(trials: Mapping[str, Any]) -> dict[str, list[tuple[int, float]]]:
    """Return number and value of the trials that were completed, by study."""
    return {
        _name_study(study): [
            (int(one["number"]), float(one["value"]))
            for one in study["trials"]
            if one["state"] == "complete"
        ]
        for study in trials["studies"]
    }


def collect_curves(
    trials: Sequence[Mapping[str, Any]], best: Mapping[str, Any] | None
) -> list[Any]:
    """Return the curves of the fits of the best trial, one for each part."""
    if best is None:
        return []
    complete = [one for one in trials if one["value"] is not None]
    found = min(complete, key=lambda one: abs(one["value"] - abs(best["value"])), default={})
    return list(found.get("curves", []))


# --- grids ---------------------------------------------------------------------------------------


def build_studies_grid(results: Mapping[str, Any]) -> Grid:
    """Return the best trial of each study, how many were made, and the ensemble."""
    studies = results["studies"]
    best = [(_name_study(one), one["best"] or {}, one["trials"]) for one in studies]
    if (ensemble := results["ensemble"]) is not None:
        best.append((ensemble["model"], ensemble, {}))
    errors = [_collect_further_errors(one) for _, one, _ in best]
    further = tuple(FURTHER_ERRORS) if any(errors) else ()
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            _format_value(one.get("value")),
            *(_format_value(of.get(error)) for error in further),
            *(counts.get(state) for state in TRIAL_STATES),
        )
        for (name, one, counts), of in zip(best, errors, strict=True)
    ]
    titles = (FURTHER_ERRORS[error] for error in further)
    header = ("model", name_value(results), *titles, *TRIAL_STATES)
    title = "Studies: the best trial of each, on held-out items"
    return Grid(title, header, tuple(rows), optional=("pruned", "failed") if further else ())


def _format_value(value: float | None) -> Cell:
    return None if value is None else format_number(value)


def _build_importance_grids(
    importance: Mapping[str, dict[str, float] | None], metric: str
) -> list[Grid]:
    title = f"the share of the variance of {metric} that a hyperparameter explains"
    return [
        Grid(f"{study}: {title}", ("hyperparameter", "importance"), tuple(found.items()))
        for study, found in importance.items()
        if found is not None
    ]


def _explain_missing_importance(
    importance: Mapping[str, dict[str, float] | None], metric: str
) -> str:
    few = [study for study, found in importance.items() if found is None]
    if not few:
        return ""
    return (
        f"No importance of hyperparameters for {', '.join(few)}: that takes {FEWEST_TRIALS} "
        f"complete trials that differ in hyperparameters and in {metric}."
    )


def _build_curves_grid(
    curves: Mapping[str, Sequence[Sequence[tuple[int, float]]]], error: str
) -> list[str | Grid]:
    rows: list[tuple[Cell, ...]] = []
    for study, fits in curves.items():
        for fit, curve in enumerate(fits):
            step, value = min(curve, key=lambda point: point[1])
            rows.append((study, fit + 1, len(curve), step, format_number(value)))
    if not rows:
        return []
    header = ("model", "fit", "points", "best step", error)
    title = "Learning curves, on rows by which fits stop early (all points are in JSON and CSV)"
    return [Grid(title, header, tuple(rows))]
