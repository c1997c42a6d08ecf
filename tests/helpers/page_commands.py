"""The commands that pages show, and the files that they name: made of the shipped examples."""

import contextlib
import re
import shlex
import shutil
import sqlite3
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import polars as pl

from ordinate.examples import EXAMPLE_FILES, locate_example
from ordinate.scale import Scale

LEVELS = ("A1", "A2", "B1", "B2", "C1", "C2")
BLOCK = re.compile(
    r"^(?P<before><!--[^\n]*-->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
COMMAND = re.compile(r"^(?:ordinate|mkdir) ")
FOR_SHELL = re.compile(r"^(?:source|check-jsonschema) |^(?:ordinate|mkdir) [^#]*[<>$~]")
TINY = {  # flags for what takes long otherwise, by what a command begins with
    "properties too_low": "--search --most-items 3",
    "tune": "--models logistic --trials 1 --folds 2 --preset minimal --jobs 1 --no-nested",
    "tune-regression": "--models svr,poly_ridge --trials 1 --folds 2",
    "study": "--seeds 1",
}

OWN_METRIC = """import numpy as np
import ordinate

@ordinate.metric(direction="minimize")
def too_low(matrix):
    return np.tril(matrix.share, -1).sum(axis=(-2, -1))
"""


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    before: str  # the comment above it

    @property
    def commands(self) -> list[list[str]]:
        """Lines that call `ordinate` or make a folder; what stands behind a # is for the reader.

        What only a shell can read is a command of bash.
        """
        if self.language not in ("", "sh", "bash"):
            return []
        return [
            ["bash", "-c", line] if FOR_SHELL.match(line) else shlex.split(line, comments=True)
            for line in self.text.replace("\\\n", " ").splitlines()
            if FOR_SHELL.match(line) or COMMAND.match(line)
        ]


def shrink(command: list[str]) -> list[str]:
    """Return a command with flags that make it quick: later ones win."""
    line = shlex.join(command)
    return command + [
        x for start, more in TINY.items() if line.startswith(f"{start} ") for x in more.split()
    ]


def list_blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = BLOCK.finditer(page)
    return [Block(x["language"], x["text"], x["before"] or "") for x in found]


def list_commands(page: str) -> list[list[str]]:
    """Return all commands of a page whose output it does not show."""
    return [command for block in list_blocks(page) for command in block.commands]


# --- files ---------------------------------------------------------------------------------------


def write_files(folder: Path, command: list[str]) -> None:
    """Write the files that a command of a page names and that no command before it made.

    One name stands for texts, for levels or for numbers, as the command takes it.
    """
    for name in EXAMPLE_FILES:
        shutil.copy(locate_example(name), folder)
    if command[0] in ("init", "predict", "features"):
        _write_texts(folder)
    elif command[0].endswith("regression") or "--target" in command:
        _write_densities(folder, command, predicted=command[0] != "tune-regression")
    else:
        _write_levels(folder, command)
    (folder / "mine.py").write_text(OWN_METRIC, encoding="utf-8")


def _write_texts(folder: Path) -> None:
    texts = pl.read_csv(locate_example("texts")).with_row_index("row")
    essays = texts.select("id", "level", "topic", "text", writer=pl.col("row") % 60)
    essays.write_csv(folder / "essays.csv")
    essays.head(5).select("id", "topic", "text").write_csv(folder / "new.csv")
    numbers = np.random.default_rng(0).normal(size=(len(essays), 2))
    syntax = essays.select("id", "writer", depth=numbers[:, 0], length=numbers[:, 1])
    syntax.write_parquet(folder / "syntax.parquet")


def _write_densities(folder: Path, command: list[str], *, predicted: bool) -> None:
    table = pl.read_csv(locate_example("densities"))
    if predicted:
        names = ("predicted", "model", "linear", "forest", "prediction")
        noise = np.random.default_rng(0).normal(scale=30, size=(len(names), len(table)))
        table = table.with_columns(
            **{name: table["density"] + row for name, row in zip(names, noise, strict=True)},
            p05=table["density"] - 60,
            p95=table["density"] + 60,
            lower=table["density"] - 60,
            upper=table["density"] + 60,
            family=pl.col("carbons") % 3,
            lab=pl.int_range(pl.len()) % 25,
        )
    for name in ("densities.csv", "table.csv", "other_lab.csv", "new.csv", "predictions.csv"):
        table.write_csv(folder / name)
    if "--sql" in command:
        _write_databases(folder, table, "densities", "real", duck=False)


def _write_levels(folder: Path, command: list[str]) -> None:
    levels = _find_levels(command)
    shown = pl.read_csv(locate_example("systems"))
    codes = {
        name: [min(LEVELS.index(x), len(levels) - 1) for x in shown[name]]
        for name in shown.columns[2:]
    }
    named = {name: [levels[code] for code in column] for name, column in codes.items()}
    near = np.exp(-np.abs(np.subtract.outer(codes["ensemble"], range(len(levels)))))
    shares = near / near.sum(axis=1, keepdims=True)
    topics = [f"topic{k % 6}" for k in range(len(shown))]
    names = ["gold", "predicted"]  # which are found by their names
    if {"--gold", "--systems", "--id"} & {*command}:
        names = ["level", "answer", "truth", "score", "estimate", "guess", *names]
    sides = {
        "predicted": "ensemble",
        "answer": "ensemble",
        "estimate": "ensemble",
        "guess": "forest",
    }
    table = pl.DataFrame(
        {
            "id": shown["id"],
            "essay": shown["id"],
            "writer": shown["writer"],
            **dict.fromkeys(("topic", "prompt"), topics),
            "language": [("de", "en", "it")[k % 3] for k in range(len(shown))],
            "level_2": named["rater_2"],
            **dict.fromkeys(("model_a", "a"), named["tfidf"]),
            **dict.fromkeys(("model_b", "b"), named["forest"]),
            "model_c": named["transformer"],
            **{name: named[sides.get(name, "gold")] for name in names},
            **{f"p_{level}": shares[:, k] for k, level in enumerate(levels)},
        }
    )
    for name in ("results", "predictions", "test", "oof", "essays"):
        table.write_csv(folder / f"{name}.csv")
    for name in ("monday", "tuesday"):
        table.write_parquet(folder / f"{name}.parquet")
    table.select("essay", level=names[0]).write_csv(folder / "gold.csv")
    for name in ("run_a", "run_b"):
        table.select("essay", answer=names[1]).write_csv(folder / f"{name}.csv")
    table.select("essay", answer=names[1]).write_ndjson(folder / "run_b.jsonl")
    ranges = [f"topic{k},1..6" for k in range(6)]
    (folder / "ranges.csv").write_text("\n".join(["prompt,scale", *ranges, ""]), encoding="utf-8")
    header = "none" not in command
    _write_campaign(folder, table.with_columns(gold=names[0]), header=header)
    _write_databases(folder, table, "essays", "text", duck="duckdb:" in " ".join(command))


def _find_levels(command: list[str]) -> tuple:
    """Return the levels of the scale that a command declares, or else CEFR."""
    if "--scale-by" in command:
        return Scale.of("1..6").labels
    return Scale.of(
        command[command.index("--scale") + 1] if "--scale" in command else "cefr"
    ).labels


def _write_campaign(folder: Path, table: pl.DataFrame, *, header: bool) -> None:
    (folder / "runs").mkdir(exist_ok=True)
    columns = {"gold": "gold", "a": "runs/a", "b": "runs/b", "model_c": "runs/c"}
    for column, name in columns.items():
        rows = table.select("topic", "id", label=column)
        rows.write_csv(folder / f"{name}.tsv", separator="\t", include_header=header)


def _write_databases(
    folder: Path, table: pl.DataFrame, title: str, kind: str, *, duck: bool
) -> None:
    database = folder / "runs.db"
    database.unlink(missing_ok=True)
    names = ", ".join(f'"{name}"' for name in table.columns)
    connect = duckdb.connect if duck else sqlite3.connect
    with contextlib.closing(connect(database)) as connection:
        types = names.replace(",", f" {kind},") + f" {kind}"
        connection.execute(f"create table {title} ({types})")
        marks = ", ".join("?" * len(table.columns))
        connection.executemany(f"insert into {title} values ({marks})", table.rows())  # noqa: S608 - names of ours
        connection.commit()
