"""A model card in words and grids: the evaluations as they are, and what stands around them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ordinate.render import Block, Document, Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import format_count, format_number
from ordinate.results.base import BETTER_VALUES
from ordinate.results.evaluation import Evaluation
from ordinate.tuning.search.analysis import build_studies_grid, list_cautions, name_value
from ordinate.tuning.search.tuning_text import (
    OPTIMISM_NOTE,
    build_summary_grid,
    describe_bias,
    explain_missing_intervals,
    format_hyperparameters,
)

if TYPE_CHECKING:
    from ordinate.tuning.search.model_card import ModelCard

USE = "Intended use"
PLACEHOLDER = (
    f"{USE}: [TO FILL IN] Who is to use this model, for what, and for what not? Whom could its "
    "errors harm? Write it into a text file, and name that with --intended-use."
)
WEIGHT_NOTE = (
    "The search weighted its metric by class weights, which the evaluation on the tests does not."
)
DIGEST_NOTE = (
    "The SHA-256 of a data set with texts is that of its ids and texts, that of a table is of its "
    "values: another place or form of the file does not change it."
)


def describe_model_card(card: "ModelCard") -> Document:
    """Return the card: verdict, intended use, model, data, evaluations, selection, hashes."""
    verdicts = _write_verdicts(card)
    blocks: list[Block] = [
        *_describe_intended_use(card),
        _make_model_grid(card),
        _make_data_grid(card),
        *_make_level_grids(card),
        *list_cautions(card.results),
        *(replace(one.document(), verdict="") for one in card.evaluations.values()),
        *_describe_selection(card),
        _make_digest_grid(card),
    ]
    return Document(
        f"Model card: {card.title} predicts {_name_outcome(card.results)}",
        tuple(blocks),
        verdict=next(iter(verdicts.values())),
        verdicts=verdicts,
        notes=tuple(_list_notes(card)),
    )


def _name_outcome(results: Mapping[str, Any]) -> str:
    """Return the levels that a model predicts, or its target with the unit."""
    data = results["data"]
    if "target" not in data:
        return " < ".join(map(str, data["scale"]))
    return " in ".join(filter(None, (data["target"], data["unit"])))


def _write_verdicts(card: "ModelCard") -> dict[str, str]:
    """Return by metric what the tests say, and without any what cross-validation does."""
    if not card.evaluations:
        value = format_number(card.results["winning"]["value"])
        return {
            "": f"Nothing was tested: by cross-validation, which selected the model, "
            f"{name_value(card.results)} is {value}."
        }
    documents = {name: one.document() for name, one in card.evaluations.items()}
    metrics = next(iter(documents.values())).verdicts
    biases = {
        test["data"]: describe_bias(test["seen"], test["n"])
        for test in card.results["tests"]
        if test.get("seen")  # which results of earlier versions do not have
    }
    return {
        metric: " ".join(
            f"On {name}, {biases.get(name, 'by which nothing was selected')}: "
            f"{document.verdicts[metric]}"
            for name, document in documents.items()
        )
        for metric in metrics
    }


def _describe_intended_use(card: "ModelCard") -> list[str]:
    paragraphs = [" ".join(x.split()) for x in (card.intended_use or "").split("\n\n")]
    first, *others = [x for x in paragraphs if x] or [""]
    return [f"{USE}: {first}", *others] if first else [PLACEHOLDER]


# --- the model and its data ----------------------------------------------------------------------


def _make_model_grid(card: "ModelCard") -> Grid:
    results, winner, run = card.results, card.results["winning"], card.run
    facts = {
        "name": winner["name"],
        "model type": winner["model"],
        "predicts": _name_outcome(results),
        "from": ", ".join(winner["sets"] or results["data"].get("features", [])),
        "hyperparameters": format_hyperparameters(winner["params"]),
        "members": _format_members(winner),
        "tuned for": f"{name_value(results)}, {_name_better(results)} is better",
        "tuned on": run.created,
        "command": run.command,
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
    }
    rows = tuple((name, fact) for name, fact in facts.items() if fact)
    return Grid("Model", ("fact", "value"), rows, left=2)


def _format_members(winner: Mapping[str, Any]) -> str:
    if not winner["weights"]:
        return ", ".join(winner["members"])
    members = zip(winner["members"], winner["weights"], strict=True)
    return ", ".join(f"{name} (weight {format_number(weight)})" for name, weight in members)


def _name_better(results: Mapping[str, Any]) -> str:
    return BETTER_VALUES[results["direction"]]


def _make_data_grid(card: "ModelCard") -> Grid:
    """Return what was learned from and tested on, with sizes and fingerprints."""
    data = card.results["data"]
    training = data.get("training", [])
    rows: list[tuple[Cell, ...]] = []
    for name, digest in card.models[0].data.items():
        role = "training" if name in training else "features" if training else "table"
        n = data["n"] if role == "table" or [*training] == [name] else None
        rows.append((name, role, n, digest))
    rows += [(name, "rows", n, None) for name, n in data.get("rows", {}).items()]
    rows += [
        (test["data"], "test", test["n"], card.fingerprints.get(test["data"]))
        for test in card.results["tests"]
        if test["data"] not in data.get("rows", {})
    ]
    return Grid("Data", ("data", "role", "items", "SHA-256"), tuple(rows), left=2)


def _make_level_grids(card: "ModelCard") -> list[Grid]:
    """Return how many items each level has, in training and in the tests."""
    counts = {"training": card.results["data"].get("items_of_each_level")}
    if counts["training"] is None:
        return []
    for name, found in card.evaluations.items():
        if isinstance(found, Evaluation):
            counts[name] = found.confusion_matrix.counts.sum(axis=1).tolist()
    levels = map(str, card.results["data"]["scale"])
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *map(int, found)) for name, found in counts.items()
    )
    return [Grid("Items of each level", ("data", *levels), rows)]


# --- how it was chosen, and notes ----------------------------------------------------------------


def _describe_selection(card: "ModelCard") -> Iterator[Block]:
    """Yield how the model was chosen: from how many, by what, and what that is worth."""
    results, settings = card.results, card.results["settings"]
    basis = "on the validation rows"
    if settings["folds"]:
        basis = f"by cross-validation in {settings['folds']} folds"
    trials = [study["trials"] for study in results["studies"]]
    made, complete = (
        sum(one[state] for one in trials for state in states)
        for states in (("complete", "pruned", "failed"), ("complete",))
    )
    screened = len(results["screening"])
    yield (
        f"How it was chosen: by {results['metric']}, {_name_better(results)} is better, {basis}, "
        f"seed {settings['seed']}"
        + (f"; {format_count(screened, 'feature set')} screened" if screened else "")
        + f"; {format_count(made, 'trial')} in {format_count(len(trials), 'study', 'studies')}, "
        f"{complete:,} of them complete."
    )
    yield build_summary_grid(results["summary"])
    yield build_studies_grid(results)
    if results["nested"] is not None:
        value = format_number(results["nested"]["value"])
        yield f"The nested estimate, without the bias of the selection: {value}."
    if screened:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (one["set"], one["features"], one["value"], "yes" if one["shortlisted"] else "no")
            for one in results["screening"]
        )
        yield Grid("Screening", ("set", "features", name_value(results), "searched"), rows)


def _make_digest_grid(card: "ModelCard") -> Grid:
    rows = tuple(
        (f"{model.name}/{name}", one["sha256"])
        for model in card.models
        for name, one in model.files.items()
    )
    return Grid("Files of the saved model", ("file", "SHA-256"), rows)


def _list_notes(card: "ModelCard") -> Iterator[str]:
    results = card.results
    yield from results["notes"]
    yield from explain_missing_intervals(results["summary"])
    yield from results["winning"]["notes"]
    for test in results["tests"]:
        yield from (f"{test['data']}: {note}" for note in test["notes"])
    if results["settings"].get("weight_metric"):
        yield WEIGHT_NOTE
    yield OPTIMISM_NOTE
    yield DIGEST_NOTE
