"""What the JSON of each report is made of, written as JSON schemas into `src/ordinate/schemas`.

Run by `make docs`. Tests compare the files with what is said here, and reports with both. A key
that ends with ? may be absent. Every number that is measured may be null, which is how JSON says
undefined. Schemas allow further keys, because later versions may add some; tests do not.
"""

import json
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[1] / "src" / "ordinate" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
Parts = dict[str, Any]

# --- how parts are written -----------------------------------------------------------------------

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
INTEGER = {"type": "integer"}
YES_OR_NO = {"type": "boolean"}
MEASURED = {"type": ["number", "null"]}  # null where it is undefined
AMOUNT = {"type": "number"}  # a weight or a position, an integer where it is whole
SHARE = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
LABEL = {"type": ["string", "integer", "number", "boolean"]}
OPEN: Parts = {}  # anything: what one task, model or setting knows alone
OPEN_RECORD = {"type": "object"}


def one_of(*values: str | None) -> Parts:
    """One of a few texts."""
    return {"enum": list(values)}


def or_null(part: Parts) -> Parts:
    """What may be null, which says why in another place, or that it was not asked for."""
    return {"anyOf": [part, {"type": "null"}]}


def items(part: Parts) -> Parts:
    """A list."""
    return {"type": "array", "items": part}


def by_name(part: Parts) -> Parts:
    """Values by the names of metrics, systems, levels and such."""
    return {"type": "object", "additionalProperties": part}


def record(parts: Parts) -> Parts:
    """Values by keys that are always the same; keys of one kind may stand together."""
    named = {name: part for names, part in parts.items() for name in names.split()}
    return {
        "type": "object",
        "properties": {name.removesuffix("?"): part for name, part in named.items()},
        "required": [name for name in named if not name.endswith("?")],
    }


def records(parts: Parts) -> Parts:
    """A list of records."""
    return items(record(parts))


def records_by_name(parts: Parts) -> Parts:
    """Records by names."""
    return by_name(record(parts))


def shared(name: str) -> Parts:
    """A part of several reports."""
    return {"$ref": f"#/$defs/{name}"}


# --- parts that reports share --------------------------------------------------------------------

TEXTS, NUMBERS, LABELS = items(TEXT), items(MEASURED), items(LABEL)
DIRECTION = one_of("maximize", "minimize", "zero")
VERDICT = one_of("better", "worse", "inconclusive", "identical", "untested")
INTERVAL = {"value low high": MEASURED, "method note": or_null(TEXT), "undefined_share": SHARE}
ESTIMATE = shared("estimate")
BASELINE = {"value": MEASURED, "undefined": or_null(TEXT)}
CONSTANT_TEST = record(
    {"verdict": one_of("better", "inconclusive", "worse"), "p": MEASURED, "method": TEXT}
)
SCORE = INTERVAL | {
    "undefined": or_null(TEXT),
    "levels_used": COUNT,
    "direction": DIRECTION,
    "baselines": shared("baselines"),
    "attainable": or_null(NUMBERS),
    "beats_constant": or_null(YES_OR_NO),
    "against_constant": or_null(CONSTANT_TEST),
}
CASE_AVERAGES = {
    "column": or_null(TEXT),
    "cases": COUNT,
    "cases_fixed": YES_OR_NO,
    "interval": MEASURED,
    "metrics": records_by_name(
        INTERVAL
        | {
            "direction": DIRECTION,
            "spread spread_without_item_noise": MEASURED,
            "cases_with_value cases_without_value cases_with_standard_error": COUNT,
            "undefined": or_null(TEXT),
            "worst": TEXTS,
        }
    ),
    "by_case": records(
        {
            "case": TEXT,
            "n": COUNT,
            "scale": or_null(LABELS),
            "metrics": records_by_name(
                {"value standard_error low high": MEASURED, "undefined method": or_null(TEXT)}
            ),
        }
    ),
}
TEST = record(
    {
        "p": SHARE,
        "statistic": MEASURED,
        "degrees_of_freedom resamples": or_null(COUNT),
        "note": or_null(TEXT),
    }
)
PAIR = {
    "first second": TEXT,
    "difference low high": MEASURED,
    "method note": or_null(TEXT),
    "p p_adjusted": SHARE,
    "verdict": or_null(VERDICT),
}
MATCHES = {"matched": COUNT, "missing": COUNT, "unknown": COUNT, "predicted?": COUNT}
ORIGIN = {
    "gold": TEXT,
    "files": TEXTS,
    "match_counts": or_null({"anyOf": [record(MATCHES), records_by_name(MATCHES)]}),
    "notes": TEXTS,
}
CURVE = {
    "miscalibration discrimination uncertainty within_variance within_covariance": MEASURED,
    "score": MEASURED,
    "if_calibrated": or_null(shared("if_calibrated")),
}
TAILS = {
    "worst_item_share worst_percent_share rmse rmse_without_worst mae kurtosis": MEASURED,
    "hill_index": MEASURED,
    "undefined": by_name(TEXT),
}
BIN = {
    "name": TEXT,
    "low high target prediction spread rmse share": MEASURED,
    "n": COUNT,
    "bias": ESTIMATE,
}
EXAMPLE = {
    "scale gold before after": items(INTEGER),
    "values": NUMBERS,
    "scale_after gold_after": or_null(items(INTEGER)),
}
PROPERTY_VERDICT = one_of("not_violated", "tie_only", "undefined", "violated")
PROPERTY = {
    "verdict verdict_with_empty_levels": PROPERTY_VERDICT,
    "cases violations ties undefined_cases cases_with_empty_levels": COUNT,
    "lowest highest": MEASURED,
    "kinds": by_name(PROPERTY_VERDICT),
    "max_levels max_items": COUNT,
    "sizes": by_name(COUNT),
    "paper": or_null(TEXT),
    "counterexample": or_null(shared("counterexample")),
    "counterexample_with_empty_levels": or_null(shared("counterexample")),
    "reason": or_null(TEXT),
    "agrees": or_null(YES_OR_NO),
}
FINALIST = {
    "name model": TEXT,
    "sets members notes": TEXTS,
    "params cross_validation": OPEN_RECORD,
    "weights": NUMBERS,
    "value": MEASURED,
}
TRIALS = record({"requested": COUNT, "complete": COUNT, "pruned": COUNT, "failed": COUNT})
SUMMARY = records({"key": TEXT, "title": TEXT, "unit": or_null(TEXT)} | INTERVAL)
SEARCHED = {
    "run metric": TEXT,
    "direction": DIRECTION,
    "unit": or_null(TEXT),
    "settings data": OPEN_RECORD,
    "winning": shared("finalist"),
    "summary": SUMMARY,
    "screening": records(
        {
            "set matched": TEXT,
            "features": COUNT,
            "shortlisted": YES_OR_NO,
            "discard_reason failed": or_null(TEXT),
            "value": MEASURED,
            "cross_validation": or_null(OPEN_RECORD),
        }
    ),
    "studies": records(
        {"set": TEXT, "model": TEXT, "trials": TRIALS, "best": or_null(shared("finalist"))}
    ),
    "nested": or_null(
        record(
            {"selected": TEXTS, "finished": YES_OR_NO, "value": MEASURED, "estimate": OPEN_RECORD}
        )
    ),
    "notes": TEXTS,
}
SETS = {
    "n": COUNT,
    "coverage": ESTIMATE,
    "coverage_by_level": by_name(ESTIMATE),
    "mean_distance": ESTIMATE,
    "mean_size": MEASURED,
    "size_shares": by_name(SHARE),
    "empty_share": SHARE,
    "notes": TEXTS,
}
STANDING = INTERVAL | {
    "undefined": or_null(TEXT),
    "rank rank_low rank_high": or_null(COUNT),
    "rank_frequencies": by_name(SHARE),
    "compact_letter_display": or_null(TEXT),
    # Of a test set that is ranked, too:
    "quadratic_kappa?": ESTIMATE,
    "flag?": or_null(TEXT),
    "coverage?": or_null(
        record(
            {"predicted items unknown of_other_sets": COUNT, "share": SHARE, "unknown_ids": TEXTS}
        )
    ),
}
LEADERBOARD = {
    "direction": DIRECTION,
    "unit?": or_null(TEXT),
    "conclusion": TEXT,
    "notes": TEXTS,
    "test": or_null(
        record({"method own_p_values rank_intervals": TEXT, "resamples": or_null(COUNT)})
    ),
    "systems": records_by_name(STANDING),
    "pairs": records(PAIR | {"margin_verdict": or_null(TEXT)}),
    "baselines": or_null(OPEN_RECORD | {"additionalProperties": shared("baseline")}),
}
TERMS = record(
    {"reliability resolution uncertainty within_variance within_covariance score": MEASURED}
)
LEVEL = {"level": LABEL, "name": TEXT, "support": AMOUNT, "predicted": AMOUNT} | {
    f"{name}{end}": MEASURED
    for end in ("", "_low", "_high")
    for name in ("precision", "recall", "f1", "mae")
}
SHARED = {
    "estimate": record(INTERVAL),
    "baseline": record({"level?": LABEL} | BASELINE),
    "baselines": record(
        {name: shared("baseline") for name in ("best_constant", "majority", "chance")}
    ),
    "score": record(SCORE),
    "if_calibrated": record({"mean": MEASURED, "high": MEASURED, "p": SHARE}),
    "counterexample": record(EXAMPLE),
    "property": record(PROPERTY),
    "finalist": record(FINALIST),
    "leaderboard": record(LEADERBOARD),
    "bin": record(BIN),
    "origin": record(ORIGIN | {"predicted": TEXT}),
}
HEAD = {"schema": {"const": 1}}


def task(name: str) -> Parts:
    """The head of a report, which says what it is."""
    return HEAD | {"task": {"const": name}}


# --- reports, by the names of their classes ------------------------------------------------------

CALIBRATION = {
    "n": COUNT,
    "scale": LABELS,
    "metrics": records_by_name(
        INTERVAL
        | {
            "direction": DIRECTION,
            "base_rate": MEASURED,
            "if_calibrated": or_null(shared("if_calibrated")),
            "approximate": YES_OR_NO,
            "error_bound": MEASURED,
        }
    ),
    "calibration_curves": record(
        {
            "resamples": or_null(COUNT),
            "approximate": YES_OR_NO,
            "rps": record(CURVE),
            "events": records(
                {"at_most": LABEL}
                | CURVE
                | {"points": records({"forecast frequency low high": MEASURED, "count": COUNT})}
            ),
        }
    ),
    "bins": records({"low high accuracy confidence gap": MEASURED, "count": COUNT}),
    "per_level": records(
        {
            "level": LABEL,
            "name": TEXT,
            "average_probability accuracy mean_probability gold_share": MEASURED,
            "count": COUNT,
        }
    ),
    "decomposition": by_name(TERMS),
    "clipped": or_null(COUNT),
    "interval": MEASURED,
    "dropped": COUNT,
    "notes": TEXTS,
}
EVALUATION = task("labels") | {
    "n weight": AMOUNT,
    "scale": LABELS,
    "positions": items(AMOUNT),
    "confusion_matrix": items(items(AMOUNT)),
    "unanswered": items(AMOUNT),
    "dropped": COUNT,
    "metrics": by_name(shared("score")),
    "per_level": records(LEVEL),
    "interval": MEASURED,
    "groups": or_null(COUNT),
    "average_over": or_null(record(CASE_AVERAGES)),
    "second_rater": or_null(by_name(ESTIMATE)),
    "error_attribution": by_name(
        records(
            {
                "gold": LABEL,
                "predicted": or_null(LABEL),
                "weight": AMOUNT,
                "gain per_item": MEASURED,
            }
        )
    ),
    "difference_from_rest": by_name(OPEN_RECORD),
    "by": by_name(shared("evaluation")),
    "probabilities": or_null(record(CALIBRATION)),
    "source": shared("origin"),
}
COMPARED = {
    "n weight": AMOUNT,
    "systems": TEXTS,
    "groups": or_null(COUNT),
    "dropped resamples": COUNT,
    "level": MEASURED,
    "seed": INTEGER,
    "against correction": TEXT,
    "metrics": by_name(shared("leaderboard")),
    "source": record(ORIGIN),
}
COMPARISON = (
    task("compare")
    | COMPARED
    | {
        "scale": LABELS,
        "average_over": OPEN,
        "tests": items(
            record({"first": TEXT, "second": TEXT, "permutation": by_name(TEST)})
            | {"additionalProperties": TEST}
        ),
    }
)
REGRESSION_COMPARISON = (
    task("compare_regression")
    | COMPARED
    | {
        "unit": or_null(TEXT),
        "tails": records_by_name(TAILS),
        "tails_assumption": or_null(TEXT),
    }
)
RESIDUALS = task("residuals") | {
    "n": COUNT,
    "unit": or_null(TEXT),
    "interval rmse": MEASURED,
    "bias": ESTIMATE,
    "by_prediction": items(shared("bin")),
    "spread_and_prediction": ESTIMATE,
    "features": records(
        {
            "name": TEXT,
            "bins": items(shared("bin")),
            "explained by_chance limit": MEASURED,
            "beyond_chance": YES_OR_NO,
        }
    ),
    "largest": records(
        {"row": COUNT, "name": or_null(TEXT), "target prediction error share cumulative": MEASURED}
    ),
}
PART = record({"n": COUNT, "metrics": by_name(ESTIMATE)})
SHIFT = task("beside") | {
    "unit": or_null(TEXT),
    "interval": MEASURED,
    "inside shifted": PART,
    "differences": by_name(ESTIMATE),
    "shifts": records(
        {
            "name": TEXT,
            "by inside_mean shifted_mean inside_sigma shifted_sigma": MEASURED,
            "beyond_middle beyond_range": MEASURED,
        }
    ),
}
REGRESSION = task("regression") | {
    "n weight": AMOUNT,
    "unit": or_null(TEXT),
    "dropped": COUNT,
    "metrics": records_by_name(INTERVAL | {"direction": DIRECTION, "unit": or_null(TEXT)}),
    "tails": record(TAILS | {"assumption": or_null(TEXT)}),
    "baselines": records(
        {"name": TEXT, "rmse mae constant": MEASURED, "note unit?": or_null(TEXT)}
    ),
    "against_constant": or_null(
        record(
            {
                "constant": MEASURED,
                "absolute": or_null(CONSTANT_TEST),
                "squared": or_null(CONSTANT_TEST),
            }
        )
    ),
    "targets": record({"mean": MEASURED, "sigma": MEASURED}),
    "normalization": or_null(record({"mean": MEASURED, "std": MEASURED})),
    "normalized": by_name(MEASURED),
    "prediction_intervals": by_name(ESTIMATE),
    "interval": MEASURED,
    "groups": or_null(COUNT),
    "by": by_name(shared("regression_evaluation")),
    "source": shared("origin"),
    # What was asked for besides:
    "residuals? comparison? shifted? levels?": OPEN_RECORD,
}
REPORTS: dict[str, Parts] = {
    "Evaluation": EVALUATION,
    "CaseAverages": task("case averages") | CASE_AVERAGES | {"source": shared("origin")},
    "Comparison": COMPARISON,
    "Calibration": CALIBRATION,
    "RecalibrationEvaluation": task("recalibration")
    | {"before": record(CALIBRATION), "after": record(CALIBRATION), "changes": by_name(ESTIMATE)},
    "Decoding": task("decode")
    | {
        "metric method": TEXT,
        "exact": YES_OR_NO,
        "ratio": MEASURED,
        "scale": LABELS,
        "n changed": COUNT,
        "levels": by_name(NUMBERS),
        "scored": COUNT,
        "level": MEASURED,
        "metrics": records_by_name(
            {
                "argmax decoded difference low high": MEASURED,
                "p": SHARE,
                "verdict": or_null(VERDICT),
            }
        ),
        "source": record({"file": TEXT, "fitted_on": TEXT, "scored_on": TEXT, "notes": TEXTS}),
    },
    "SampleSizePlan": task("power")
    | {
        "metric": TEXT,
        "n": COUNT,
        "values": by_name(MEASURED),
        "observed_difference difference power level spread": MEASURED,
        "needed needed_low needed_high": or_null(COUNT),
        "outlooks": records(
            {
                "items": COUNT,
                "widths": by_name(MEASURED),
                "difference_width": MEASURED,
                "power": SHARE,
            }
        ),
        "notes": TEXTS,
        "source": shared("origin"),
    },
    "RegressionEvaluation": REGRESSION,
    "RegressionComparison": REGRESSION_COMPARISON,
    "ResidualAnalysis": RESIDUALS,
    "ShiftEvaluation": SHIFT,
    "Verification": task("verify")
    | {
        "file": TEXT,
        "made_with": OPEN_RECORD,
        "verified_with": record({"ordinate": TEXT, "numpy": TEXT}),
        "agrees": YES_OR_NO,
        "numbers": COUNT,
        "recomputed_from carried": TEXTS,
        "differences": records({"where": TEXT, "shown": OPEN, "recomputed": OPEN}),
        "unmade": or_null(TEXT),
    },
    "MetricCatalogue": HEAD
    | {
        "metrics": records_by_name(
            {
                "title family formula reference": TEXT,
                "direction": DIRECTION,
                "bounds": NUMBERS,
                "ordered equal_steps linear integer_counts takes_unanswered": YES_OR_NO,
                "undefined_when": or_null(TEXT),
                "options": OPEN_RECORD,
                "aliases": TEXTS,
                "properties": by_name(PROPERTY_VERDICT),
                "explanation": TEXT,
            }
        )
    },
    "PropertyVerdicts": HEAD
    | {"tables": by_name(COUNT), "properties": by_name(by_name(shared("property")))},
    "PropertyExplanation": HEAD
    | {"tables": by_name(COUNT), "properties": by_name(by_name(shared("property")))},
    "MetricAdvice": HEAD
    | {
        "answers": record(
            {
                "levels": TEXT,
                "equal_distances rare_levels": or_null(YES_OR_NO),
                "ties reader": or_null(TEXT),
            }
        ),
        "scale": or_null(LABELS),
        "metrics": records(
            {
                "metric role reason title reference": TEXT,
                "direction": DIRECTION,
                "interval_method": or_null(TEXT),
            }
        ),
        "properties": records(
            {"metric": TEXT, "property": TEXT, "verdict": TEXT, "counterexample": or_null(TEXT)}
        ),
        "methods_section command": TEXT,
        "references": TEXTS,
    },
    "MetaEvaluation": task("meta")
    | {
        "n test_cases resamples": COUNT,
        "scale": LABELS,
        "systems references": TEXTS,
        "test_cases_at_random": YES_OR_NO,
        "level alpha": MEASURED,
        "seed": INTEGER,
        "unanimity": one_of("strict", "weak"),
        "test_case_names": LABELS,
        "metrics": records_by_name(
            {
                "coverage robustness stability": ESTIMATE,
                "ranked": YES_OR_NO,
                "behind_best": or_null(ESTIMATE),
                "discriminative_power undefined infinite": MEASURED,
                "reason": or_null(TEXT),
                "values": records_by_name(
                    INTERVAL | {"spread": MEASURED, "cases_with_value": COUNT, "by_case": NUMBERS}
                ),
            }
        ),
        "agreement": by_name(by_name(ESTIMATE)),
        "unanimous_improvement": by_name(by_name(MEASURED)),
        "notes": TEXTS,
        "source": record(ORIGIN),
    },
    "CheckReport": task("check")
    | {
        "experiment": TEXT,
        "scale": or_null(LABELS),
        "data": records(
            {
                "name role": TEXT,
                "items": COUNT,
                "label text id": or_null(TEXT),
                "levels": by_name(COUNT),
            }
        ),
        "features": records(
            {"set dataset form matched": TEXT, "rows features": COUNT, "constant": or_null(COUNT)}
        ),
        "models": TEXTS,
        "findings": records({"severity": TEXT, "where": TEXT, "what": TEXT}),
    },
    "ExtractionResult": task("features")
    | {
        "set path": TEXT,
        "already_complete": YES_OR_NO,
        "datasets": items(OPEN_RECORD),
        "command": TEXT,
        "notes": TEXTS,
    },
    "FeatureSetListing": task("features list")
    | {
        "where": TEXT,
        "sets": records(
            {
                "set dataset state": TEXT,
                "rows features": or_null(COUNT),
                "zeros": MEASURED,
                "made_by problem": or_null(TEXT),
            }
        ),
        "notes": TEXTS,
    },
    "DryRun": {
        "task": {"const": "tune, dry run"},
        "settings data": OPEN_RECORD,
        "sets": items(OPEN_RECORD),
        "tests notes": TEXTS,
        "fits": by_name(COUNT),
    },
    "TuningResult": HEAD
    | {"task": one_of("tune", "tune_regression"), "winner": TEXT}
    | SEARCHED
    | {
        "ensemble": or_null(shared("finalist")),
        "tests": records(
            {
                "data description": TEXT,
                "n": COUNT,
                "groups": or_null(COUNT),
                "test finalists": or_null(OPEN_RECORD),
                "optimism": MEASURED,
                "notes": TEXTS,
                "seen?": COUNT,
            }
        ),
    },
    "SearchAnalysis": task("analyze_search")
    | {
        "run winner": TEXT,
        "data": OPEN_RECORD,
        "summary": SUMMARY,
        "studies": records(
            {
                "set model": TEXT,
                "trials": TRIALS,
                "value mae? r2? relative_accuracy? baseline_rmse?": MEASURED,
                "params": or_null(OPEN_RECORD),
            }
        ),
        "importance": by_name(or_null(by_name(MEASURED))),
        "learning_curves": OPEN_RECORD,
        "history": by_name(items(NUMBERS)),
        "notes": TEXTS,
    },
    "PredictionReport": task("predict")
    | {
        "model": TEXT,
        "metric": or_null(TEXT),
        "scale": LABELS,
        "data": records(
            {
                "data file feature_source": TEXT,
                "n": COUNT,
                "output": or_null(TEXT),
                "shares": by_name(NUMBERS),
                "mean_set_size": MEASURED,
                "evaluation": or_null(OPEN_RECORD),
                "notes": TEXTS,
            }
        ),
        "notes": TEXTS,
    },
    "ModelRanking": task("rank")
    | {
        "metric unanswered": TEXT,
        "direction": DIRECTION,
        "interval": MEASURED,
        "scale": LABELS,
        "tests": records_by_name(
            COMPARISON
            | {
                "test": TEXT,
                "file": or_null(TEXT),
                "unlabelled": COUNT,
                "baselines": by_name(shared("baselines")),
                "models": records_by_name(
                    EVALUATION
                    | {
                        "model": TEXT,
                        "decision_rules": by_name(by_name(MEASURED)),
                        "sets": record(SETS),
                        "kappa": ESTIMATE,
                        "flag": or_null(TEXT),
                    }
                ),
            }
        ),
        "notes": TEXTS,
    },
}
NESTED = {"evaluation": "Evaluation", "regression_evaluation": "RegressionEvaluation"}
# How a report was made: what `ordinate verify` reads.
PROVENANCE = {
    "ordinate numpy packed? file? left_out? sha256": TEXT,
    "schema": INTEGER,
    "made_of?": OPEN,
}
STORED = {"TuningResult"}  # searches store them as results.json, of which `verify` makes nothing


# --- schemas -------------------------------------------------------------------------------------


def make_schema(name: str, *, closed: bool = False) -> Parts:
    """Return the schema of a report's JSON; a closed one allows no key that it does not name."""
    provenance = "provenance?" if name in STORED else "provenance"
    root = record(REPORTS[name] | {provenance: record(PROVENANCE)})
    known = SHARED | {key: record(REPORTS[of]) for key, of in NESTED.items()}
    head = {"$schema": DIALECT, "title": name}
    schema = head | root | {"$defs": {key: known[key] for key in _find_shared(root, known)}}
    return _close(schema) if closed else schema


def write_schemas() -> None:
    """Write the schema of every report, and remove those that there are no longer."""
    for path in SCHEMAS.glob("*.json"):
        path.unlink()
    for name in REPORTS:
        (SCHEMAS / f"{name}.json").write_text(format_schema(name), encoding="utf-8")


def format_schema(name: str) -> str:
    """Return a schema as the text of its file."""
    return json.dumps(make_schema(name), indent=1, ensure_ascii=False) + "\n"


def _find_shared(part: Any, known: Parts, found: tuple[str, ...] = ()) -> list[str]:
    """Return the names of the shared parts of a schema, and of those that these need."""
    names = dict.fromkeys(found)
    values = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    if isinstance(part, dict) and isinstance(part.get("$ref"), str):
        name = part["$ref"].rpartition("/")[2]
        if name not in names:
            names |= dict.fromkeys(_find_shared(known[name], known, (*names, name)))
    for value in values:
        names |= dict.fromkeys(_find_shared(value, known, tuple(names)))
    return list(names)


def _close(part: Any) -> Any:
    if isinstance(part, list):
        return [_close(x) for x in part]
    if not isinstance(part, dict):
        return part
    closed = {key: _close(x) for key, x in part.items()}
    named = isinstance(part.get("properties"), dict) and "required" in part
    return {"additionalProperties": False} | closed if named else closed


if __name__ == "__main__":
    write_schemas()
