"""Old records in the layout of today: both searches have one, and write their files in one place.

Only places change here, never a value; names are still the old ones, which `renames.json` renames.
"""

from typing import Any

Record = dict[str, Any]
DROPPED_ATTRIBUTES = (
    *("test_rmse", "test_rmse_denorm", "mae_denorm", "r2_score", "r2_pct"),
    *("validation_rmse", "validation_rmse_denorm", "validation_mae_denorm", "validation_r2_score"),
)


def convert(case: str, record: Any) -> Any:
    """Return the record of a case as it would be laid out today."""
    group, _, name = case.partition("/")
    if case == "texts/files" or (group == "experiment" and name.startswith("files-")):
        return convert_experiment_tree(record)
    if group == "surrogate" and name.startswith("files-"):
        return convert_search_tree(record)
    report = record.get("report") if isinstance(record, dict) else None
    if group == "tune" and name != "plan" and isinstance(report, dict) and "winner" in report:
        return record | {"report": convert_classification(report)}
    if group == "surrogate" and isinstance(report, dict) and "blend" in report:
        return record | {"report": convert_regression(report)}
    if group == "surrogate" and isinstance(report, dict) and "importance" in report:
        return record | {"report": convert_analysis(report)}
    return record


# --- classification ------------------------------------------------------------------------------


def convert_classification(report: Record) -> Record:
    """Return the results of tuning a classifier."""
    found = {
        key: value
        for key, value in report.items()
        if key not in ("sets", "vote", "tests", "nested")
    }
    found["unit"] = None
    if "sets" in report:
        found["screening"] = [
            {key: value for key, value in one.items() if key != "screening"}
            | {"cross_validation": one["screening"]}
            for one in report["sets"]
        ]
    if "winning" in report:
        found["winning"] = _convert_finalist(report["winning"])
        found["studies"] = [
            one | {"best": one["best"] and _convert_finalist(one["best"])}
            for one in report["studies"]
        ]
        found["ensemble"] = report["vote"] and _convert_finalist(report["vote"])
        found["tests"] = [
            {key: value for key, value in one.items() if key != "note"}
            | {"notes": [one["note"]] if one["note"] else [], "finalists": None}
            for one in report["tests"]
        ]
        found["nested"] = report["nested"]
    return found


def _convert_finalist(one: Record) -> Record:
    return one | {"weights": [], "value": one["cross_validation"]["value"]}


def convert_experiment_tree(tree: Record) -> Record:
    """Return the files of an experiment."""
    latest, results = tree["ho_multifeat_results"], dict(tree["results"])
    runs = {
        name: _convert_run(results.pop(name))
        for name in list(results)
        if "stage2_optimization_results.json" in results[name]
    }
    for folder in ("nested", "screening"):
        if folder in results:
            results[folder] = {name: _convert_cached(one) for name, one in results[folder].items()}
    models = {name: _convert_classifier_files(one) for name, one in tree["models"].items()}
    rest = {
        key: value
        for key, value in tree.items()
        if key not in ("ho_multifeat_results", "results", "models")
    }
    return rest | {
        "models": models,
        "results": results | _convert_run(latest) | {"runs": runs},
    }


def _convert_run(files: Record) -> Record:
    screening = files["stage1_screening_results.json"]
    found = files["stage2_optimization_results.json"]
    trials = files["stage2_detailed_results.json"]
    converted = {
        "results.json": convert_classification(screening | found),
        "trials.json": trials | {"unit": None},
        "summary.md": files["optimization_summary.md"],
    }
    return converted | ({"config.toml": files["config.toml"]} if "config.toml" in files else {})


def _convert_cached(record: Record) -> Record:
    kept = {
        key: value for key, value in record.items() if key not in ("levels", "failed", "digest")
    }
    return (
        kept
        | ({"failed": record["failed"]} if record.get("failed") else {})
        | ({"predictions": record["levels"]} if record["levels"] else {})
    )


def _convert_classifier_files(files: Record) -> Record:
    model = {name: one for name, one in files.items() if name.startswith("model.")}
    found = {name: one for name, one in files.items() if name == "decision.json"}
    if model:
        found["model"] = model
        found["out_of_fold.npz"] = {"predictions": files["out_of_fold.npy"], "spread": []}
    return found


# --- regression ----------------------------------------------------------------------------------


def convert_regression(report: Record) -> Record:
    """Return the results of tuning a regression model."""
    header = _convert_header(report)
    return header | {
        "winner": report["winner"],
        "winning": _convert_model(report["winning"]),
        "summary": [_convert_measure(one) for one in report["summary"]],
        "screening": [],
        "studies": [
            one | {"set": "", "best": one["best"] and _convert_model(one["best"])}
            for one in report["studies"]
        ],
        "ensemble": report["blend"] and _convert_model(report["blend"]),
        "tests": [_convert_test(name, one) for name, one in _order_tests(report["tests"])],
        "nested": None,
        "notes": report["notes"],
    }


def _convert_header(report: Record, leaks: Any = None) -> Record:
    settings = {
        key: x for key, x in report["settings"].items() if key not in ("model", "kinds", "fixed")
    }
    settings |= {"models": report["settings"]["kinds"], "params": report["settings"]["fixed"]}
    data = report["data"] | {"leaks": report.get("leaks", leaks)}
    return {
        "schema": report["schema"],
        "task": "tune_regression",
        "run": report["run"],
        "metric": "RMSE",
        "direction": "minimize",
        "unit": report["data"]["unit"],
        "settings": settings,
        "data": data,
    }


def _convert_measure(one: Record) -> Record:
    return {key: value for key, value in one.items() if key != "measure"} | {
        "title": one["measure"]
    }


def _convert_model(one: Record) -> Record:
    evaluation = one["validation"]
    rest = {key: value for key, value in one.items() if key != "validation"}
    usual = {"sets": [], "members": [], "weights": [], "notes": []}
    value = evaluation["metrics"]["rmse"]["value"]
    return usual | rest | {"value": value, "cross_validation": evaluation}


def _order_tests(tests: Record) -> list[tuple[str, Record]]:
    """Return tests in their order, the usual one first: a record has its keys sorted."""
    return sorted(tests.items(), key=lambda item: item[0] != "test")


def _convert_test(name: str, one: Record) -> Record:
    apart = ("rows", "finalists", "notes")
    return {
        "data": name,
        "description": one["rows"],
        "n": one["n"],
        "groups": one["groups"],
        "test": {key: value for key, value in one.items() if key not in apart},
        "finalists": one["finalists"],
        "notes": one["notes"],
    }


def convert_analysis(report: Record) -> Record:
    """Return the analysis of a search."""
    rest = {key: value for key, value in report.items() if key != "leaks"}
    return rest | {
        "task": "analyze_search",
        "data": report["data"] | {"leaks": report["leaks"]},
        "summary": [_convert_measure(one) for one in report["summary"]],
        "studies": [
            {key: value for key, value in one.items() if key != "rmse"}
            | {"set": "", "value": one["rmse"] and one["rmse"]["value"]}
            for one in report["studies"]
        ],
    }


def convert_search_tree(tree: Record) -> Record:
    """Return the files of a search."""
    own = ("models", "results.json", "trials.json", "summary.md", "test_predictions.json", "runs")
    results = {key: value for key, value in tree.items() if key not in own}
    results |= _convert_search_run(tree)
    results["runs"] = {name: _convert_search_run(one) for name, one in tree["runs"].items()}
    models = {name: _convert_regressor_files(one) for name, one in tree["models"].items()}
    return {"models": models, "results": results}


def _convert_search_run(files: Record) -> Record:
    leaks = files["results.json"]["leaks"]
    trials, tested = files["trials.json"], files["test_predictions.json"]
    found = {
        "results.json": convert_regression(files["results.json"]),
        "trials.json": _convert_header(trials, leaks)
        | {"studies": [_convert_trials(one) for one in trials["studies"]]},
        "test_predictions.json": _convert_header(tested, leaks)
        | {
            "winner": tested["winner"],
            "tests": [{"data": name} | one for name, one in _order_tests(tested["tests"])],
        },
        "summary.md": files["summary.md"],
    }
    if "config.toml" in files:
        found["config.toml"] = files["config.toml"]
    return found


def _convert_trials(study: Record) -> Record:
    trials = []
    for one in study["trials"]:
        rest = {key: x for key, x in one.items() if key not in (*DROPPED_ATTRIBUTES, "after_parts")}
        if "validation_rmse" in one:
            rest["normalized_rmse"] = one["validation_rmse"]
            rest["mae"] = one["validation_mae_denorm"]
            rest["r2"] = one["validation_r2_score"]
        trials.append(rest | {"after_folds": one["after_parts"]})
    return {"set": "", "model": study["model"], "trials": trials}


def _convert_regressor_files(files: Record) -> Record:
    found = {key: x for key, x in files.items() if key not in ("surrogate.json", "held_out.npz")}
    found["description.json"] = files["surrogate.json"] | {"task": "regression", "sets": []}
    if "held_out.npz" in files:
        held = files["held_out.npz"]
        found["out_of_fold.npz"] = {key: held[key] for key in ("predictions", "spread")}
    return found
