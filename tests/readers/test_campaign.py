"""The reader of campaigns: what it counts and keeps is what plain Python counts and keeps."""

import csv
import gzip
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ordinate.errors import BadInput, BadOption, BadScale, MissingLabels, NoItems
from ordinate.readers import text_lines as lines
from ordinate.readers.campaign import Campaign, CampaignColumns, read_campaign
from ordinate.readers.duckdb_connection import connect
from ordinate.readers.irregular_lines import IrregularityKind, build_line_check_sql
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries import Panel

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
SCALE = Scale.of("cefr")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str | bytes) -> str:
    Path(name).parent.mkdir(exist_ok=True, parents=True)
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def tsv(name: str, *rows: str, end: str = "\n") -> str:
    """Write rows of words as a file with tabs; '-' is an empty column."""
    cut = (["" if word == "-" else word for word in row.split(" ")] for row in rows)
    return write(name, "".join("\t".join(row) + end for row in cut))


def lenient(gold: str, *runs: str, scale=SCALE, missing=None, **columns) -> Campaign:
    return read_campaign(gold, list(runs), CampaignColumns(**columns), scale, missing, lenient=True)


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
            "answered": sum(key in found.answers for key in items),
            "missing": len(lacking),
            "unknown": found.irregular.get(IrregularityKind.UNKNOWN, (0,))[0],
        }
    gold_labels = [first.answers[key] for key in items]
    cases = list(dict.fromkeys(case for case, _ in first.keys))
    place = {case: k for k, case in enumerate(cases)}
    groups = Groups(cases, np.array([place[case] for case, _ in items]))
    panel = Panel.of(SCALE, gold_labels, systems, groups=groups, missing=missing)
    return Expected(irregular, panel, read)


def check(campaign: Campaign, wanted: Expected) -> None:
    assert {file: kinds(campaign, file) for file in wanted.irregular} == wanted.irregular
    assert campaign.joined == wanted.read
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


def test_a_messy_run_of_a_hundred_thousand_lines_is_counted_exactly():
    gold = [f"T{k % 61}\te{k // 2}\t{CEFR[k % 6]}" for k in range(100_000)]
    write("gold.tsv", "\n".join(gold) + "\n")
    write("run.tsv", "\r\n".join(messy(100_000, 1)) + "\r\n")
    campaign = lenient("gold.tsv", "run.tsv", test_case="topic")
    wanted = expected("gold.tsv", ["run.tsv"])
    assert set(wanted.irregular["run.tsv"]) == set(IrregularityKind) - {
        IrregularityKind.ENCODING,
        IrregularityKind.QUOTES,
    }
    check(campaign, wanted)
    assert campaign.panel.dropped == 100_000 - campaign.joined["run"]["answered"] > 0
    with pytest.raises(BadInput, match=r"wrong number of columns \(\d+, first: run.tsv:\d+ 'T"):
        read_campaign("gold.tsv", ["run.tsv"], scale=SCALE)


@pytest.mark.parametrize("by_test_case", [True, False])
def test_lines_are_looked_up_in_gold_and_never_compared_in_pairs(by_test_case):
    with connect() as connection:
        connection.execute("CREATE TABLE known_items (place BIGINT, test_case VARCHAR, id VARCHAR)")
        connection.execute("CREATE TABLE value_codes (value VARCHAR, code INTEGER)")
        texts = "text VARCHAR, kind VARCHAR, test_case VARCHAR, id VARCHAR, value VARCHAR"
        connection.execute(f"CREATE TABLE line_values (line BIGINT, {texts})")
        query = build_line_check_sql(len(CEFR), by_test_case=by_test_case)
        ((_, plan),) = connection.execute(f"EXPLAIN {query}").fetchall()
    assert re.findall(r"(\w+)[ _]join\b", plan.lower()) == ["hash", "hash"]


@pytest.mark.parametrize("missing", ["drop", "worst"])
@pytest.mark.parametrize("seed", range(3))
def test_messy_gold_and_runs_give_the_panel_of_the_clean_rest(seed, missing):
    write("gold.tsv", "\n".join(messy(4_000, seed, gold=True)))
    runs = [write(f"r{k}.tsv", "\n".join(messy(4_000, 10 + seed + k))) for k in range(3)]
    wanted = expected("gold.tsv", runs, missing)
    assert len(wanted.irregular["gold.tsv"]) >= 7
    check(lenient("gold.tsv", *runs, missing=missing), wanted)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_with_a_header_further_columns_and_quotes(end):
    header = ["topic", "id", "value", "text"]
    texts = ['"a, ""quoted"" word"', "plain", '"="', '5" wide', ""]

    def lines_of(seed: int, *, gold: bool) -> str:
        rows = messy(2_000, seed, gold=gold, delimiter=",")
        quoted = [re.sub("^(T1),", r'"\1",', row) for row in rows]
        full = [row and f"{row},{texts[k % 5]}" for k, row in enumerate(quoted)]
        return end.join([",".join(header), *full])

    write("gold.csv", lines_of(1, gold=True))
    write("run.csv", lines_of(2, gold=False))
    wanted = expected("gold.csv", ["run.csv"], header=header, delimiter=",")
    campaign = lenient("gold.csv", "run.csv")
    check(campaign, wanted)
    note = "gold.csv, run.csv were read by the columns topic, id, value of the header."
    assert note in campaign.notes


def test_lines_are_the_same_whatever_the_size_of_the_blocks(monkeypatch):
    write("gold.tsv", "\n".join(messy(500, 1, gold=True)))
    write("run.tsv", "\r\n".join(messy(500, 2)))
    monkeypatch.setattr(lines, "BLOCK_CHARACTERS", 100)
    check(lenient("gold.tsv", "run.tsv"), expected("gold.tsv", ["run.tsv"]))


# --- formats -------------------------------------------------------------------------------------

GOLD = ("t1 a A1", "t1 b B1", "t2 a C1", "t2 b A2")
RUN = ("t2 b A2", "t2 a C2", "t1 a A1", "t1 b A2")
PANEL = Panel.of(
    SCALE,
    ["A1", "B1", "C1", "A2"],
    {"run": ["A1", "A2", "C2", "A2"]},
    groups=factorize_column(["t1", "t1", "t2", "t2"]),
)


def clean(file: str = "gold.tsv", run: str = "run.tsv", **columns) -> Campaign:
    return read_campaign(file, [run], CampaignColumns(**columns))


def text_of(rows: tuple[str, ...], delimiter: str = "\t", end: str = "\n") -> str:
    return "".join(row.replace(" ", delimiter) + end for row in rows)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("run.tsv", text_of(RUN).encode()),
        ("run.tsv", text_of(RUN).rstrip().encode()),
        ("run.tsv", text_of(RUN, end="\r\n").encode() + b"\r\n\r\n"),
        ("run.tsv", text_of(RUN[:2], end="\r\n").encode() + text_of(RUN[2:]).encode()),
        ("run.tsv", b"\xef\xbb\xbf" + text_of(RUN).encode()),
        ("run.tsv", ("\ufeff" + text_of(RUN)).encode("utf-16-le")),
        ("run.tsv", re.sub(r"([^\t\n]+)", r'"\1"', text_of(RUN)).encode()),
        ("run", text_of(RUN).encode()),
        ("run.csv", text_of(RUN, ",").encode()),
        ("run.csv", text_of(RUN, ";").encode()),
        ("run.csv", text_of(("Topic ID Prediction", *RUN), ",").encode()),
        ("run.csv", b"\n\n" + text_of(("x id y predicted topic", "- a - A1 t1", "- b - A2 t1",
                                      "- a - C2 t2", "- b - A2 t2"), ",").encode()),
        ("run.tsv.gz", gzip.compress(text_of(RUN, end="\r\n").encode())),
        ("run.csv.gz", gzip.compress(("\ufeff" + text_of(("topic id value", *RUN), ",")).encode())),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_every_format_gives_the_same_panel(name, data):
    tsv("gold.tsv", *GOLD)
    write(name, data)
    campaign = clean(run=name)
    assert campaign.panel == PANEL
    assert campaign.irregular == ()
    assert campaign.files == ("gold.tsv", name)
    assert campaign.joined == {"run": {"matched": 4, "answered": 4, "missing": 0, "unknown": 0}}


def test_same_ids_in_two_test_cases_are_two_items():
    tsv("gold.tsv", *GOLD)
    tsv("run.tsv", *RUN)
    panel = clean(test_case="topic").panel
    assert panel == PANEL
    assert panel.group_values == ("t1", "t2")


def test_two_columns_are_id_and_value():
    tsv("gold.tsv", "a A1", "b B1")
    tsv("run.tsv", "b B2", "a A1")
    campaign = clean()
    assert campaign.panel == Panel.of(SCALE, ["A1", "B1"], {"run": ["A1", "B2"]})
    assert campaign.panel.groups is None
    assert campaign.notes == (
        "gold.tsv, run.tsv were read without a header: id, value.",
        "No scale was declared: the gold labels are of the preset 'cefr'.",
    )


@pytest.mark.parametrize(
    ("gold", "run"),
    [(("t1 a A1", "t2 b B1"), ("b B2", "a A1")), (("a A1", "b B1"), ("t2 b B2", "t1 a A1"))],
)
def test_without_test_cases_on_both_sides_items_are_joined_by_id(gold, run):
    tsv("gold.tsv", *gold)
    tsv("run.tsv", *run)
    campaign = clean()
    assert sorted(map(tuple, campaign.panel.rows.tolist())) == [(0, 0), (2, 3)]
    alone = "run.tsv has no test cases: items are found by their ids alone."
    assert (alone in campaign.notes) == (len(gold[0].split()) == 3)


def test_an_id_in_two_test_cases_needs_them_in_the_runs():
    tsv("gold.tsv", *GOLD)
    tsv("run.tsv", "a A1", "b A2")
    problem = r"run.tsv has no test case, .* the id 'a' is in 2 test cases of gold"
    with pytest.raises(BadInput, match=problem):
        lenient("gold.tsv", "run.tsv")


def test_columns_go_by_the_names_asked_for():
    write("gold.csv", "level,who,essay,stamp\nA1,w1,1,x\nB1,w2,1,y\n")
    write("run.csv", "answer|essay|who\nB2|1|w2\nA1|1|w1\n")
    names = {"test_case": "who", "id": "essay", "gold": "level", "predicted": "answer"}
    campaign = clean("gold.csv", "run.csv", **names)
    wanted = Panel.of(
        SCALE, ["A1", "B1"], {"run": ["A1", "B2"]}, groups=factorize_column(["w1", "w2"])
    )
    assert campaign.panel == wanted
    assert "run.csv was read by the columns who, essay, answer of the header." in campaign.notes


def test_delimiter_and_encoding_are_taken_as_asked():
    rows = ("é a A1", "é b B1")
    write("gold.txt", text_of(rows, "~").encode("latin-1"))
    write("run.txt", text_of(rows, "~").encode("latin-1"))
    campaign = clean("gold.txt", "run.txt", delimiter="~", encoding="latin-1")
    assert campaign.panel.group_values == ("é",)
    with pytest.raises(BadInput, match=r"gold.txt has no header that is known"):
        clean("gold.txt", "run.txt", encoding="latin-1")


@pytest.mark.parametrize("block", [3, 1_000])
def test_a_quoted_text_may_have_several_lines(block, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_CHARACTERS", block)
    rows = 'id,text,value\na,"one\n\ntwo, ""2""",A1\nb,"x","B1"\nc,"p\nq",A2\n'
    write("gold.csv", rows)
    write("run.csv", rows + 'z,"r\ns",A1\n')
    campaign = lenient("gold.csv", "run.csv")
    assert campaign.panel == Panel.of(SCALE, ["A1", "B1", "A2"], {"run": ["A1", "B1", "A2"]})
    assert kinds(campaign, "run.csv") == {IrregularityKind.UNKNOWN: (1, 8, 'z,"r s",A1')}


def test_a_stray_quote_costs_its_own_line():
    write("gold.csv", "id,text,value\na,x,A1\nb,y,B1\nc,z,C1\nd,v,C2\n")
    write("run.csv", 'id,text,value\na,x,A1\nb,"y,B1\nc,"z"s,C1\nd,v"v,C2\n')
    campaign = lenient("gold.csv", "run.csv")
    assert kinds(campaign, "run.csv") == {
        IrregularityKind.QUOTES: (2, 3, 'b,"y,B1'),
        IrregularityKind.MISSING: (2, None, "b"),
    }
    answers = {"run": ["A1", None, None, "C2"]}
    assert campaign.panel == Panel.of(SCALE, ["A1", "B1", "C1", "C2"], answers, missing="drop")


def test_a_quote_inside_a_column_is_a_letter():
    rows = 'id,text,value\na,5" wide,A1\n"b""c",x,B1\nd,6" wide,C1\n'
    write("gold.csv", rows)
    write("run.tsv", 'd\tC1\nb"c\tB1\na\tA1\n')
    campaign = clean("gold.csv", "run.tsv")
    assert campaign.panel.table("run").items.trace() == 3


def test_lines_that_are_not_utf8_are_counted():
    tsv("gold.tsv", *GOLD)
    good = text_of(RUN).encode()
    write("run.tsv", b"t1\t\xff\tA1\n" + good + "t1\t\ufffd\tA1\n".encode())
    campaign = lenient("gold.tsv", "run.tsv")
    assert kinds(campaign, "run.tsv") == {
        IrregularityKind.ENCODING: (1, 1, "t1\\t\ufffd\\tA1"),
        IrregularityKind.UNKNOWN: (1, 6, "t1\\t\ufffd\\tA1"),
    }
    assert campaign.panel == PANEL
    with pytest.raises(BadInput, match="Pass --encoding if a file is not UTF-8"):
        clean()


@pytest.mark.parametrize("run", ["run.tsv", "run"])
def test_the_first_line_may_be_a_bad_one(run):
    tsv("gold.tsv", *GOLD)
    tsv(run, "oops", *RUN)
    campaign = lenient("gold.tsv", run)
    assert kinds(campaign, run) == {IrregularityKind.COLUMNS: (1, 1, "oops")}
    assert campaign.panel == PANEL


def test_most_lines_say_how_many_columns_there_are():
    tsv("gold.tsv", "t a A1", "a A1", "b B1")
    tsv("run.tsv", "a A1", "b B1", "c - A1")
    campaign = lenient("gold.tsv", "run.tsv")
    assert campaign.panel.groups is None
    assert [x.example for x in campaign.irregular] == ["t\\ta\\tA1", "c\\t\\tA1"]


def test_a_label_that_is_the_usual_name_of_a_column_makes_no_header():
    tsv("gold.tsv", "t1 a gold", "t1 b silver")
    tsv("run.tsv", "t1 a silver", "t1 b silver")
    panel = read_campaign("gold.tsv", ["run.tsv"], scale=Scale.of("bronze,silver,gold")).panel
    assert panel.rows.tolist() == [[1, 1], [2, 1]]


def test_labels_are_spelt_and_renamed_as_everywhere():
    tsv("gold.tsv", "a 1", "b 2", "c 3", "d 3")
    tsv("run.tsv", "a 1.0", "b two", "c three", "d none")
    renamed = {"two": "2", "none": None}
    campaign = lenient("gold.tsv", "run.tsv", scale=Scale.of("1..3"), renamed=renamed)
    assert kinds(campaign, "run.tsv") == {
        IrregularityKind.VALUE: (1, 4, "d\\tnone"),
        IrregularityKind.OFF_SCALE: (1, 3, "c\\tthree"),
    }
    assert campaign.panel.rows.tolist() == [[0, 0], [1, 1]]
    assert campaign.panel.dropped == 2


def test_a_long_line_is_shortened_and_made_printable():
    tsv("gold.tsv", *GOLD)
    write("run.tsv", text_of(RUN) + "t1\t\x1b[31m" + "x" * 500 + "\tA1\n")
    ((_, _, example),) = kinds(lenient("gold.tsv", "run.tsv"), "run.tsv").values()
    assert example.startswith("t1\\t\ufffd[31mxxx")
    assert example.endswith("x…")
    assert len(example) == 60


# --- folders -------------------------------------------------------------------------------------


def test_a_folder_holds_runs_and_perhaps_gold():
    for name in ("b.tsv", "a.txt", ".hidden"):
        tsv(f"runs/{name}", *RUN)
    tsv("runs/gold.tsv", *GOLD)
    tsv("runs/inside/c.tsv", *RUN)
    campaign = read_campaign("runs/gold.tsv", ["runs"])
    assert campaign.panel.systems == ("a.txt", "b")
    assert campaign.files == ("runs/gold.tsv", "runs/a.txt", "runs/b.tsv")


def test_patterns_and_files_join_folders():
    tsv("gold.tsv", *GOLD)
    for name in ("x/run.tsv", "y/run.tsv", "z/run.tsv"):
        tsv(name, *RUN)
    campaign = read_campaign("gold.tsv", ["x", "[yz]/*.tsv"])
    assert campaign.panel.systems == ("x/run", "y/run", "z/run")
    assert read_campaign("x/run.tsv", ["?/run.tsv"]).panel.systems == ("y/run", "z/run")
    with pytest.raises(BadInput, match=r"x/run.tsv is named twice: name each run once"):
        read_campaign("gold.tsv", ["x", "x/run.tsv"])
    with pytest.raises(BadInput, match=r"no runs besides the gold file gold.tsv"):
        read_campaign("gold.tsv", ["gold.tsv"])
    assert (
        "x/run.tsv is the gold file, and no run."
        in read_campaign("x/run.tsv", ["x/run.tsv", "y/run.tsv"]).notes
    )
    with pytest.raises(BadInput, match=r"Gold is one file, and \*/run.tsv fits 3"):
        read_campaign("*/run.tsv", ["x"])


# --- errors --------------------------------------------------------------------------------------


def test_whatever_is_irregular_is_one_error_for_all_files():
    tsv("gold.tsv", *GOLD, "t3 a B7")
    tsv("r1.tsv", *RUN, "t9 a A1", "t1 a A1")
    tsv("r2.tsv", *RUN[1:], "t9 b A1", "t1")
    with pytest.raises(BadInput, match="irregular") as problem:
        read_campaign("gold.tsv", ["r1.tsv", "r2.tsv"])
    assert str(problem.value) == (
        "The files have 6 irregular lines or ids: wrong number of columns (1: r2.tsv:5 't1'); "
        r"id that gold lacks (2 in 2 files, first: r1.tsv:5 't9\ta\tA1'); label off the scale "
        r"(1: gold.tsv:5 't3\ta\tB7'); repeated id, same value (1: r1.tsv:6 't1\ta\tA1'); "
        "id that the run lacks (1: r2.tsv 't2 b'). Correct the files, or pass lenient=True "
        "(--lenient) to leave these lines out and evaluate the rest."
    )


def test_an_error_lists_eight_kinds_at_most():
    tsv("gold.tsv", *GOLD)
    bad = ("t1", "- a A1", "t1 - A1", "t1 z A1", "t1 a -", "t1 b B3", "t2 b A2", "t2 b A1")
    write("run.tsv", text_of(RUN).encode() + b't1\t"\tA1\n\xff\n')
    with Path("run.tsv").open("a") as file:
        file.write("".join(row.replace("-", "").replace(" ", "\t") + "\n" for row in bad))
    with pytest.raises(BadInput, match=r"have 10 irregular.*B3'\); and 2 more kinds\. Correct"):
        clean()
    found = Counter({x.kind: x.count for x in lenient("gold.tsv", "run.tsv").irregular})
    assert found == Counter(set(IrregularityKind) - {IrregularityKind.MISSING})


def test_gold_without_the_test_case_that_was_named():
    tsv("gold.tsv", "a A1", "b B1")
    tsv("run.tsv", "a A1", "b B1")
    with pytest.raises(BadInput, match=r"gold.tsv has no test case, and 'topic' was named"):
        clean(test_case="topic")
    write("gold.csv", "id,gold,topics\na,A1,t\n")
    with pytest.raises(BadInput, match=r"gold.csv has no column 'topic'. Did you mean 'topics'"):
        clean("gold.csv", test_case="topic")


@pytest.mark.parametrize(
    ("data", "named", "problem"),
    [
        ("id,x,y\na,A1,1\n", {"id": "id"}, r"Which column of g.csv has the gold label\? .*--value"),
        ("id,gold,label\na,A1,1\n", {}, r"Which column of g.csv has the gold label\?"),
        ("id,topic,query,gold\na,t,q,A1\n", {}, r"Which column of g.csv has the test case\?"),
        ("id,gold\na,A1\n", {"id": "ident"}, "g.csv has no column 'ident'"),
        ("id,gold,id\na,A1,b\n", {"id": "id"}, "g.csv has two columns named 'id'"),
        ("a b c\nd e f\n", {}, "g.csv has no header that is known, and no line of two .* 'a b c'"),
        (f'a,"{"x" * 200_000}\n', {}, "g.csv has no header that is known"),
        ("", {}, "g.csv is empty"),
        ("\n\r\n\n", {}, "g.csv is empty"),
        ("a\0b", {}, "g.csv is a binary file"),
        (b"\x1f\x8bxx", {}, "g.csv cannot be unpacked"),
        (b"\x28\xb5\x2f\xfdxx", {}, "g.csv is packed with zstd"),
        ("a,A1\n", {"encoding": "klingon"}, "There is no encoding 'klingon'"),
    ],
)
def test_gold_that_cannot_be_read(data, named, problem):
    write("g.csv", data)
    tsv("run.tsv", *RUN)
    with pytest.raises(BadInput, match=problem):
        lenient("g.csv", "run.tsv", **named)


def test_files_that_are_not_there():
    tsv("gold.tsv", *GOLD)
    Path("empty").mkdir()
    tsv("own/gold.tsv", *GOLD)
    with pytest.raises(BadInput, match=r"There is no file 'glod.tsv'\. Did you mean 'gold.tsv'"):
        clean("glod.tsv")
    with pytest.raises(BadInput, match="There are no runs in empty"):
        read_campaign("gold.tsv", ["empty"])
    with pytest.raises(BadInput, match="There are no runs in own: it has no files besides gold"):
        read_campaign("own/gold.tsv", ["own"])
    with pytest.raises(BadInput, match=r"There are no runs. Name their files"):
        read_campaign("gold.tsv", [])
    with pytest.raises(BadInput, match="own is a folder"):
        read_campaign("own", ["gold.tsv"])


def test_the_scale_is_that_of_gold_whatever_runs_answer():
    tsv("gold.tsv", *GOLD)
    tsv("run.tsv", *RUN[1:], "t2 b yes", "t2 b no", "t2 b maybe")
    assert kinds(lenient("gold.tsv", "run.tsv", scale=None), "run.tsv") == {
        IrregularityKind.OFF_SCALE: (3, 4, "t2\\tb\\tyes")
    }
    tsv("gold.tsv", "t1 a yes", "t1 b no")
    with pytest.raises(BadScale, match="No scale was declared for the labels no, yes"):
        lenient("gold.tsv", "run.tsv", scale=None)


def test_gold_without_items():
    write("gold.csv", "id,gold\n")
    tsv("run.tsv", *RUN)
    with pytest.raises(NoItems, match=r"gold.csv has no item with a label on the scale"):
        lenient("gold.csv", "run.tsv")
    tsv("gold.tsv", "t1 a -")
    with pytest.raises(NoItems, match=r"gold.tsv has no item with a label on the scale"):
        lenient("gold.tsv", "run.tsv")
    with pytest.raises(BadInput, match=r"empty value \(1: gold.tsv:1 't1\\ta\\t'\)"):
        read_campaign("gold.tsv", ["run.tsv"], scale=SCALE)


def test_a_run_that_answers_nothing():
    tsv("gold.tsv", *GOLD)
    tsv("run.tsv", "t7 a A1")
    tsv("off.tsv", "t1 a X")
    with pytest.raises(MissingLabels, match="run predicts none of the 4 items: none of its ids"):
        lenient("gold.tsv", "run.tsv")
    with pytest.raises(
        MissingLabels, match=r"off predicts none of the 4 items. Leave this run out"
    ):
        lenient("gold.tsv", "off.tsv")
    assert lenient("gold.tsv", "run.tsv", missing="worst").panel.n == 4


def test_missing_answers_follow_the_policy_that_was_asked_for():
    tsv("gold.tsv", *GOLD)
    tsv("run.tsv", *RUN[1:])
    assert lenient("gold.tsv", "run.tsv").panel.dropped == 1
    worst = lenient("gold.tsv", "run.tsv", missing="worst").panel
    assert worst.dropped == 0
    assert worst.table("run").unanswered.sum() == 1
    with pytest.raises(MissingLabels, match=r"1 of 4 predictions of run are missing \(t2 b\)"):
        lenient("gold.tsv", "run.tsv", missing="error")
    with pytest.raises(BadOption, match="missing='none' is not one of"):
        lenient("gold.tsv", "run.tsv", missing="none")


def test_items_whose_gold_label_is_bad_are_known_and_left_out():
    tsv("gold.tsv", *GOLD, "t3 a -", "t3 b X")
    tsv("run.tsv", *RUN, "t3 a A1")
    campaign = lenient("gold.tsv", "run.tsv", missing="worst")
    assert campaign.panel == PANEL
    assert kinds(campaign, "run.tsv") == {}
    assert set(kinds(campaign, "gold.tsv")) == {IrregularityKind.VALUE, IrregularityKind.OFF_SCALE}


@pytest.mark.parametrize("name", ["it's.tsv", 'a"b.tsv', "a[1].tsv", "-x.tsv", "a;b.tsv"])
def test_names_of_files_are_only_names(name):
    tsv("gold.tsv", *GOLD)
    tsv(f"runs/{name}", *RUN)
    assert read_campaign("gold.tsv", ["runs"]).panel.systems == (name[:-4],)


def test_texts_are_only_texts():
    evil = "'); DROP TABLE known; --"
    write("gold.tsv", f"{evil}\t{evil}\tA1\nt\tb\tB1\n")
    write("run.tsv", f"{evil}\t{evil}\tA1\nt\tb\t{evil}\n")
    campaign = lenient("gold.tsv", "run.tsv")
    assert campaign.panel.group_values == (evil,)
    assert campaign.panel.dropped == 1
