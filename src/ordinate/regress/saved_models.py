"""Surrogates on disk: what they are called, what is written beside them, what is found again."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from ordinate.errors import BadStore
from ordinate.experiment import safe_files
from ordinate.experiment.manifest import Manifest, is_model_saved
from ordinate.experiment.safe_files import compute_digest, create_folder, write_json
from ordinate.models.regressors import find_model_type
from ordinate.regress.bench import Bench, BestTrial, Candidate
from ordinate.regress.fitting import (
    FitPredictions,
    FitTask,
    count_rows,
    fit_model,
    remove_checkpoints,
)
from ordinate.regress.prediction_intervals import CALIBRATION_FILE as CALIBRATION
from ordinate.regress.prediction_intervals import (
    HELD_OUT_FILE,
    IntervalCalibration,
    compute_spread,
    select_floor,
    stack_member_spreads,
)

if TYPE_CHECKING:
    from ordinate.regress.selection import BlendCandidate, EvaluatedCandidate

STAGE = "saving"
MODELS, MODEL = "models", "model"
SURROGATE_FILE = (
    "surrogate.json"  # all that predictions depend on beside the model; its hash is kept
)
MANIFEST_KIND, BLEND = "surrogate", "blend"
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def load_saved_trial(bench: Bench, candidate: Candidate) -> BestTrial | None:
    """Return what a surrogate that an earlier run saved predicted for held-out rows."""
    folder = _locate_model(bench, bench.name_model(candidate))
    if not is_model_saved(folder):
        return None
    found = load_calibration(folder, HELD_OUT_FILE)
    if not np.array_equal(found.targets, bench.targets):
        raise BadStore(f"{folder} was calibrated on other rows. Remove it, and it is made again.")
    return BestTrial(
        bench.rmse(found.predictions), candidate.params, found.predictions, found.spread
    )


def save_candidates(
    bench: Bench, some: "Sequence[EvaluatedCandidate]", *, run: str, command: str
) -> list[str]:
    """Fit each one a last time and save it, unless that was done before; return their names."""
    names = [bench.name_model(one.candidate) for one in some]
    missing = [
        (name, one)
        for name, one in zip(names, some, strict=True)
        if not is_model_saved(_locate_model(bench, name))
    ]
    with ExitStack() as folders:
        opened = [
            folders.enter_context(create_folder(_locate_model(bench, name))) for name, _ in missing
        ]
        tasks = [
            bench.make_final_fit(one.candidate, str(folder / MODEL))
            for folder, (_, one) in zip(opened, missing, strict=True)
        ]
        bench.tell(STAGE, 0.0, "")
        found: list[FitPredictions] = bench.workers.map(
            fit_model, tasks, lambda step: bench.tell(STAGE, 0.0, bench.format_step(step))
        )
        for folder, (name, one), task, answers in zip(opened, missing, tasks, found, strict=True):
            one.held.save(folder, HELD_OUT_FILE)
            calibration = _calibrate_candidate(bench, one, answers)
            _write_manifest(
                bench,
                folder,
                name,
                calibration,
                _describe_surrogate(one, task, answers),
                run,
                command,
            )
    remove_checkpoints(tasks)
    return names


def _calibrate_candidate(
    bench: Bench, one: "EvaluatedCandidate", answers: FitPredictions
) -> IntervalCalibration:
    """Return the rows that calibrate: those apart, or else those held out."""
    if not bench.apart:
        return one.held
    spread = None if answers.spreads is None else answers.spreads[0]
    targets = bench.table.target[bench.split.validation]
    floor = select_floor(one.held, bench.settings.alpha)
    return IntervalCalibration(targets, answers.predictions[0], spread, floor)


def save_blend(bench: Bench, one: "BlendCandidate", *, run: str, command: str) -> str:
    """Save a blend, whose members are saved already; return its name."""
    members = [bench.name_model(member.candidate) for member in one.members]
    name = f"{BLEND}-{compute_digest(members)}"
    if not is_model_saved(_locate_model(bench, name)):
        config = {"model": BLEND, "members": members, "weights": one.blend.weights.tolist()}
        config["rmse"] = one.value
        with create_folder(_locate_model(bench, name)) as folder:
            _write_manifest(
                bench, folder, name, _calibrate_blend(bench, one, members), config, run, command
            )
    return name


def _calibrate_blend(
    bench: Bench, one: "BlendCandidate", names: Sequence[str]
) -> IntervalCalibration:
    """Return the rows that calibrate a blend, from those of its members."""
    if not bench.apart:
        return one.held
    members = [load_calibration(_locate_model(bench, name)) for name in names]
    weights = one.blend.weights
    table = np.column_stack([member.predictions for member in members])
    spread = compute_spread(table, weights, stack_member_spreads(members))
    floor = select_floor(one.held, bench.settings.alpha)
    return IntervalCalibration(members[0].targets, table @ weights, spread, floor)


def _describe_surrogate(
    one: "EvaluatedCandidate", task: FitTask, answers: FitPredictions
) -> dict[str, Any]:
    learned, stopping = count_rows(task)
    return {
        "model": one.candidate.model_type,
        "params": one.candidate.params,
        "inputs": answers.inputs,
        "rows": learned,
        "stopping_rows": stopping,
        "rmse": one.value,
        "notes": list(answers.notes),
        "curve": answers.curve,
    }


def load_calibration(folder: Path, name: str = CALIBRATION) -> IntervalCalibration:
    """Return the rows that calibrate a surrogate, once they are what such rows are."""
    try:
        found = IntervalCalibration.load(folder, name)
        columns = [found.targets, found.predictions]
        columns += [] if found.spread is None else [found.spread]
        sound = all(one.ndim == 1 and np.isfinite(one).all() for one in columns)
        sound = sound and {len(one) for one in columns} == {found.n} and found.n > 0
        sound = sound and (found.spread is None or bool((found.spread >= 0.0).all()))
        sound = sound and bool(np.isfinite(found.least)) and found.least >= 0.0
    except (TypeError, EOFError, AttributeError, BadZipFile):
        sound = False
    if not sound:
        raise BadStore(
            f"{folder / name} does not hold the rows that calibrate intervals. Train again, or "
            "restore the folder."
        )
    return found


def _locate_model(bench: Bench, name: str) -> Path:
    return safe_files.resolve_inside(bench.root, MODELS, name)


def _write_manifest(
    bench: Bench,
    folder: Path,
    name: str,
    calibration: IntervalCalibration,
    config: dict[str, Any],
    run: str,
    command: str,
) -> None:
    """Write the calibration, what the surrogate is, and last of all the manifest."""
    calibration.save(folder)
    model_type = config["model"]
    library = "numpy" if model_type == BLEND else find_model_type(model_type).library
    about = {
        "features": list(bench.table.names),
        "target": bench.table.target_name,
        "unit": bench.unit,
        "alpha": bench.settings.alpha,
    }
    write_json(folder / SURROGATE_FILE, config | about)
    Manifest.of(
        folder,
        MANIFEST_KIND,
        name,
        config={"model": model_type, "folds": bench.settings.folds, "run": run},
        data={bench.table.path or "table": bench.table.fingerprint},
        seed=bench.settings.seed,
        command=command,
        libraries=list(dict.fromkeys(["scikit-learn", DISTRIBUTIONS.get(library, library)])),
    ).write(folder)
