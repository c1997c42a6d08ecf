"""The data of the cases: shipped examples, and tables that are made from fixed seeds."""

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from renaming import RENAMES, call

LEVELS = ("low", "mid", "high", "top")
CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
EXAMPLES = {
    "cefr": "cefr_levels.csv",
    "systems": "cefr_systems.csv",
    "texts": "cefr_texts.csv",
    "densities": "densities.csv",
}
Columns = dict[str, Sequence[Any]]


def copy_examples(folder: Path) -> None:
    """Copy the data sets that ship with the package."""
    for name, file in EXAMPLES.items():
        shutil.copyfile(call("ordinate.examples.path", name), folder / file)


def read_columns(file: Path) -> dict[str, list[str]]:
    """Return the columns of a CSV."""
    with file.open(newline="", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    return {name: [row[at] for row in rows] for at, name in enumerate(header)}


def write_table(path: Path, columns: Columns, delimiter: str = ",") -> None:
    """Write columns as CSV; numbers with all their digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def draw_levels(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Return n levels of a scale, some of them rarer than others."""
    return rng.choice(size, n, p=rng.dirichlet(np.full(size, 3.0)))


def draw_answers(rng: np.random.Generator, gold: np.ndarray, size: int, noise: float) -> np.ndarray:
    """Return predictions that lie around gold."""
    moved = np.rint(gold + rng.normal(0.0, noise, len(gold))).astype(int)
    return np.clip(moved, 0, size - 1)


def draw_probabilities(
    rng: np.random.Generator, gold: np.ndarray, size: int, sharpness: float = 1.0
) -> np.ndarray:
    """Return probabilities [n, size] that know something of gold; rows sum to 1."""
    centre = gold + rng.normal(0.0, 0.8, len(gold))
    odds = np.exp(-sharpness * np.abs(centre[:, None] - np.arange(size)))
    return odds / odds.sum(axis=1, keepdims=True)


# --- labels --------------------------------------------------------------------------------------


def write_labels(folder: Path) -> None:
    """Write tables of labels: whole, with holes, spelled otherwise, in several files."""
    columns = make_labels()
    write_table(folder / "ratings.csv", columns)
    for name, part in (("part_1", slice(0, 70)), ("part_2", slice(70, None))):
        write_table(folder / f"{name}.csv", {key: cells[part] for key, cells in columns.items()})
    holes = {name: list(column) for name, column in columns.items()}
    for row in range(0, len(holes["gold"]), 17):
        holes["a"][row] = ""
    write_table(folder / "unanswered.csv", holes)
    for row in range(3, len(holes["gold"]), 40):
        holes["gold"][row] = ""
    write_table(folder / "holes.csv", holes)
    shout = {name: [label.upper() for label in columns[name]] for name in ("gold", "a")}
    write_table(folder / "spelled.csv", columns | shout)
    spelling = {label.upper(): label for label in LEVELS}
    write_table(folder / "map.csv", {"from": list(spelling), "to": list(spelling.values())})
    (folder / "map.json").write_text(json.dumps(spelling), "utf-8")
    _write_runs(folder, columns)
    _write_own_metric(folder)


def make_labels(n: int = 160) -> Columns:
    """Return gold, a second rater, three systems, weights, groups and subgroups."""
    rng = np.random.default_rng(11)
    gold = draw_levels(rng, n, 4)
    noises = {"a": 0.6, "b": 0.8, "c": 1.3, "second": 0.4}
    answers = {name: draw_answers(rng, gold, 4, noise) for name, noise in noises.items()}
    labelled = {"gold": gold} | answers
    return {
        "id": [f"i{k:03}" for k in range(n)],
        **{name: [LEVELS[k] for k in column] for name, column in labelled.items()},
        "writer": [f"w{k % 40:02}" for k in range(n)],
        "class": [f"c{k % 8}" for k in range(n)],
        "language": [("de", "fr", "it")[k] for k in rng.integers(0, 3, n)],
        "w": rng.uniform(0.2, 3.0, n).tolist(),
        "times": rng.integers(0, 4, n).tolist(),
    }


def _write_runs(folder: Path, columns: Columns) -> None:
    """Write gold and two runs apart; the second run has its rows in another order."""
    write_table(folder / "gold.csv", {name: columns[name] for name in ("id", "gold", "writer")})
    write_table(folder / "run_a.csv", {"id": columns["id"], "answer": columns["a"]})
    rows = sorted(zip(columns["id"], columns["b"], strict=True), reverse=True)
    lines = [json.dumps({"id": key, "answer": label}) for key, label in rows]
    (folder / "run_b.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    write_table(folder / "answers.csv", {"answer": columns["a"]})


def _write_own_metric(folder: Path) -> None:
    """Write a file of the user's own that declares a metric."""
    declare, table = (RENAMES.rename_dotted(f"ordinate.{name}") for name in ("metric", "Confusion"))
    share = RENAMES.rename_dotted("ordinate.Confusion.share").rpartition(".")[2]
    text = (
        "import ordinate\n\n\n"
        f'@{declare}(direction="minimize", bounds=(0, 1))\n'
        f"def too_low(table: {table}):\n"
        '    """Share of items that are predicted too low."""\n'
        f"    return sum(table.{share}[..., i, j] for i in range(4) for j in range(i))\n"
    )
    (folder / "own.py").write_text(text, "utf-8")


def write_campaign(folder: Path, cases: int = 12, size: int = 15) -> None:
    """Write the runs of five systems in test cases, in one file and in files of their own."""
    rng = np.random.default_rng(12)
    gold = draw_levels(rng, cases * size, 3)
    topics = [f"t{k // size:02}" for k in range(cases * size)]
    named = {"gold": gold} | {
        name: draw_answers(rng, gold, 3, noise)
        for name, noise in {"v": 0.4, "w": 0.6, "x": 0.8, "y": 1.0, "z": 1.5}.items()
    }
    labels = {name: [LEVELS[k] for k in column] for name, column in named.items()}
    write_table(folder / "campaign.csv", {"topic": topics} | labels)
    for name, column in labels.items():
        path = folder / ("gold.tsv" if name == "gold" else f"runs/{name}.tsv")
        items = [f"i{k}" for k in range(len(topics))]
        write_table(path, {"entity": topics, "tweet": items, "polarity": column}, delimiter="\t")
    ragged = (folder / "runs/z.tsv").read_text("utf-8") + "t00\ti0\tnonsense\nt99\n"
    (folder / "ragged").mkdir()
    for name in ("v", "w", "x"):
        shutil.copyfile(folder / f"runs/{name}.tsv", folder / f"ragged/{name}.tsv")
    (folder / "ragged/z.tsv").write_text(ragged, "utf-8")


# --- probabilities -------------------------------------------------------------------------------


def write_probabilities(folder: Path) -> None:
    """Write probabilities of six levels: to fit on, to predict, and such as sum to about 1."""
    for name, n, seed in (("probabilities", 240, 21), ("new", 60, 22)):
        write_table(folder / f"{name}.csv", make_probabilities(n, seed))
    rough = make_probabilities(80, 23)
    for level in CEFR:
        rough[f"p_{level}"] = np.round(rough[f"p_{level}"], 3).tolist()
    write_table(folder / "rough.csv", rough)
    holes = make_probabilities(90, 24)
    for name in ("level", *(f"p_{level}" for level in CEFR)):
        holes[name] = ["" if k % 30 == 4 else cell for k, cell in enumerate(holes[name])]
    write_table(folder / "gaps.csv", holes)


def make_probabilities(n: int, seed: int) -> dict[str, Sequence[Any]]:
    """Return gold, probabilities and what goes with them, by column."""
    rng = np.random.default_rng(seed)
    gold = draw_levels(rng, n, 6)
    rows = draw_probabilities(rng, gold, 6, 1.4)
    return {
        "id": [f"e{k:03}" for k in range(n)],
        "level": [CEFR[k] for k in gold],
        "guess": [CEFR[k] for k in rows.argmax(axis=1)],
        **{f"p_{level}": rows[:, k].tolist() for k, level in enumerate(CEFR)},
        "topic": [("home", "work")[k % 2] for k in range(n)],
        "writer": [f"w{k % 25:02}" for k in range(n)],
        "w": rng.uniform(0.5, 2.0, n).tolist(),
    }


# --- quantities ----------------------------------------------------------------------------------


def write_quantities(folder: Path) -> None:
    """Write quantities: whole, from elsewhere, with holes, normalised, and targets apart."""
    columns = make_quantities(220, 31)
    write_table(folder / "quantities.csv", columns)
    write_table(folder / "few.csv", {name: column[:20] for name, column in columns.items()})
    write_table(folder / "elsewhere.csv", make_quantities(90, 32, shift=60.0))
    holes = {name: list(column) for name, column in columns.items()}
    for row, name in ((3, "density"), (50, "predicted"), (90, "linear"), (130, "lo")):
        holes[name][row] = ""
    write_table(folder / "quantity_holes.csv", holes)
    turned = {
        name: [(value - 650.0) / 80.0 for value in columns[name]]
        for name in ("density", "predicted", "lo", "hi", "linear")
    }
    write_table(folder / "normalized.csv", columns | turned)
    keys = [f"q{k}" for k in range(len(columns["density"]))]
    write_table(folder / "targets.csv", {"id": keys, "density": columns["density"]})
    write_table(folder / "predictions.csv", {"id": keys, "predicted": columns["predicted"]})


def make_quantities(n: int, seed: int, shift: float = 0.0) -> dict[str, list[Any]]:
    """Return targets, predictions of three models, bounds, times, groups and features."""
    rng = np.random.default_rng(seed)
    depth = rng.uniform(0.0, 10.0, n)
    target = 650.0 + shift + 60.0 * np.sin(depth) + rng.normal(0.0, 20.0, n)
    predicted = target + rng.normal(2.0, 5.0 + depth, n)
    reach = rng.uniform(8.0, 25.0, n)
    numbers = {
        "density": target,
        "predicted": predicted,
        "linear": target + rng.normal(0.0, 16.0, n),
        "forest": target + rng.normal(-3.0, 9.0, n),
        "lo": predicted - reach,
        "hi": predicted + reach,
        "t": rng.permutation(n),
        "depth": depth,
        "w": rng.uniform(0.2, 3.0, n),
        "times": rng.integers(0, 4, n),
    }
    return {name: column.tolist() for name, column in numbers.items()} | {
        "family": [("oak", "elm", "ash")[k] for k in rng.integers(0, 3, n)],
        "lab": [f"l{k % 14}" for k in range(n)],
    }


def write_densities(folder: Path) -> None:
    """Write a part of the shipped densities to learn from, another to predict, and groups."""
    columns = read_columns(folder / EXAMPLES["densities"])
    write_table(folder / "small.csv", {name: cells[:220] for name, cells in columns.items()})
    fresh = {name: cells[300:330] for name, cells in columns.items() if name != "density"}
    write_table(folder / "fresh.csv", fresh)


# --- an experiment of numbers --------------------------------------------------------------------


def write_experiment(root: Path, n: int = 72, tests: int = 36) -> None:
    """Lay out an experiment with writers and two small feature sets, one of them mere noise."""
    rng = np.random.default_rng(41)
    for place, stem, count in (
        ("ml-training-data", "train", n),
        ("ml-test-data", "test", tests),
    ):
        gold = np.arange(count) % len(CEFR)
        keys = [f"{stem}-{k}" for k in range(count)]
        data = {
            "id": keys,
            "text": [f"Text {k} of {stem}." for k in range(count)],
            "label": [CEFR[k] for k in gold],
            "writer": [f"w{k % 12}" for k in range(count)],
        }
        write_table(root / RENAMES.rename_place(place) / f"{stem}.csv", data)
        for name, noise in (("strong", 0.9), ("weak", 6.0)):
            slopes = np.linspace(1.0, 0.3, 5)
            values = gold[:, None] * slopes + rng.normal(0.0, noise, (count, 5))
            _write_features(root / RENAMES.rename_place(f"features/{name}/{stem}"), values)


def _write_features(folder: Path, values: np.ndarray) -> None:
    names = [f"f{k}" for k in range(values.shape[1])]
    write_table(folder / "feature_names.csv", {"feature": names})
    columns = {name: values[:, k].tolist() for k, name in enumerate(names)}
    write_table(folder / "features_dense.csv", columns)


def write_outsiders(folder: Path, data: Path) -> None:
    """Write features and predictions of others for an experiment that `ordinate init` made."""
    rng = np.random.default_rng(42)
    keys, tests = [], []
    for path in sorted(data.glob("*/*.csv")):
        columns = read_columns(path)
        keys += columns["id"]
        tests = columns if "test" in path.stem else tests
    values = {f"x{k}": rng.normal(size=len(keys)).tolist() for k in range(3)}
    write_table(folder / "own_features.csv", {"id": keys} | values | {"note": ["n"] * len(keys)})
    gold = np.array([CEFR.index(level) for level in tests["level"]])
    answers = draw_answers(rng, gold, 6, 0.8)
    answered = {key: CEFR[k] for key, k in zip(tests["id"], answers, strict=True)}
    (folder / "judge.json").write_text(json.dumps(answered), "utf-8")
    rows = draw_probabilities(rng, gold, 6)
    columns = {f"p_{level}": rows[:, k].tolist() for k, level in enumerate(CEFR)}
    some = slice(0, len(gold) - 6)
    columns = {"id": tests["id"]} | columns
    write_table(folder / "outside.csv", {name: cells[some] for name, cells in columns.items()})
    write_table(
        folder / "new_texts.csv",
        {name: tests[name][:9] for name in ("id", "topic", "text")},
    )
