"""Saved models: their names, their folders, what is written beside them, and what wins."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from ordinate.errors import (
    BadInput,
    BadOption,
    BadStore,
    OrdinateError,
    shorten,
    suggest_names,
)
from ordinate.render.atomic_files import TEMPORARY_PREFIX, report_write_errors
from ordinate.render.reserved_paths import MODELS, RESULTS, RESULTS_FILE, check_search_folder
from ordinate.tuning.experiment.manifest import Manifest, is_model_saved, read_verified_manifest
from ordinate.tuning.experiment.safe_files import (
    compute_digest,
    create_folder,
    resolve_inside,
    write_json,
)
from ordinate.tuning.experiment.stored_json import read_json, read_plain_json
from ordinate.tuning.search.fits import Fit, FitOutputs, OutOfTime, remove_checkpoints, take_outputs
from ordinate.tuning.search.task import Candidate, Ensemble, EvaluatedCandidate, Selected, Task

STAGE = "saving"
ARTIFACT = "model"
MODEL_FOLDER = "model"  # of the files of the model itself
DESCRIPTION_FILE = "description.json"  # all that predictions depend on beside the other files
OUT_OF_FOLD_FILE = "out_of_fold.npz"
LIBRARIES = ("scipy", "scikit-learn", "skops")
PREDICTORS = {"classification": "ordinate predict", "regression": "ordinate predict-regression"}
SHOWN_MODELS = 12  # models named in an error


# --- saving --------------------------------------------------------------------------------------


def load_out_of_fold(task: Task, candidate: Candidate) -> FitOutputs | None:
    """Return the out-of-fold outputs of a model that an earlier run saved, if one did."""
    folder = _locate_model(task, task.name_model(candidate))
    if task.subset or not is_model_saved(folder):
        return None
    outputs = FitOutputs.load(folder / OUT_OF_FOLD_FILE)
    n = sum(map(len, task.folds))
    shape = (n, *task.get_output_shape(candidate.model_type))
    if outputs is None or outputs.predictions.shape != shape:
        raise BadStore(
            f"{folder / OUT_OF_FOLD_FILE} does not hold the out-of-fold predictions for {n:,} "
            "items. Remove the folder, and it is made again."
        )
    return outputs


def save_candidates(
    task: Task, some: Sequence[EvaluatedCandidate], *, run: str, command: str
) -> list[str | None]:
    """Fit each one a last time and save it, unless that was done before; return their names.

    The best one is fitted first, and even when the time is over; None for others that come late.
    """
    best = task.select_winner(some, None)
    wanted = [task.name_model(one.candidate) for one in some]
    names: list[str | None] = list(wanted)
    missing = [
        place for place, name in enumerate(wanted) if not is_model_saved(_locate_model(task, name))
    ]
    missing.sort(key=lambda place: some[place] is not best)
    for place in missing:
        task.load_input(some[place].candidate.input)
    task.report_progress(STAGE, 0.0)
    models = resolve_inside(task.root, MODELS)
    with report_write_errors(models):
        models.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=models, prefix=TEMPORARY_PREFIX) as fitted:
        fits = [
            replace(
                task.make_final_fit(some[place].candidate, str(Path(fitted, str(place))), None),
                end=None if some[place] is best else task.budget.deadline,
            )
            for place in missing
        ]
        made = task.attempt_fits(fits, lambda step: task.report_progress(STAGE, 0.0, step[0]))
        take_outputs([one for one in made if not isinstance(one, OutOfTime)])
        for place, fit, outputs in zip(missing, fits, made, strict=True):
            if isinstance(outputs, FitOutputs):
                _save_candidate(task, some[place], fit, outputs, run=run, command=command)
            else:
                names[place] = None
    return names


def _save_candidate(
    task: Task, one: EvaluatedCandidate, fit: Fit, outputs: FitOutputs, *, run: str, command: str
) -> None:
    """Save a candidate with the model that a fit has left in a folder."""
    name = task.name_model(one.candidate)
    with create_folder(_locate_model(task, name)) as folder:
        one.outputs.save(folder / OUT_OF_FOLD_FILE)
        Path(str(fit.folder)).rename(folder / MODEL_FOLDER)
        _write_model(task, folder, name, one, outputs, run=run, command=command)
    remove_checkpoints([fit])


def save_ensemble(task: Task, one: Ensemble, *, run: str, command: str) -> str:
    """Save an ensemble, whose members are saved already; return its name."""
    members = [task.name_model(member.candidate) for member in one.members]
    name = f"{one.name}-{compute_digest(members)}"
    if not is_model_saved(_locate_model(task, name)):
        with create_folder(_locate_model(task, name)) as folder:
            _write_model(task, folder, name, one, None, run=run, command=command)
    return name


def _locate_model(task: Task, name: str) -> Path:
    return resolve_inside(task.root, MODELS, name)


def _write_model(
    task: Task,
    folder: Path,
    name: str,
    one: Selected,
    outputs: FitOutputs | None,
    *,
    run: str,
    command: str,
) -> None:
    """Write the calibration, what the model is, and last of all the manifest."""
    task.write_calibration(folder, one, outputs)
    ensemble = isinstance(one, Ensemble)
    model_type = one.name if isinstance(one, Ensemble) else one.candidate.model_type
    description: dict[str, Any] = {
        "task": task.name,
        "model": model_type,
        "sets": list(filter(None, one.inputs)),
    }
    if isinstance(one, Ensemble):
        description["members"] = [task.name_model(member.candidate) for member in one.members]
        description["weights"] = list(one.weights)
    else:
        description["params"] = one.candidate.params
    write_json(folder / DESCRIPTION_FILE, description | task.describe_model(one, outputs))
    used = [] if ensemble else task.list_libraries(model_type)
    Manifest.of(
        folder,
        ARTIFACT,
        name,
        config={
            "task": task.name,
            "model": model_type,
            "metric": task.metric,
            "cross_validation": one.value,
            "folds": task.settings.folds,
            "run": run,
        },
        data=task.fingerprint(one.inputs),
        seed=task.settings.seed,
        command=command,
        libraries=list(dict.fromkeys([*LIBRARIES, *used])),
    ).write(folder)


# --- loading -------------------------------------------------------------------------------------


def read_description(root: Path, name: str, task: str) -> tuple[Path, Manifest, dict[str, Any]]:
    """Return the folder of a saved model of a task, once it is what its manifest lists."""
    folder = resolve_inside(root, MODELS, name)
    if not folder.is_dir():
        raise BadStore(f"There is no model {shorten(name)} in {root / MODELS}.")
    manifest = read_verified_manifest(folder)
    if manifest.artifact != ARTIFACT or manifest.config.get("task") != task:
        other = PREDICTORS.get(str(manifest.config.get("task")))
        advice = "" if other is None else f" Predict with it: {other}."
        raise BadStore(f"{folder} holds no model of {task}, by its manifest.{advice}")
    if manifest.name != name:
        raise BadStore(f"{folder} holds {shorten(manifest.name)}: it was moved or mixed up.")
    if DESCRIPTION_FILE not in manifest.files:
        raise BadStore(f"{folder} has no {DESCRIPTION_FILE}, which says what it is. Tune again.")
    return folder, manifest, read_json(folder / DESCRIPTION_FILE, dict[str, Any])


def list_model_names(root: Path) -> list[str]:
    """Return the names of the saved models."""
    folder = root / MODELS
    if not folder.is_dir():
        return []
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name[0] not in "._")


def resolve_model_name(root: Path, requested: str | None) -> str:
    """Return the full name of a model, by how it alone begins; the latest winner without one."""
    check_search_folder(root)
    if requested is None:
        return find_winner(root)
    resolve_inside(root / MODELS, requested)  # first of all: a name may lead elsewhere
    known = list_model_names(root)
    if requested in known:
        return requested
    begins = requested.replace("/", "-")  # as reports call it: tfidf-word/logistic
    matches = [name for name in known if name.startswith(begins)]
    if len(matches) == 1:
        return matches[0]
    if not known:
        raise explain_no_models(root)
    problem = "Several models begin with" if matches else "There is no model"
    near = "" if matches else suggest_names(requested, known)
    listed = matches or known
    more = ", …" if len(listed) > SHOWN_MODELS else ""
    raise BadOption(
        f"{problem} {shorten(requested)} (--model).{near} There are: "
        f"{', '.join(listed[:SHOWN_MODELS])}{more}."
    )


class _Winner(TypedDict):
    winner: str


def find_winner(root: Path) -> str:
    """Return the name of the model that won the latest run, or the only one."""
    known = list_model_names(root)
    if not known:
        raise explain_no_models(root)
    path = resolve_inside(root, RESULTS, RESULTS_FILE)
    if not path.is_file():
        if len(known) == 1:
            return known[0]
        raise BadOption(
            f"There is no {path}, which says which model won. Name one with --model: "
            f"{', '.join(known[:SHOWN_MODELS])}."
        )
    won = read_json(path, _Winner, advice="Name one with --model.")["winner"]
    if won not in known:
        raise BadStore(
            f"{path} says that {shorten(won)} won, and there is no such model in {root / MODELS}. "
            "Name another one with --model, or tune again."
        )
    return won


def find_searched_task(root: Path) -> str | None:
    """Return the task of the latest search in a folder, as its results name it."""
    path = resolve_inside(root, RESULTS, RESULTS_FILE)
    return read_json(path, dict[str, Any]).get("task") if path.is_file() else None


def explain_no_models(root: Path) -> BadInput:
    """Return the error of a folder without models."""
    return BadInput(
        f"There are no saved models in {root / MODELS}. Make some: ordinate tune -e {root}, or "
        f"ordinate tune-regression DATA -e {root}"
    )


# --- results of runs ------------------------------------------------------------------------------


def read_tuned_params(root: Path) -> dict[str, dict[str, Any]]:
    """Return the hyperparameters that a search found, by model type, one study each."""
    (results,) = read_run_files(root, RESULTS_FILE)
    with explain_missing_keys(root):
        best = [one["best"] for one in results["studies"] if one["best"]]
        return {one["model"]: dict(one["params"]) for one in best}


def read_run_files(root: Path, *names: str) -> list[dict[str, Any]]:
    """Return several files of the latest run, once they are of one and the same."""
    found = [_read_run_file(root, name) for name in names]
    if any(one.get("run") != found[0].get("run") for one in found):
        raise BadStore(
            f"{' and '.join(names)} of {root / RESULTS} are of different runs, for the latest was "
            "not finished. Run the search again."
        )
    return found


def _read_run_file(root: Path, name: str) -> dict[str, Any]:
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
