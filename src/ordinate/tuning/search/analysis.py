"""Analysis of a finished search, from its files alone: values, hyperparameters, learning curves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.render import Document, Grid
from ordinate.render.charts import Chart
from ordinate.render.estimates import format_number
from ordinate.render.reserved_paths import RESULTS_FILE, TRIALS_FILE
from ordinate.render.tables import NAME, NUMBER, Column, Table
from ordinate.results.base import SCHEMA, Record, Result, align_columns
from ordinate.tuning.search.saved_models import explain_missing_keys, read_run_files
from ordinate.tuning.search.search_charts import (
    chart_history,
    chart_importance,
    chart_learning_curves,
    collect_curves,
)
from ordinate.tuning.search.studies import TRIAL_STATES, import_optuna, silence_optuna
from ordinate.tuning.search.tuning_result import (
    TuningResult,
    explain_missing_intervals,
    make_summary_table,
)

FEWEST_TRIALS = 4  # complete trials before anything can be said of parameters
FURTHER_ERRORS = {  # of regression, beside the RMSE
    "mae": "MAE",
    "r2": "R²",
    "relative_accuracy": "relative accuracy",
    "baseline_rmse": "baseline RMSE",
}
CURVES_TITLE = "Learning curves, on rows by which fits stop early (all points are in JSON and CSV)"
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

    @property
    def notes(self) -> list[str]:
        """What is to be known, of the data first: that test rows stand in training, say."""
        data = self.results["data"]
        leaks = data.get("leaks") or {"notes": []}
        cautions = dict.fromkeys([*leaks["notes"], *data.get("notes", [])])
        return [*cautions, *self.results["notes"]]

    def to_dict(self) -> Record:
        """Return plain values."""
        shared = {key: self.results[key] for key in ("run", "winner", "data", "summary")}
        return {
            "schema": SCHEMA,
            "task": "analyze_search",
            **shared,
            "studies": [_summarize_study(one) for one in self.results["studies"]],
            "importance": self.importance,
            "learning_curves": self.curves,
            "history": {name: list(map(list, some)) for name, some in self.history.items()},
            "notes": self.results["notes"],
        }

    def make_charts(self) -> Iterable[Chart]:
        """Yield trials, the importance of hyperparameters, and learning curves."""
        metric, unit = self.results["metric"], self.results["unit"]
        yield from chart_history(self.history, metric, unit, self.results["direction"])
        yield from chart_importance(self.importance, metric)
        yield from chart_learning_curves(self.curves, metric, unit)

    def tables(self) -> Iterable[Table]:
        """Return the values that matter, the studies, hyperparameters, and learning curves."""
        yield make_summary_table(self.summary)
        yield self._studies()
        metric = self.results["metric"]
        shares = [
            {"model": study, "hyperparameter": name, "importance": share}
            for study, found in self.importance.items()
            for name, share in (found or {}).items()
        ]
        columns = (
            Column("model"),
            Column("hyperparameter", kind=NAME),
            Column("importance"),
        )
        title = f"the share of the variance of {metric} that a hyperparameter explains"
        yield Table("importance", lambda study: f"{study}: {title}", columns, shares, by="model")
        steps = [
            {"model": study, "fit": fit, "step": step, "value": value}
            for study, curves in self.curves.items()
            for fit, curve in enumerate(curves, start=1)
            for step, value in curve
        ]
        points = tuple(map(Column, ("model", "fit", "step", "value")))
        yield Table("learning_curves", CURVES_TITLE, points, steps)

    def _studies(self) -> Table:
        """Return the best trial of each study, how many were made, and the ensemble."""
        best = [*self.results["studies"]]
        if one := self.results["ensemble"]:
            best.append({"set": "", "model": one["model"], "trials": {}, "best": one})
        studies = [_summarize_study(one) for one in best]
        records = [
            dict.fromkeys(FURTHER_ERRORS) | one | dict.fromkeys(TRIAL_STATES) | one["trials"]
            for one in studies
        ]
        errors = [name for name in FURTHER_ERRORS if any(name in one for one in studies)]
        spare = ("pruned", "failed") if errors else ()
        columns = (
            Column("model", kind=NAME, get=_name_study),
            Column("value", self._value_head, NUMBER),
            *(Column(name, FURTHER_ERRORS[name], NUMBER) for name in errors),
            *(Column(name, optional=name in spare) for name in TRIAL_STATES),
        )
        return Table(
            "studies", "Studies: the best trial of each, on held-out items", columns, records
        )

    @property
    def _value_head(self) -> str:
        metric, unit = self.results["metric"], self.results["unit"]
        return f"{metric} ({unit})" if unit else str(metric)

    def rows(self) -> list[Record]:
        """Return the records of all tables, and what is wrong with the data beside them."""
        parts = [{"part": x.name} | row for x in self.tables() for row in x.rows()]
        return align_columns([*parts, *({"part": "notes", "note": x} for x in self.notes)])

    def document(self) -> Document:
        """Return the report for people."""
        metric, unit, won = (self.results[key] for key in ("metric", "unit", "winning"))
        named = {"set": "" if won["members"] else "".join(won["sets"]), "model": won["model"]}
        verdict = (
            f"The best model is {_name_study(named)}: {metric} {format_number(won['value'])}"
            f"{f' {unit}' if unit else ''} on held-out items."
        )
        few = [study for study, found in self.importance.items() if found is None]
        unknown = (
            f"No importance of hyperparameters for {', '.join(few)}: that takes {FEWEST_TRIALS} "
            f"complete trials that differ in hyperparameters and in {metric}."
        )
        curves = [
            (study, fit, len(curve), *_find_best_step(curve))
            for study, fits in self.curves.items()
            for fit, curve in enumerate(fits, start=1)
        ]
        header = ("model", "fit", "points", "best step", f"{self._value_head} there")
        blocks = (
            *(grid.drop_empty_columns() for grid in self.get_table("summary").grids()),
            *self.get_table("studies").grids(),
            *self.get_table("importance").grids(),
            *([Grid(CURVES_TITLE, header, tuple(curves))] if curves else []),
        )
        notes = (*self.notes, *explain_missing_intervals(self.summary), unknown if few else "")
        return Document(f"Search for the best {metric}", blocks, verdict, notes)


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
        complete = {
            name: [one for one in some if one["state"] == "complete"] for name, some in made.items()
        }
        found = SearchAnalysis(
            results,
            {name: _compute_importance(some) for name, some in complete.items()},
            {name: x for name, some in made.items() if (x := collect_curves(some, best[name]))},
            {
                name: [(int(one["number"]), float(one["value"])) for one in some]
                for name, some in complete.items()
            },
        )
        _ = found.to_dict(), found.document(), found.rows()  # whatever is lacking, they need
    return found


def _name_study(one: Mapping[str, Any]) -> str:
    return f"{one['set']}/{one['model']}" if one["set"] else str(one["model"])


def _summarize_study(one: Mapping[str, Any]) -> Record:
    """Return a study, or an ensemble, with its best value; of regression with further errors."""
    best = one["best"] or {}
    about = {key: one[key] for key in ("set", "model", "trials")}
    about |= {"value": best.get("value"), "params": best.get("params")}
    found = best.get("cross_validation") or {}
    if found.get("task") != "regression":
        return about
    values = {name: metric["value"] for name, metric in found["metrics"].items()}
    values["baseline_rmse"] = found["baselines"][0]["rmse"]
    return about | {name: values[name] for name in FURTHER_ERRORS}


def _find_best_step(curve: Any) -> tuple[int, str]:
    step, value = min(curve, key=lambda point: point[1])
    return step, format_number(value)


# --- the importance of hyperparameters -----------------------------------------------------------


def _compute_importance(complete: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """Return the share of the variance of values that each hyperparameter explains, by fANOVA.

    Where neither hyperparameters nor values vary, there is nothing to explain.
    """
    tried = {
        name: [one["params"].get(name) for one in complete]
        for name in (complete[0]["params"] if complete else {})
        if all(name in one["params"] for one in complete)
    }
    varied = {name: some for name, some in tried.items() if len(set(map(str, some))) > 1}
    values = [one["value"] for one in complete]
    if len(complete) < FEWEST_TRIALS or not varied:
        return None
    if np.ptp(values) <= ROUNDING_TOLERANCE * np.abs(values).max():
        return None
    optuna = import_optuna()
    spaces = {name: _infer_distribution(optuna, some) for name, some in varied.items()}
    with silence_optuna():
        study = optuna.create_study()
        for one in complete:
            params = {name: one["params"][name] for name in varied}
            made = optuna.trial.create_trial(
                params=params, distributions=spaces, value=one["value"]
            )
            study.add_trial(made)
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        try:
            return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))
        except RuntimeError:  # its trees see no variance either
            return None


def _infer_distribution(optuna: Any, values: Sequence[Any]) -> Any:
    """Return the range of a parameter that was tried."""
    if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in values):
        low, high = min(values), max(values)
        return optuna.distributions.FloatDistribution(low, high, log=low > 0 and high / low > 10)
    return optuna.distributions.CategoricalDistribution(sorted(set(values), key=str))
