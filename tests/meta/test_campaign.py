"""The reader of campaigns: formats, folders, columns, and the panel of gold and runs."""

import gzip
import re
from pathlib import Path

import pytest
from campaigns import GOLD, PANEL, RUN, SCALE, clean, kinds, lenient, text_of, tsv, write

from ordinate.errors import BadInput, BadOption, BadScale, MissingLabels, NoItems
from ordinate.meta.campaign import read_campaign
from ordinate.readers import irregular_lines as lines
from ordinate.readers.irregular_lines import IrregularityKind
from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import Panel

pytestmark = pytest.mark.usefixtures("own_folder")

# --- formats -------------------------------------------------------------------------------------


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
    assert campaign.match_counts == {
        "run": {"matched": 4, "predicted": 4, "missing": 0, "unknown": 0}
    }


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
    assert campaign.panel == Panel.of(["A1", "B1"], {"run": ["A1", "B2"]}, SCALE)
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
        ["A1", "B1"], {"run": ["A1", "B2"]}, SCALE, groups=factorize_column(["w1", "w2"])
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
    assert campaign.panel == Panel.of(["A1", "B1", "A2"], {"run": ["A1", "B1", "A2"]}, SCALE)
    assert kinds(campaign, "run.csv") == {IrregularityKind.UNKNOWN: (1, 8, 'z,"r s",A1')}


def test_a_quote_inside_a_column_is_a_letter():
    rows = 'id,text,value\na,5" wide,A1\n"b""c",x,B1\nd,6" wide,C1\n'
    write("gold.csv", rows)
    write("run.tsv", 'd\tC1\nb"c\tB1\na\tA1\n')
    campaign = clean("gold.csv", "run.tsv")
    assert campaign.panel.confusion_matrix("run").items.trace() == 3


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
    assert worst.confusion_matrix("run").unanswered.sum() == 1
    with pytest.raises(MissingLabels, match=r"1 of 4 predictions of run are missing \(t2 b\)"):
        lenient("gold.tsv", "run.tsv", missing="error")
    with pytest.raises(BadOption, match="missing='none' is not one of"):
        lenient("gold.tsv", "run.tsv", missing="none")


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
