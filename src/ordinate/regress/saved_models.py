"""Surrogates on disk: what they are called, what is written beside them, what is found again."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from ordinate.errors import BadStore
from ordinate.experiment import safe_files
from ordinate.experiment.manifest import Manifest, is_kept
from ordinate.experiment.safe_files import digest, replacing_folder, write_json
from ordinate.models.regressors import kind_of
from ordinate.regress.bench import Bench, Candidate, Made
from ordinate.regress.fitting import Answers, Fit, counted, fit, forget
from ordinate.regress.prediction_intervals import HELD, Calibration, inside, narrowest, spread_of
from ordinate.regress.prediction_intervals import NAME as CALIBRATION

if TYPE_CHECKING:
    from ordinate.regress.selection import Blended, Contender

STAGE = "saving"
MODELS, MODEL = "models", "model"
ABOUT = "surrogate.json"  # all that predictions depend on beside the model; its hash is kept
KIND, BLEND = "surrogate", "blend"
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def kept_made(bench: Bench, candidate: Candidate) -> Made | None:
    """Return what a surrogate that an earlier run saved predicted for held-out rows."""
    folder = _folder(bench, bench.name_of(candidate))
    if not is_kept(folder):
        return None
    found = rows_of(folder, HELD)
    if not np.array_equal(found.targets, bench.targets):
        raise BadStore(f"{folder} was calibrated on other rows. Remove it, and it is made again.")
    return Made(bench.rmse(found.predictions), candidate.params, found.predictions, found.spread)


def save_contenders(
    bench: Bench, some: "Sequence[Contender]", *, run: str, command: str
) -> list[str]:
    """Fit each one a last time and save it, unless that was done before; return their names."""
    names = [bench.name_of(one.candidate) for one in some]
    missing = [
        (name, one)
        for name, one in zip(names, some, strict=True)
        if not is_kept(_folder(bench, name))
    ]
    with ExitStack() as folders:
        opened = [
            folders.enter_context(replacing_folder(_folder(bench, name))) for name, _ in missing
        ]
        tasks = [
            bench.final(one.candidate, str(folder / MODEL))
            for folder, (_, one) in zip(opened, missing, strict=True)
        ]
        bench.tell(STAGE, 0.0, "")
        found: list[Answers] = bench.workers.map(
            fit, tasks, lambda step: bench.tell(STAGE, 0.0, bench.worded(step))
        )
        for folder, (name, one), task, answers in zip(opened, missing, tasks, found, strict=True):
            one.held.save(folder, HELD)
            calibration = _calibrated(bench, one, answers)
            _seal(bench, folder, name, calibration, _about(one, task, answers), run, command)
    forget(tasks)
    return names


def _calibrated(bench: Bench, one: "Contender", answers: Answers) -> Calibration:
    """Return the rows that calibrate: those apart, or else those held out."""
    if not bench.apart:
        return one.held
    spread = None if answers.spreads is None else answers.spreads[0]
    targets = bench.table.target[bench.split.validation]
    floor = narrowest(one.held, bench.settings.alpha)
    return Calibration(targets, answers.predictions[0], spread, floor)


def save_blend(bench: Bench, one: "Blended", *, run: str, command: str) -> str:
    """Save a blend, whose members are saved already; return its name."""
    members = [bench.name_of(member.candidate) for member in one.members]
    name = f"{BLEND}-{digest(members)}"
    if not is_kept(_folder(bench, name)):
        config = {"model": BLEND, "members": members, "weights": one.blend.weights.tolist()}
        config["rmse"] = one.value
        with replacing_folder(_folder(bench, name)) as folder:
            _seal(bench, folder, name, _blended(bench, one, members), config, run, command)
    return name


def _blended(bench: Bench, one: "Blended", names: Sequence[str]) -> Calibration:
    """Return the rows that calibrate a blend, from those of its members."""
    if not bench.apart:
        return one.held
    members = [rows_of(_folder(bench, name)) for name in names]
    weights = one.blend.weights
    table = np.column_stack([member.predictions for member in members])
    spread = spread_of(table, weights, inside(members))
    floor = narrowest(one.held, bench.settings.alpha)
    return Calibration(members[0].targets, table @ weights, spread, floor)


def _about(one: "Contender", task: Fit, answers: Answers) -> dict[str, Any]:
    learned, stopping = counted(task)
    return {
        "model": one.candidate.kind,
        "params": one.candidate.params,
        "inputs": answers.inputs,
        "rows": learned,
        "stopping_rows": stopping,
        "rmse": one.value,
        "notes": list(answers.notes),
        "curve": answers.curve,
    }


def rows_of(folder: Path, name: str = CALIBRATION) -> Calibration:
    """Return the rows that calibrate a surrogate, once they are what such rows are."""
    try:
        found = Calibration.load(folder, name)
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


def _folder(bench: Bench, name: str) -> Path:
    return safe_files.inside(bench.root, MODELS, name)


def _seal(
    bench: Bench,
    folder: Path,
    name: str,
    calibration: Calibration,
    config: dict[str, Any],
    run: str,
    command: str,
) -> None:
    """Write the calibration, what the surrogate is, and last of all the manifest."""
    calibration.save(folder)
    kind = config["model"]
    library = "numpy" if kind == BLEND else kind_of(kind).library
    about = {
        "features": list(bench.table.names),
        "target": bench.table.target_name,
        "unit": bench.unit,
        "alpha": bench.settings.alpha,
    }
    write_json(folder / ABOUT, config | about)
    Manifest.of(
        folder,
        KIND,
        name,
        config={"model": kind, "folds": bench.settings.folds, "run": run},
        data={bench.table.path or "table": bench.table.fingerprint},
        seed=bench.settings.seed,
        command=command,
        libraries=list(dict.fromkeys(["scikit-learn", DISTRIBUTIONS.get(library, library)])),
    ).write(folder)
