"""`ordinate tune`: from labelled data and feature sets to the best model for a metric."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, StorePath, parse_names
from ordinate.cli.options import (
    REPORT_FORMATS,
    HelpFormatter,
    add_experiment_options,
    add_metric_file_option,
    add_output_options,
    open_experiment,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.classify.settings import Settings

EXAMPLES = """examples:
  ordinate tune -e study --metric quadratic_kappa
  ordinate tune -e study --metric ordinal_mse --top-k 5 --weight-strategy inverse --weight-alpha 0.7
  ordinate tune -e study --models logistic,svm,lightgbm,vote --stage2-trials 50 --jobs 4
  ordinate tune -e study --feature-pattern 'tfidf-*' --nested --dry-run
  ordinate tune -e study --config study/results/cem_ord-0123456789ab/config.toml

A run that was killed goes on where it stopped when the same command is given again.

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""

# Flags of a run, by what a configuration file may set them to. Those of the report are not kept.
RUN_FLAGS: dict[str, type] = {
    "experiment": str,
    "features_base_dir": str,
    "label_column": str,
    "text_column": str,
    "id_column": str,
    "group_column": str,
    "scale": str,
    "delimiter": str,
    "encoding": str,
    "metric": str,
    "top_k": int,
    "weight_strategy": str,
    "weight_alpha": float,
    "weight_metric": bool,
    "models": list,
    "decode": str,
    "folds": int,
    "early_discard_threshold": float,
    "early_discard_percentile": float,
    "feature_pattern": str,
    "stage2_trials": int,
    "timeout": float,
    "jobs": int,
    "seed": int,
    "nested": bool,
    "train": list,
}
REPORT_FLAGS: dict[str, type] = {"dry_run": bool, "format": str, "output": str, "force": bool}


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "tune",
        help="find the best model for a metric, from labelled data and feature sets",
        description="Screen feature sets with a cheap model, search models on the best of them, "
        "and save the one that does best by cross-validation for any metric of labels. Test data "
        "select nothing: the winner is tested on them once.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add_experiment_options(parser, required=False)
    _add_evaluation_options(parser)
    _add_search_options(parser)
    add = parser.add_argument
    add(
        "--config",
        metavar="FILE",
        type=InputPath,
        help="TOML file with any of these flags, such as top-k = 5",
    )
    add(
        "--dry-run", action="store_true", default=None, help="say what would be done; write nothing"
    )
    add_output_options(parser)
    add_metric_file_option(parser)
    parser.set_defaults(run=run, resumes=True, force=None)


def _add_evaluation_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of fitting and evaluation; defaults are those of `Settings`."""
    add = parser.add_argument
    add("--metric", help="name or expression of one metric of labels (default: cem_ord)")
    add(
        "--decode",
        choices=("metric", "argmax", "rounded-mean"),
        help="decision rule from probabilities to levels: metric-optimal, the most probable level, "
        "or the rounded mean (default: metric)",
    )
    add("--folds", metavar="K", type=int, help="of cross-validation (default: 5)")
    add(
        "--weight-strategy",
        choices=("equal", "inverse", "inverse_sqrt"),
        help="weights of levels in fitting (default: equal)",
    )
    add(
        "--weight-alpha",
        metavar="A",
        type=float,
        help="from 0, equal weights, to 1, the strategy alone (default: 1)",
    )
    add(
        "--weight-metric",
        action=argparse.BooleanOptionalAction,
        help="weigh items in the metric, too (default: no)",
    )
    add("--train", metavar="NAME", action="append", help="training data to use; may be repeated")
    add("--seed", type=int, help="of folds, models and search (default: 0)")


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of screening and search."""
    add = parser.add_argument
    add("--feature-pattern", metavar="GLOB", help="feature sets to use, such as 'tfidf-*'")
    add("--top-k", metavar="K", type=int, help="feature sets that are searched (default: 5)")
    add(
        "--early-discard-threshold",
        metavar="VALUE",
        type=float,
        help="discard sets that screening finds worse than this",
    )
    add(
        "--early-discard-percentile",
        metavar="P",
        type=float,
        help="discard sets that are worse than this percentile of all",
    )
    add(
        "--models",
        metavar="A,B,…",
        help="logistic, threshold, frank_hall, naive_bayes, svm, forest, lightgbm, xgboost, "
        "regression, and vote, which averages the best of the others "
        "(default: logistic,threshold,lightgbm)",
    )
    add(
        "--stage2-trials",
        metavar="N",
        type=int,
        help="of each feature set with each model (default: 20)",
    )
    add(
        "--timeout",
        metavar="SECONDS",
        type=float,
        help="of the whole run, after which a study gets no further batch of four trials; every "
        "study gets its first one",
    )
    add("--jobs", metavar="N", type=int, help="processes; results do not depend on it (default: 1)")
    add(
        "--nested",
        action=argparse.BooleanOptionalAction,
        help="nested cross-validation: an estimate without optimistic bias, by repeating the whole "
        "selection in each fold (default: no)",
    )


def run(options: argparse.Namespace) -> int:
    """Tune, and write the report."""
    flags = _merge_options(options)
    settings = _build_settings(flags)
    options.format, options.force = flags.get("format"), flags.get("force", False)
    options.output = flags.get("output")
    if "features_base_dir" in flags:
        options.features_base_dir = InputPath(flags["features_base_dir"])
    options.experiment = StorePath(flags["experiment"])
    write_report(options, lambda: _run_tuning(flags, settings, options.load))
    return 0


def _merge_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the flags of the command line and of the configuration file."""
    from ordinate.cli.config import merge_flags

    given = dict(vars(options))
    if options.models is not None:
        given["models"] = list(parse_names("--models", options.models))
    flags = merge_flags(given, options.config, RUN_FLAGS | REPORT_FLAGS)
    if "experiment" not in flags:
        raise BadOption("Which experiment? Name its folder with -e DIR (--experiment).")
    if (format_ := flags.get("format", "text")) not in REPORT_FORMATS:
        raise BadOption(f"--format takes {', '.join(REPORT_FORMATS)}, not {format_!r}.")
    return flags


def _build_settings(flags: dict[str, Any]) -> "Settings":
    from dataclasses import fields

    from ordinate.classify.settings import Settings

    return Settings(**{one.name: flags[one.name] for one in fields(Settings) if one.name in flags})


def _run_tuning(flags: dict[str, Any], settings: "Settings", loaded: list[str]) -> Any:
    from ordinate.classify.dry_run import plan_run
    from ordinate.classify.tuning import tune
    from ordinate.cli.config import format_command, format_toml
    from ordinate.cli.progress import show_stages

    experiment = open_experiment(argparse.Namespace(**dict.fromkeys(RUN_FLAGS) | flags))
    scale = flags.get("scale")
    if flags.get("dry_run"):
        return plan_run(experiment, settings, scale=scale)
    run_flags = {name: flags[name] for name in RUN_FLAGS if name in flags}
    resolved = run_flags | settings.to_dict()
    with show_stages() as progress:
        return tune(
            experiment,
            settings,
            scale=scale,
            command=format_command("tune", run_flags | _join_lists(run_flags) | {"load": loaded}),
            config=format_toml({name: resolved.get(name) for name in RUN_FLAGS}),
            progress=progress,
        )


def _join_lists(flags: dict[str, Any]) -> dict[str, str]:
    """Return what the command line takes as one word."""
    return {"models": ",".join(flags["models"])} if "models" in flags else {}
