"""Files of a campaign: clean and messy ones, and what plain Python counts in them."""

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ordinate.meta.campaign import Campaign, read_campaign
from ordinate.meta.campaign_lines import CampaignColumns
from ordinate.readers.irregular_lines import IrregularityKind
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries import Panel

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
SCALE = Scale.of("cefr")


def write(name: str, text: str | bytes) -> str:
    Path(name).parent.mkdir(exist_ok=True, parents=True)
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def tsv(name: str, *rows: str, end: str = "\n") -> str:
    """Write rows of words as a file with tabs; '-' is an empty column."""
    cut = (["" if word == "-" else word for word in row.split(" ")] for row in rows)
    return write(name, "".join("\t".join(row) + end for row in cut))


def lenient(gold: str, *runs: str, scale=SCALE, missing=None, **columns) -> Campaign:
    return read_campaign(gold, list(runs), CampaignColumns(**columns, lenient=True), scale, missing)


def kinds(campaign: Campaign, file: str) -> dict[str, tuple]:
    found = [x for x in campaign.irregular if x.file == file]
    return {x.kind: (x.count, x.line, x.example) for x in found}


# --- plain Python --------------------------------------------------------------------------------


class Checked(NamedTuple):
    """What is irregular in a file, by kind (count, line, text), and the good answers by key."""

    irregular: dict[str, tuple[int, int | None, str]]
    answers: dict[tuple[str, str], str]
    keys: list[tuple[str, str]]


def naive(data: bytes, known: set | None, header: list[str] | None = None, delimiter="\t"):
    """Read one file line by line, with three columns in this order."""
    found: dict[str, list] = {}
    answers: dict[tuple[str, str], str] = {}
    keys: list[tuple[str, str]] = []
    lines = enumerate(re.split("\r\n|\n", data.decode("utf-8-sig")), start=1)
    kept = [(number, line) for number, line in lines if line]
    for number, line in kept[header is not None :]:
        (row,) = csv.reader([line], delimiter=delimiter)
        kind = bad_line(row, 3 if header is None else len(header), known)
        if kind is None:
            case, key, value = row[:3]
            keys.append((case, key))
            kind = bad_value(value, answers.get((case, key)))
            if kind is None:
                answers[case, key] = value
        if kind is not None:
            found.setdefault(kind, [0, number, line.replace("\t", "\\t")])[0] += 1
    return Checked({k: tuple(x) for k, x in found.items()}, answers, list(dict.fromkeys(keys)))


def bad_line(row: list[str], width: int, known: set | None) -> IrregularityKind | None:
    if len(row) != width:
        return IrregularityKind.COLUMNS
    if not row[0]:
        return IrregularityKind.TEST_CASE
    if not row[1]:
        return IrregularityKind.ID
    return IrregularityKind.UNKNOWN if known is not None and tuple(row[:2]) not in known else None


def bad_value(value: str, before: str | None) -> IrregularityKind | None:
    if not value:
        return IrregularityKind.VALUE
    if value not in CEFR:
        return IrregularityKind.OFF_SCALE
    if before is None:
        return None
    return IrregularityKind.REPEATED if value == before else IrregularityKind.CONTRADICTING


class Expected(NamedTuple):
    irregular: dict[str, dict]
    panel: Panel
    read: dict[str, dict[str, int]]


def expected(gold: str, runs: list[str], missing="drop", **how) -> Expected:
    first = naive(Path(gold).read_bytes(), None, **how)
    items, known = [key for key in first.keys if key in first.answers], set(first.keys)
    irregular, read, systems = {gold: first.irregular}, {}, {}
    for run in runs:
        found = naive(Path(run).read_bytes(), known, **how)
        there = set(found.keys)
        lacking = [key for key in items if key not in there]
        irregular[run] = dict(found.irregular)
        if lacking:
            irregular[run][IrregularityKind.MISSING] = (len(lacking), None, " ".join(lacking[0]))
        name = Path(run).stem
        systems[name] = [found.answers.get(key) for key in items]
        read[name] = {
            "matched": len(items) - len(lacking),
            "predicted": sum(key in found.answers for key in items),
            "missing": len(lacking),
            "unknown": found.irregular.get(IrregularityKind.UNKNOWN, (0,))[0],
        }
    gold_labels = [first.answers[key] for key in items]
    cases = list(dict.fromkeys(case for case, _ in first.keys))
    place = {case: k for k, case in enumerate(cases)}
    groups = Groups(cases, np.array([place[case] for case, _ in items]))
    panel = Panel.of(gold_labels, systems, SCALE, groups=groups, missing=missing)
    return Expected(irregular, panel, read)


def check(campaign: Campaign, wanted: Expected) -> None:
    assert {file: kinds(campaign, file) for file in wanted.irregular} == wanted.irregular
    assert campaign.match_counts == wanted.read
    assert campaign.panel == wanted.panel


# --- messy files ---------------------------------------------------------------------------------


def troubled(number: int, case: str, key: str, value: str) -> list[list[str]]:
    """Return what stands in the place of a good row, by the number of the trouble."""
    good = [case, key, value]
    return {
        0: [[case, key]],
        1: [[*good, "more"]],
        2: [[case, key, ""]],
        3: [[case, key, "B3"]],
        4: [[case, "", value]],
        5: [["", key, value]],
        6: [good, [case, f"x{key}", value], [case, f"x{key}", "B3"]],
        7: [],
        8: [good, good],
        9: [[case, key, "A1"], [case, key, "A2"], [case, key, "A1"]],
        10: [[case, key, ""], good, [case, key, "B3"]],
        11: [[""], good],
    }.get(number, [good])


def messy(n: int, seed: int, *, gold: bool = False, delimiter: str = "\t") -> list[str]:
    """Return lines in which every kind of trouble occurs, at random places."""
    rng = np.random.default_rng(seed)
    levels, trouble = rng.integers(0, 6, n), rng.integers(0, 400, n)
    if gold:
        trouble[trouble == 6] = 12  # gold knows all its ids
    numbers = enumerate(trouble.tolist())
    rows = [
        row for k, x in numbers for row in troubled(x, f"T{k % 61}", f"e{k // 2}", CEFR[levels[k]])
    ]
    order = np.arange(len(rows)) if gold else rng.permutation(len(rows))
    return [delimiter.join(rows[k]) for k in order]


# --- a small campaign ----------------------------------------------------------------------------

GOLD = ("t1 a A1", "t1 b B1", "t2 a C1", "t2 b A2")
RUN = ("t2 b A2", "t2 a C2", "t1 a A1", "t1 b A2")
PANEL = Panel.of(
    ["A1", "B1", "C1", "A2"],
    {"run": ["A1", "A2", "C2", "A2"]},
    SCALE,
    groups=factorize_column(["t1", "t1", "t2", "t2"]),
)


def clean(file: str = "gold.tsv", run: str = "run.tsv", **columns) -> Campaign:
    return read_campaign(file, [run], CampaignColumns(**columns))


def text_of(rows: tuple[str, ...], delimiter: str = "\t", end: str = "\n") -> str:
    return "".join(row.replace(" ", delimiter) + end for row in rows)
