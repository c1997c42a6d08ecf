"""Bad input: exit code 2, one helpful line on standard error, and nothing written."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from evaluate_reports import write
from refusals import PAIRS, refused

# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["gold", "predicted"])
def test_an_unknown_label_is_named_with_its_row(here, column):
    rows = [["A1", "A1"]] * 16 + [["A1", "A1"], ["B1", "B1"]]
    rows[16] = ["B3", "A1"] if column == "gold" else ["A1", "B3"]
    write("some.csv", "gold,predicted\n" + "".join(f"{g},{p}\n" for g, p in rows))
    message = refused(here, "some.csv", "--scale", "cefr")
    assert "'B3' (row 17 of column" in message
    assert repr(column) in message
    assert "A1 < A2 < B1 < B2 < C1 < C2" in message
    assert "--map" in message
    assert "--scale" in message


def test_an_unknown_label_of_a_later_file_names_that_file_and_its_row(here):
    write("a.csv", PAIRS)
    write("b.csv", "gold,predicted\nA1,A1\nA1,B7\n")
    message = refused(here, "a.csv", "b.csv", "--scale", "cefr")
    assert "'B7'" in message
    assert "row 2 of b.csv" in message


def test_an_unknown_label_of_a_join_is_named_with_its_id(here):
    write("gold.csv", "id,gold\ne1,A1\ne2,B1\n")
    write("run.csv", "id,predicted\ne2,B7\ne1,A1\n")
    message = refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id", "--scale", "cefr")
    assert "'B7'" in message
    assert "id e2" in message


@pytest.mark.parametrize(
    "label", ["NA", "a1", " A1", "A1 ", "NaN", "A1\n", "\x1b[31mA1", "'", "\u202eA1"]
)
def test_a_label_is_unknown_unless_it_is_on_the_scale_to_the_letter(here, label):
    write("some.csv", f'gold,predicted\nA1,A1\nA1,"{label}"\n')
    message = refused(here, "some.csv", "--scale", "cefr")
    assert "row 2" in message
    assert repr(label) in message


@pytest.mark.parametrize(
    ("n", "places"), [(1, "row 2"), (7, "row 2, row 3, row 4, row 5, row 6, …")]
)
@pytest.mark.parametrize("column", ["gold", "predicted"])
def test_missing_labels_are_counted_and_placed(here, column, n, places):
    line = ",A1\n" if column == "gold" else "A1,\n"
    write("some.csv", "gold,predicted\nA1,A1\n" + line * n + "A1,A2\n")
    message = refused(here, "some.csv")
    assert f"{n} of {n + 2} " in message
    assert f"({places})" in message
    assert "--missing drop" in message
    assert ("--missing worst" in message) == (column == "predicted")


def test_missing_predictions_of_a_join_are_named_by_id(here):
    write("gold.csv", "id,gold\n1,A1\n2,B1\n3,C1\n")
    write("run.csv", "id,predicted\n3,C1\n2,\n")
    message = refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id")
    assert "2 of 3 predictions are missing (id 1, id 2)" in message


def test_a_label_that_is_renamed_to_nothing_is_missing_at_its_row(here):
    write("some.csv", "gold,predicted\nA1,A1\nB1,unsure\n")
    write("map.csv", "from,to\nunsure,\n")
    message = refused(here, "some.csv", "--map", "map.csv")
    assert "1 of 2 predictions are missing (row 2)" in message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("map.json", '{"unsure": "A1", "unsure": "B1"}', "one label in two ways: 'unsure'"),
        ("map.csv", "from,to\nunsure,A1\nunsure,B1\n", "one label in two ways: 'unsure'"),
        ("map.json", "{}", "map.json renames no label"),
        ("map.csv", "from,to\n", "map.csv renames no label"),
        ("map.json", '{"unsure": {"A1": 1}}', "renames 'unsure' to something that is no label"),
    ],
)
def test_a_map_that_says_two_things_or_nothing_is_refused(here, name, text, message):
    write("some.csv", "gold,predicted\nA1,A1\nB1,unsure\n")
    write(name, text)
    assert message in refused(here, "some.csv", "--map", name)


@pytest.mark.parametrize(
    ("labels", "proposed"),
    [
        ("1 2 5 6", "--scale 1..6"),
        ("low mid high", "--scale high,low,mid"),
    ],
)
def test_the_error_of_a_missing_scale_proposes_one(here, labels, proposed):
    write("some.csv", "gold,predicted\n" + "".join(f"{x},{x}\n" for x in labels.split()))
    assert proposed in refused(here, "some.csv")


@pytest.mark.usefixtures("here")
def test_a_scale_that_is_too_fine_is_said_to_be():
    write("some.csv", "gold,predicted\n10,20\n30,30\n80,90\n")
    asked = ("evaluate", "some.csv", "--metrics", "mae", "--scale")
    assert "too fine" in run(*asked, "1..100").out
    assert "too fine" not in run(*asked, "10,20,30,80,90").out


def test_gold_that_is_missing_cannot_be_counted_as_wrong(here):
    write("some.csv", "gold,predicted\nA1,A1\n,A1\n")
    message = refused(here, "some.csv", "--missing", "worst")
    assert "1 of 2 gold labels are missing (row 2)" in message


def test_there_must_be_something_left_to_evaluate(here):
    write("some.csv", "gold,predicted\n,A1\nA1,\n")
    assert "no items" in refused(here, "some.csv", "--missing", "drop", "--scale", "cefr")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("1,2", "--scale"),  # numbers identify no scale
        ("low,high", "--scale"),
        ("neutral,neutral", "more than one preset"),
        ("A1,low", "--scale"),
    ],
)
def test_labels_without_a_scale_are_refused(here, labels, said):
    assert said in refused(here, write("some.csv", f"gold,predicted\n{labels}\n"))


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ("A1", "two"),
        ("1..1", "two"),
        ("", "scale"),
        (",", "label"),
        ("A1,A1", "twice"),
        ("A1,,A2", "missing"),
        ("cerf", "'cefr'"),
        ("1..", "1..6"),
        ("1..1000000000", "More than 300"),
    ],
)
def test_what_is_no_scale_is_refused(here, scale, said):
    assert said in refused(here, write("some.csv", PAIRS), "--scale", scale)


# --- metrics and limits --------------------------------------------------------------------------

METRICS = {
    "acuracy": "'accuracy'",
    "kapa": "kappa",
    "cem-ord": "not a metric|cem_ord",
    "xyz": "ordinate metrics",
    "accuracy(": "not a metric",
    "accuracy)": "not a metric",
    "accuracy(n=1)": "no option 'n'",
    "accuracy_within(m=1)": "options are: n",
    "accuracy_within(n=-1)": "n=-1",
    "accuracy_within(n=1.5)": "n=1.5",
    "accuracy_within(n='a')": "n='a'",
    "accuracy_within(n=True)": "n=True",
    "accuracy_within(2)": "not a metric",
    "weighted_kappa(power=1e999)": "power=inf",
    "weighted_kappa(power=nan)": "power|not a metric",
    "weighted_kappa(power=)": "not a metric",
    "weighted_kappa(power=1,power=2)": "power",
    "weighted_kappa(**{'power': 1})": "not a metric|option",
    "rennie_srebro(penalty='none')": "'hinge', 'logistic', 'zero_one'",
    "rennie_srebro(penalty=[])": "penalty",
    "__import__('os').getcwd()": "not a metric",
    "accuracy.function": "not a metric",
    "all,accuracy": "'all'",
    "": "metric",
    ",": "metric",
}


@pytest.mark.parametrize("metrics", METRICS)
def test_what_is_no_metric_is_refused(here, metrics):
    message = refused(here, write("some.csv", PAIRS), "--metrics", metrics)
    assert re.search(METRICS[metrics], message), message


LIMITS = {
    "accuracy": "METRIC=VALUE",
    "accuracy=": "METRIC=VALUE",
    "=0.5": "METRIC=VALUE",
    "accuracy=much": "METRIC=VALUE",
    "accuracy=nan": "METRIC=VALUE",
    "accuracy=0,5": "METRIC=VALUE",
    "accuracy>0.5": "METRIC=VALUE",
    "weighted_kappa(power=1)": "METRIC=VALUE",
    "acuracy=0.5": "'accuracy'",
    "accuracy(n=1)=0.5": "no option 'n'",
    "": "METRIC=VALUE",
}


@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_no_limit_is_refused(here, limit):
    message = refused(here, write("some.csv", PAIRS), "--fail-under", limit)
    assert LIMITS[limit] in message


def test_a_bad_limit_is_refused_even_beside_one_that_fails(here):
    write("some.csv", PAIRS)
    refused(here, "some.csv", "--fail-under", "accuracy=1", "--fail-under", "accuracy=x")


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weight",
    [
        "-1",
        "-0.5",
        "x",
        "",
        "inf",
        "-inf",
        "nan",
        "1e999",
        "1e80",
        "1e-320",
        "1,5",
        "0x10",
        "\x1b[1m",
        "a\nb",
    ],
)
def test_a_bad_weight_is_named_with_its_row(here, weight):
    write("some.csv", f'gold,predicted,w\nA1,A1,1\nB1,B2,"{weight}"\n')
    message = refused(here, "some.csv", "--weights", "w")
    assert "row 2 of column 'w'" in message
    assert weight in message or not weight.isprintable()


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), None])
def test_a_bad_weight_of_a_parquet_file_is_named_with_its_row(here, weight):
    columns = {"gold": ["A1", "B1"], "predicted": ["A1", "B1"], "w": [1.0, weight]}
    pq.write_table(pa.table(columns), "some.parquet")
    assert "row 2 of column 'w'" in refused(here, "some.parquet", "--weights", "w")


def test_a_missing_weight_of_a_join_is_named_by_id(here):
    write("gold.csv", "id,gold,w\n1,A1,1\n2,B1,\n")
    write("run.csv", "id,predicted\n2,B1\n1,A1\n")
    asked = ("--gold-file", "gold.csv", "--id", "id", "--weights", "w")
    assert "id 2 of column 'w'" in refused(here, "run.csv", *asked)


def test_weights_that_are_all_0_leave_nothing_to_evaluate(here):
    write("some.csv", "gold,predicted,w\nA1,A1,0\nB1,B2,0\n")
    message = refused(here, "some.csv", "--weights", "w")
    assert "weight" in message


def test_weights_whose_sum_is_no_number_are_refused(here):
    write("some.csv", "gold,predicted,w\nA1,A1,1e308\nA1,A1,1e308\n")
    assert "weight" in refused(here, "some.csv", "--weights", "w")


# --- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-o", "--output", "--items"])
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("absent/out.csv", "absent/out.csv"),
        ("kept.csv", "--force"),
        ("folder", "folder"),
        ("some.csv/out.csv", "some.csv/out.csv"),
        ("x" * 300, "xxx"),
        ("", "-o|--output|--items|name|file"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(here, flag, path, said):
    write("some.csv", PAIRS)
    write("kept.csv", "kept")
    Path("folder").mkdir()
    message = refused(here, "some.csv", flag, path, outputs=False)
    assert re.search(said, message)


def test_a_folder_is_no_output_even_with_force(here):
    write("some.csv", PAIRS)
    Path("folder").mkdir()
    for flag in ("-o", "--items"):
        assert "folder" in refused(here, "some.csv", flag, "folder", "--force", outputs=False)


# --- the command itself --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["some.csv", "--missing", "ignore"],
        ["some.csv", "--format", "xml"],
        ["some.csv", "--gold"],
        ["some.csv", "--unknown"],
        ["some.csv", "--met", "all"],  # no abbreviations: they break when options are added
    ],
)
def test_a_command_that_cannot_be_understood_is_one_line_that_says_where_to_read(here, arguments):
    write("some.csv", PAIRS)
    assert "--help" in refused(here, *arguments, outputs=False)


@pytest.mark.parametrize(
    "name", ["new\nline.csv", "\x1b[31mred.csv", "bell\x07.csv", "\u202egnp.csv"]
)
def test_no_file_name_can_drive_the_terminal(here, name):
    refused(here, write(name, ""))
    refused(here, write(name, "gold,predicted\nA1\n"))
    refused(here, write(name, "gold,predicted\n"))
    refused(here, name + "?absent")
    refused(here, write("some.csv", PAIRS), "--map", name, outputs=False)
    refused(here, "some.csv", "-o", name, outputs=False)
    refused(here, "some.csv", "-o", f"absent {name}/x", outputs=False)


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31mred", "x\x07", "\u202ex"])
def test_no_cell_can_drive_the_terminal(here, text):
    refused(here, write("some.csv", f'gold,predicted\n"{text}",A1\n'))
    refused(here, write("some.csv", f'gold,"{text}"\nA1,A1\n'))
    refused(here, write("some.csv", f'gold,predicted\nA1,"{text}",A1\n'))
    refused(here, write("some.csv", f'gold,predicted,w\nA1,A1,"{text}"\n'), "--weights", "w")
    refused(here, write("some.csv", PAIRS), "--scale", f'"{text}",b')
    write("gold.csv", f'id,gold\n"{text}",A1\n"{text}",A1\n')
    write("run.csv", f'id,predicted\n"{text}",A1\n')
    refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id")
    write("gold.csv", f'id,gold\n"{text}",\n')
    refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id", "--scale", "cefr")


def test_a_long_line_is_not_repeated_in_the_message(here):
    refused(here, write("some.csv", "gold,predicted,text\nA1,A1," + "word " * 20_000 + ",x\n"))


def test_a_long_label_is_not_repeated_in_the_message(here):
    refused(here, write("some.csv", "gold,predicted\nA1," + "word " * 20_000 + "\n"))
    refused(here, "some.csv", "--scale", "cefr")


def test_many_columns_are_not_all_listed(here):
    names = [f"a_rather_long_name_of_a_column_{k}" for k in range(500)]
    write("some.csv", ",".join(names) + "\n" + ",".join("x" * 500) + "\n")
    refused(here, "some.csv")


def test_a_refusal_leaves_no_temporary_copies(here):
    write("some[1].csv", "gold,predicted\nA1,ZZ\n", "utf-16")
    refused(here, "some[1].csv", "--scale", "cefr")
    assert not list((here.parent / "temporary").iterdir())
