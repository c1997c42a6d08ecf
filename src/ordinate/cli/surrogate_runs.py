"""Runs of `ordinate surrogate`: tune, train and ensemble, from flags and a file to a report."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import parse_names
from ordinate.cli.options import (
    REPORT_FORMATS,
    add_subcommand,
    add_text_file_options,
)
from ordinate.errors import BadOption, BadOutput

if TYPE_CHECKING:
    from ordinate.regress.settings import Settings
    from ordinate.regress.table import Table

RESULTS_ROOT = "surrogate_results"

# Flags of a run, by what a configuration file may set them to. Those of the report are not kept.
RUN_FLAGS: dict[str, type] = {
    "data": str,
    "target": str,
    "unit": str,
    "features": list,
    "group": str,
    "delimiter": str,
    "encoding": str,
    "model": list,
    "preset": str,
    "trials": int,
    "folds": int,
    "epochs": int,
    "device": str,
    "blend": str,
    "lattice": str,
    "alpha": float,
    "shift": str,
    "shift_share": float,
    "shift_end": str,
    "timeout": float,
    "jobs": int,
    "seed": int,
    "params": dict,
    "params_of": str,
    "members": int,
    "output": str,
}
LIST_FLAGS = ("features", "model")


def add_run_commands(commands: Any) -> None:
    """Add the sub-commands that fit models."""
    _add_tune(commands)
    _add_train(commands)
    _add_ensemble(commands)


def _add_tune(commands: Any) -> None:
    parser = add_subcommand(
        commands,
        "tune",
        "search models, blend the best of each model type, test the winner",
        "Search several model types, blend the best of each, and save them. Choices are made "
        "by rows that are held out of the fits; the rows of the test choose nothing. A run that "
        "was killed goes on where it stopped when the same command is given again.",
    )
    _add_data_options(parser)
    add = parser.add_argument
    add(
        "--model",
        metavar="A,B,…",
        help="auto, or some of mlp, lightgbm, hist_boosting, gp, kernel_ridge, svr, poly_ridge "
        "(default: auto, as the preset says)",
    )
    add("--trials", metavar="N", type=int, help="of each model type")
    add(
        "--blend",
        choices=("auto", "always", "never"),
        help="blend the best of each model type: auto takes the blend unless one model is better "
        "than it on held-out rows by more than chance, in RMSE and in MAE; always; or never "
        "(default: auto)",
    )
    add("--timeout", metavar="SECONDS", type=float, help="of searching, as near as can be foreseen")
    _add_evaluation_options(parser)
    parser.set_defaults(run=run_tune, resumes=True)


def _add_train(commands: Any) -> None:
    parser = add_subcommand(
        commands,
        "train",
        "fit one model with given parameters, and test it",
        "Fit one model type with its defaults, with parameters of your own, or with those that "
        "a search found, and test it.",
    )
    _add_data_options(parser)
    add = parser.add_argument
    add("--model", metavar="MODEL", help="model type (default: that of --params-of)")
    add("--params", metavar="JSON", help="""parameters, such as '{"degree": 3}'""")
    add("--params-of", metavar="DIR", help="take the parameters that a search in DIR found")
    _add_evaluation_options(parser)
    parser.set_defaults(run=run_train, resumes=True)


def _add_ensemble(commands: Any) -> None:
    parser = add_subcommand(
        commands,
        "ensemble",
        "fit several model types, and blend them",
        "Fit several model types with their defaults or with the parameters that a search "
        "found, and blend them with weights learned on held-out rows. Of mlp alone: networks that "
        "are trained as one batch, and whose mean is taken.",
    )
    _add_data_options(parser)
    add = parser.add_argument
    add(
        "--model",
        metavar="A,B,…",
        help="model types, or mlp alone (default: those of --params-of)",
    )
    add("--params-of", metavar="DIR", help="take the parameters that a search in DIR found")
    add("--members", metavar="N", type=int, help="networks that mlp trains as one batch")
    _add_evaluation_options(parser)
    parser.set_defaults(run=run_ensemble, resumes=True)


def _add_data_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", nargs="?", metavar="DATA", help="CSV or Parquet, a row for each item")
    add("--target", metavar="COL", help="target column: what to predict")
    add("--unit", help="of the target, such as kg/m³")
    add("--features", metavar="A,B,…", help="columns to predict from (default: all of numbers)")
    add("--group", metavar="COL", help="column of rows that belong together, and stay together")
    add_text_file_options(parser)


def _add_evaluation_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--preset",
        choices=("minimal", "balanced", "thorough"),
        help="how much is done: model types, trials, folds, epochs (default: balanced)",
    )
    add(
        "--folds",
        metavar="K",
        type=int,
        help="in which rows are held out in turn, to choose by; 0: choose by the validation rows, "
        "where no trial is pruned, for there is nothing between its begin and its end (default: 3 "
        "in the preset minimal, 5 in others)",
    )
    add(
        "--epochs",
        metavar="N",
        type=int,
        help="of networks, at most (default: 60, 100 or 300, as the preset says)",
    )
    add(
        "--device",
        choices=("cpu", "cuda"),
        help="where networks are trained; results of cuda differ in last digits (default: cpu)",
    )
    add(
        "--lattice",
        choices=("auto", "always", "never"),
        help="tell models which rows have only values that repeat, as on a lattice: if that is "
        "better on held-out rows, always, or never (default: auto)",
    )
    add("--alpha", type=float, help="share of targets outside their intervals (default: 0.1)")
    add(
        "--shift",
        metavar="COL",
        help="keep the extreme region of a column apart, as a second test (target: of the target, "
        "unless a feature is called so)",
    )
    add("--shift-share", metavar="SHARE", type=float, help="of rows in it (default: 0.1)")
    add("--shift-end", choices=("high", "low"), help="at which end it lies (default: high)")
    add("--jobs", metavar="N", type=int, help="processes; results do not depend on it (default: 1)")
    add("--seed", type=int, help="of splits, models and search (default: 0)")
    add(
        "--config",
        metavar="FILE",
        help="TOML file with any of these flags but --format, such as folds = 5",
    )
    add("-o", "--output", metavar="DIR", help=f"results folder (default: ./{RESULTS_ROOT})")
    add("--format", choices=REPORT_FORMATS, default="text", help="how to write the report")


def run_tune(options: argparse.Namespace) -> int:
    """Search, and print the report."""
    asked = _merge_options(options)
    return _run_search("tune", options, asked, _build_settings(asked))


def run_train(options: argparse.Namespace) -> int:
    """Fit one model, and print the report."""
    asked = _merge_options(options)
    found = _load_tuned_params(asked)
    model_types = asked.get("model") or (list(found)[:1] if len(found) == 1 else [])
    if model_types == ["auto"]:
        raise BadOption("train takes one model type, and auto is several: name one in --model.")
    if len(model_types) > 1:
        raise BadOption(
            f"train takes one model type, and --model names {len(model_types)}: "
            f"{', '.join(model_types)}. "
            "Name one, or fit them all with: ordinate surrogate ensemble"
        )
    if not model_types:
        known = f" {asked['params_of']} has {', '.join(found)}." if found else ""
        raise BadOption(f"Which model type? Name one with --model.{known}")
    _check_tuned_types(asked, model_types, found)
    params = _parse_params(asked.get("params"), found.get(model_types[0], {})) | _limit_epochs(
        model_types[0], asked
    )
    settings = _build_settings(
        asked | {"model": model_types}, trials=1, blend="never", fixed={model_types[0]: params}
    )
    return _run_search("train", options, asked, settings)


def run_ensemble(options: argparse.Namespace) -> int:
    """Fit several model types, blend them, and print the report."""
    asked = _merge_options(options)
    found = _load_tuned_params(asked)
    model_types = asked.get("model") or list(found)
    if len(model_types) < 2 and model_types != ["mlp"]:
        raise BadOption(
            "Which model types? Name two or more with --model, such as gp,svr, or mlp alone: "
            "--model mlp --members 16."
        )
    _check_tuned_types(asked, model_types, found)
    fixed = {
        model_type: found.get(model_type, {}) | _limit_epochs(model_type, asked)
        for model_type in model_types
    }
    if "members" in asked:
        if "mlp" not in fixed:
            raise BadOption("--members is for networks: name mlp in --model, too.")
        fixed["mlp"]["members"] = asked["members"]
    blend = (
        "always" if len(model_types) > 1 else "never"
    )  # networks of one model type are one model
    settings = _build_settings(asked | {"model": model_types}, trials=1, blend=blend, fixed=fixed)
    return _run_search("ensemble", options, asked, settings)


def _merge_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the flags of the command line and of the configuration file."""
    from ordinate.cli.config import merge_flags

    given = dict(vars(options))
    for name in LIST_FLAGS:
        if given.get(name) is not None:
            given[name] = list(parse_names(f"--{name}", given[name]))
    asked = merge_flags(
        given, options.config, {name: RUN_FLAGS[name] for name in _list_flags(options)}
    )
    for name, how in (("data", "Name its file: DATA"), ("target", "Name its column: --target COL")):
        if name not in asked:
            raise BadOption(f"Which {name}? {how}.")
    _check_folder(asked.get("output", RESULTS_ROOT), asked["data"])
    return asked


def _list_flags(options: argparse.Namespace) -> list[str]:
    """Return the flags of a run that the command has."""
    return [name for name in RUN_FLAGS if name in vars(options)]


def _check_folder(output: str, data: str) -> None:
    """Refuse a folder of results that is none, is an experiment, or would bury the data."""
    import os
    from pathlib import Path

    from ordinate.experiment.layout import (
        SEARCH,
        TEST,
        TRAINING,
        refuse_foreign_files,
        refuse_reserved_path,
    )

    if os.path.isfile(output):  # noqa: PTH113 - a path that is none is no file, and no error here
        raise BadOutput(f"{output} is a file, and -o takes a folder.")
    root = Path(output).resolve()
    if (root / TRAINING).is_dir() or (root / TEST).is_dir():
        raise BadOutput(f"{output} is an experiment with texts. Name another folder with -o.")
    refuse_reserved_path(root)
    given = Path(data).resolve()
    parts = given.relative_to(root).parts if given.is_relative_to(root) else ()
    if parts and parts[0] in SEARCH:
        raise BadOutput(
            f"{data} lies where the results would be written. Move it, or name another folder."
        )
    refuse_foreign_files(root)


def _build_settings(asked: dict[str, Any], **further: Any) -> "Settings":
    from dataclasses import fields

    from ordinate.regress.settings import Settings

    known = {one.name for one in fields(Settings) if one.init}
    return Settings(**{name: x for name, x in asked.items() if name in known} | further)


def _limit_epochs(model_type: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the limit on epochs that was asked for, for model types that have epochs."""
    return {"epochs": asked["epochs"]} if model_type == "mlp" and "epochs" in asked else {}


def _parse_params(text: str | dict[str, Any] | None, tuned: dict[str, Any]) -> dict[str, Any]:
    import json

    if text is None or isinstance(text, dict):
        return tuned | (text or {})
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise BadOption(f"--params takes a JSON object, and that is none: {problem}") from None
    if not isinstance(found, dict):
        raise BadOption(f"--params takes a JSON object, not {text!r}.")
    return tuned | found


def _load_tuned_params(asked: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parameters that a search found, whole, by model type."""
    from pathlib import Path

    from ordinate.regress.result_files import load_latest_results

    if "params_of" not in asked:
        return {}
    studies = load_latest_results(Path(asked["params_of"]))["studies"]
    return {one["model"]: one["best"]["params"] for one in studies if one["best"]}


def _check_tuned_types(
    asked: dict[str, Any], model_types: list[str], found: dict[str, Any]
) -> None:
    """Refuse model types of which a search found nothing: nobody asked for their defaults."""
    lacking = [model_type for model_type in model_types if model_type not in found]
    if "params_of" in asked and lacking:
        has = f"It has those of {', '.join(found)}." if found else "It has none."
        raise BadOption(f"{asked['params_of']} has no parameters of {', '.join(lacking)}. {has}")


def _run_search(
    name: str, options: argparse.Namespace, asked: dict[str, Any], settings: "Settings"
) -> int:
    from ordinate.cli.config import format_toml
    from ordinate.cli.progress import show_stages
    from ordinate.regress.tuning import tune
    from ordinate.render import render

    table = _load_table(asked)
    plain = settings.to_dict()
    plain["model"] = [plain["model"]] if isinstance(plain["model"], str) else plain["model"]
    resolved = asked | {key: x for key, x in plain.items() if key in RUN_FLAGS}
    with show_stages() as tell:
        result = tune(
            table,
            asked.get("output", RESULTS_ROOT),
            settings,
            unit=asked.get("unit"),
            command=_format_command(name, asked),
            config=format_toml({key: resolved.get(key) for key in _list_flags(options)}),
            tell=tell,
        )
    sys.stdout.write(render(result, options.format))
    return 0


def _format_command(name: str, asked: dict[str, Any]) -> str:
    """Return the command line that says the same."""
    from ordinate.cli.config import format_command

    joined = {key: ",".join(asked[key]) for key in LIST_FLAGS if key in asked}
    rest = {key: x for key, x in (asked | joined).items() if key != "data"}
    flags = format_command(name, rest).removeprefix(f"ordinate {name}")
    return f"ordinate surrogate {name} {shlex.quote(asked['data'])}{flags}"


def _load_table(asked: dict[str, Any]) -> "Table":
    from ordinate.regress.table import read_table

    return read_table(
        asked["data"],
        asked["target"],
        features=asked.get("features"),
        group=asked.get("group"),
        delimiter=asked.get("delimiter"),
        encoding=asked.get("encoding"),
    )
