"""Irregular lines: what is counted and left out is what plain Python counts and leaves out."""

import re
from collections import Counter
from pathlib import Path

import pytest
from campaigns import (
    CEFR,
    GOLD,
    PANEL,
    RUN,
    SCALE,
    check,
    clean,
    expected,
    kinds,
    lenient,
    messy,
    text_of,
    tsv,
    write,
)

from ordinate.errors import BadInput
from ordinate.meta.campaign import read_campaign
from ordinate.meta.campaign_lines import build_line_check_sql
from ordinate.readers import irregular_lines as lines
from ordinate.readers.duckdb_connection import connect
from ordinate.readers.irregular_lines import IrregularityKind
from ordinate.summaries import Panel

pytestmark = pytest.mark.usefixtures("own_folder")


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
    assert campaign.panel.dropped == 100_000 - campaign.match_counts["run"]["predicted"] > 0


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
    with pytest.raises(
        BadInput, match=r"wrong number of columns \(\d+ in 2 files, first: gold.tsv:\d"
    ):
        read_campaign("gold.tsv", ["run.tsv"], scale=SCALE)


# --- one kind after the other --------------------------------------------------------------------


def test_a_stray_quote_costs_its_own_line():
    write("gold.csv", "id,text,value\na,x,A1\nb,y,B1\nc,z,C1\nd,v,C2\n")
    write("run.csv", 'id,text,value\na,x,A1\nb,"y,B1\nc,"z"s,C1\nd,v"v,C2\n')
    campaign = lenient("gold.csv", "run.csv")
    assert kinds(campaign, "run.csv") == {
        IrregularityKind.QUOTES: (2, 3, 'b,"y,B1'),
        IrregularityKind.MISSING: (2, None, "b"),
    }
    answers = {"run": ["A1", None, None, "C2"]}
    assert campaign.panel == Panel.of(["A1", "B1", "C1", "C2"], answers, SCALE, missing="drop")


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


def test_a_long_line_is_shortened_and_made_printable():
    tsv("gold.tsv", *GOLD)
    write("run.tsv", text_of(RUN) + "t1\t\x1b[31m" + "x" * 500 + "\tA1\n")
    ((_, _, example),) = kinds(lenient("gold.tsv", "run.tsv"), "run.tsv").values()
    assert example.startswith("t1\\t\ufffd[31mxxx")
    assert example.endswith("x…")
    assert len(example) == 60


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


def test_items_whose_gold_label_is_bad_are_known_and_left_out():
    tsv("gold.tsv", *GOLD, "t3 a -", "t3 b X")
    tsv("run.tsv", *RUN, "t3 a A1")
    campaign = lenient("gold.tsv", "run.tsv", missing="worst")
    assert campaign.panel == PANEL
    assert kinds(campaign, "run.tsv") == {}
    assert set(kinds(campaign, "gold.tsv")) == {IrregularityKind.VALUE, IrregularityKind.OFF_SCALE}
