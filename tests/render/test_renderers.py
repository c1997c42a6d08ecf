"""Reports: no text of the data is markup, undefined has its reason, baselines are what they say."""

import contextlib
import csv
import datetime as dt
import functools
import html
import io
import itertools
import json
import math
import re
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
from each_case import each_case
from hostile_texts import EXACT_TEXTS, HOSTILE_TEXTS, is_harmless
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from rendered_reports import GOLD, PREDICTED, drop_code, words
from strategies import items_of, tables

import ordinate
from ordinate.cli.main import main
from ordinate.render import RENDERERS, find_terminal_width, render
from ordinate.render.document import format_cell
from ordinate.render.markup import escape_latex
from ordinate.render.records import render_csv
from ordinate.results import Evaluation, Origin
from ordinate.summaries import ConfusionMatrix

# --- nothing in the data is markup ----------------------------------------------------------------


NASTY = [
    *HOSTILE_TEXTS,
    "<img src=x onerror=alert(1)>",
    '"><b>',
    "&lt;&amp;",
    r"100% $x_1^2$ #1 {a}~&",
    "a|b",
    "a\\|b",
    "*bold* _it_ `code` [link](x) ~~gone~~",
    "![i](x)",
    "=cmd()",
    "+1+cmd()",
    "-1+cmd()",
    "@sum(1)",
    "\t=1",
    "\x9b31m",
    "bell\x07",
    "new\nline",
    "carriage\rreturn",
    "\u2028separator",
    "[1]",
    "*",
    "**",
    "# head",
    "---",
    'quote "x" and, comma',
]


@functools.cache
def _from_labels(text: str) -> Evaluation:
    return ordinate.evaluate(["plain", text], [text, text], scale=["plain", text])


@functools.cache
def _from_groups(text: str) -> Evaluation:
    return ordinate.evaluate(["A1", "B1"], ["A1", "B2"], scale="cefr", by=[text, "plain"])


@functools.cache
def _from_columns(text: str) -> Evaluation:
    table = ConfusionMatrix.of(["A1", "B1"], ["A1", "B2"], "cefr")
    origin = Origin(text, text, (text,), None, (text,))
    return Evaluation.from_summary(table, origin=origin)


PLACES = {"labels": _from_labels, "groups": _from_groups, "columns": _from_columns}
everywhere = pytest.mark.parametrize("place", PLACES)
every_text = each_case("nasty", NASTY)


SCROLLED = ("class", "tabindex")  # the attributes of a very long text


class _Tags(HTMLParser):
    """Collects the tags with the names of their attributes, and the texts."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple]] = []
        self.texts: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@functools.cache
def _parse_html(place: str, text: str, form: str) -> _Tags:
    write = Evaluation._repr_html_ if form == "piece" else RENDERERS["html"]
    return _Tags(write(PLACES[place](text)))


@pytest.mark.parametrize(
    ("place", "form"), [("labels", "piece"), *((place, "page") for place in PLACES)]
)
@every_text
def test_html_holds_the_text_and_no_tag_of_it(place, nasty, form):
    parsed, tame = _parse_html(place, nasty, form), _parse_html(place, "tame", form)
    allowed = {("text", ("x", "y", "text-anchor", "transform"))}
    allowed |= {(tag, SCROLLED) for tag, _ in [*tame.tags, ("span", ())]}
    assert set(parsed.tags) <= set(tame.tags) | allowed
    counts, expected = (Counter(tag for tag, _ in x.tags) for x in (parsed, tame))
    axes = {"text", "path", "span"}  # ticks depend on how long names are; long ones are scrolled
    assert {k: n for k, n in counts.items() if k not in axes} == {
        k: n for k, n in expected.items() if k not in axes
    }
    visible = " ".join(filter(is_harmless, nasty.split()))
    assert visible in " ".join("".join(parsed.texts).split())


def _unescaped(mark: str, line: str) -> int:
    """Count the places where a mark stands without a backslash that escapes it."""
    return len(re.findall(rf"(?<!\\)(?:\\\\)*{re.escape(mark)}", line))


@everywhere
@every_text
def test_latex_has_no_command_of_the_data(place, nasty):
    source = render(PLACES[place](nasty), "latex")
    tame = render(PLACES[place]("tame"), "latex")
    body, expected = source.splitlines()[1:], tame.splitlines()[1:]  # the first is a comment
    assert source.splitlines()[0].startswith("% ")
    assert len(body) == len(expected)
    for line, plain in zip(body, expected, strict=True):
        assert _unescaped("&", line) == _unescaped("&", plain)
        assert not _unescaped("%", line)
        assert not _unescaped("#", line)
        assert not _unescaped("$", line)
        assert not _unescaped("_", line)
        allowed = r"text(backslash|ascii\w+|less|greater|bar|quote\w+)|[&%$#_{}\\]"
        structure = r"(begin|end|caption|centering|toprule|midrule|bottomrule)"
        for command in re.findall(r"\\([a-zA-Z]+|.)", line):
            assert re.fullmatch(f"{allowed}|{structure}", command), line
        assert re.findall(rf"\\{structure}", line) == re.findall(rf"\\{structure}", plain)


def test_letters_that_latex_knows_in_math_alone_stand_there():
    found = escape_latex("RMSE/σ ≤ 5 kg/m³, s⁻¹, CO₂, 3 °C")
    assert found.isascii()
    assert r"RMSE/\ensuremath{\sigma} \ensuremath{\le} 5 kg/m\ensuremath{^{3}}" in found
    assert r"s\ensuremath{^{-}}\ensuremath{^{1}}, CO\ensuremath{_{2}}" in found


def test_csv_gives_back_every_text_as_it_was():
    text = render_csv([{"id": x, x: 1} for x in EXACT_TEXTS[:1]])
    assert text == "id,@user1\n@user1,1\n"
    rows = csv.DictReader(io.StringIO(render_csv([{"id": x} for x in EXACT_TEXTS])))
    assert [row["id"] for row in rows] == EXACT_TEXTS


def test_no_records_are_the_header_alone():
    assert render_csv([], ["row", "prediction"]) == "row,prediction\n"
    assert not render_csv([])


@pytest.mark.parametrize("start", ["[1]", "[", "*", "**", "*a"])
@pytest.mark.parametrize("place", PLACES)
def test_no_row_of_latex_begins_with_what_the_line_before_takes_for_its_argument(place, start):
    lines = render(PLACES[place](start), "latex").splitlines()
    after = [b for a, b in itertools.pairwise(lines) if a.endswith((r"\\", "rule"))]
    assert len(after) > 9
    assert not [line for line in after if line.startswith(("[", "*"))]


@everywhere
@every_text
def test_markdown_has_no_markup_of_the_data(place, nasty):
    source = render(PLACES[place](nasty), "markdown")
    tame = render(PLACES[place]("tame"), "markdown")
    assert len(source.splitlines()) == len(tame.splitlines())
    for line, plain in zip(source.splitlines(), tame.splitlines(), strict=True):
        for mark in "|`[]_<":
            assert _unescaped(mark, line) == _unescaped(mark, plain), line
        assert _unescaped("**", line) == _unescaped("**", plain), line
        assert not re.match(r"(#|---|\+ |- |> )", line) or line.startswith("# ")
    assert not re.search(r"&(?!amp;|lt;|gt;|#\d+;)", source)


@everywhere
@every_text
def test_csv_keeps_its_shape_whatever_the_data_are(place, nasty):
    rows = list(csv.reader(io.StringIO(render(PLACES[place](nasty), "csv"), newline="")))
    tame = list(csv.reader(io.StringIO(render(PLACES[place]("tame"), "csv"), newline="")))
    assert [len(row) for row in rows] == [len(row) for row in tame]


def test_a_number_below_0_stays_a_number_in_csv():
    result = ordinate.evaluate(["B1"], ["A1"], "cefr", "bias")
    (row,) = csv.DictReader(io.StringIO(render(result, "csv")))
    assert float(row["value"]) == -2


@everywhere
@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
@every_text
def test_what_people_read_on_a_terminal_cannot_drive_it(place, nasty, form):
    source = render(PLACES[place](nasty), form)
    assert is_harmless(source.replace("\n", ""))


@everywhere
@every_text
def test_a_text_report_keeps_its_shape(place, nasty):
    if place == "columns":  # sentences, which are wrapped
        return
    result, tame = render(PLACES[place](nasty)), render(PLACES[place]("x" * len(nasty)))
    grids = [part.split("\n") for part in result.split("\n\n") if "-----" in part]
    expected = [part.split("\n") for part in tame.split("\n\n") if "-----" in part]
    assert [len(grid) for grid in grids] == [len(grid) for grid in expected]


@everywhere
@every_text
def test_json_keeps_every_letter(place, nasty):
    found = json.loads(render(PLACES[place](nasty), "json"))
    kept = {
        "labels": lambda: found["scale"],
        "groups": lambda: list(found["by"]),
        "columns": lambda: [found["source"]["gold"]],
    }
    assert nasty in kept[place]()


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
@pytest.mark.parametrize("nasty", ["<script>x</script>", r"\input{x}", "\x1b[31m", "a|b", "=x()"])
def test_names_from_a_file_are_as_harmless_as_names_from_python(tmp_path, form, nasty):
    path = tmp_path / "some.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = [[nasty, "answer", f"{nasty} by"], ["low", nasty, nasty], [nasty, nasty, "x"]]
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    out = io.StringIO()
    asked = ["--gold", nasty, "--predicted", "answer", "--by", f"{nasty} by"]
    asked += ["--scale", f'low,"{nasty}"', "--format", form]
    with contextlib.redirect_stdout(out):
        assert main(["evaluate", str(path), *asked]) == 0
    lines = out.getvalue().splitlines()
    shown_part = "\n".join(lines[1:] if form == "latex" else lines)  # its first is a comment
    if form in {"markdown", "html"}:
        assert "<script" not in shown_part
    if form == "latex":
        assert r"\input" not in shown_part
    if form in {"text", "markdown", "latex"}:
        assert "\x1b" not in out.getvalue()


def test_wide_letters_keep_columns_in_line():
    labels = ["低", "中位", "e\u0301"]  # two columns for each of the first, one for the last
    report = render(ordinate.evaluate(labels, labels, scale=labels))
    grid = report.split("Levels\n")[1].split("\n\n")[0]
    rows = [line for line in grid.splitlines() if line.startswith(tuple(labels))]
    ends = [
        len(row) + sum("\u4e00" <= x <= "\u9fff" for x in row) - ("\u0301" in row) for row in rows
    ]
    assert len(rows) == 3
    assert len(set(ends)) == 1


# --- what an evaluation says of itself ------------------------------------------------------------


def test_an_evaluation_is_shown_as_its_text_report():
    result = ordinate.evaluate(GOLD, PREDICTED, "cefr")
    assert str(result) == render(result, width=find_terminal_width())
    assert str(result).startswith("6 items on A1 < A2 < B1 < B2 < C1 < C2\n")
    for name in result.metrics:
        assert re.search(rf"^{name} ", str(result), re.MULTILINE)


def test_a_notebook_gets_the_same_words_as_the_terminal():
    result = ordinate.evaluate(GOLD, PREDICTED, "cefr", by=list("xyxyxy"))
    text = html.unescape(re.sub(r"<[^>]*>", " ", result._repr_html_()))
    missing = set(re.findall(r"[\w.%]+", str(result))) - set(re.findall(r"[\w.%]+", text))
    assert not missing


def test_every_form_can_be_rendered():
    result = ordinate.evaluate(GOLD, PREDICTED, "cefr", by=list("xyxyxy"))
    assert {form: bool(render(result, form)) for form in RENDERERS} == dict.fromkeys(
        RENDERERS, True
    )


@pytest.mark.parametrize("metrics", [None, "all", "mae", ["accuracy", "weighted_kappa(power=1)"]])
@pytest.mark.parametrize("groups", [None, list("xyzxyz"), [1, None, 2.5, 1, True, "x"]])
def test_there_is_one_record_for_each_metric_and_group(metrics, groups):
    result = ordinate.evaluate(GOLD, PREDICTED, "cefr", metrics, by=groups)
    rows = result.rows()
    assert len(rows) == len(result.metrics) * (1 + len(result.by))
    assert len({(row["group"], row["metric"]) for row in rows}) == len(rows)
    assert all(row.keys() == rows[0].keys() for row in rows)


KINDS = {
    "texts": ["low", "high"],
    "numbers": [1, 2.5],
    "numpy": [np.int64(1), np.float64(2.5)],
    "booleans": [False, True],
    "dates": [dt.date(2020, 1, 1), dt.date(2021, 1, 1)],
    "tuples": [(1, 2), (3, 4)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_plain_values_are_strict_json_for_labels_and_groups_of_every_kind(kind):
    labels = KINDS[kind]
    result = ordinate.evaluate(labels, labels[::-1], labels, "all", by=labels)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))


@given(table=tables(), data=st.data())
@examples(40)
def test_plain_values_are_strict_json_for_every_table(table, data):
    labels = table.scale.labels
    gold, predicted = ([labels[k] for k in codes] for codes in items_of(table))
    groups = data.draw(st.lists(st.sampled_from("xy"), min_size=len(gold), max_size=len(gold)))
    result = ordinate.evaluate(gold, predicted, table.scale, "all", by=groups)
    found = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (found["schema"], found["task"]) == (1, "labels")
    assert found["confusion_matrix"] == table.counts.tolist()
    assert found["by"].keys() == set(groups)


@given(table=tables())
@examples(40)
def test_undefined_has_its_reason_in_every_form(table):
    result = Evaluation.from_summary(table, "all")
    text, found, rows = words(result), result.to_dict(), result.rows()
    for row in rows:
        score, plain = result.metrics[row["metric"]], found["metrics"][row["metric"]]
        undefined = math.isnan(score.value)
        assert (plain["value"] is None) == undefined == bool(plain["undefined"])
        assert (row["undefined"] is not None) == undefined
        said = f" {row['metric']} is undefined: {score.undefined}."
        assert (said in text) == undefined
        line = next(x for x in render(result).splitlines() if x.startswith(f"{row['metric']} "))
        assert (line.split()[2 if "near 0" not in line else 3] == "undefined") == undefined
        for name in ("best_constant", "majority", "chance"):
            point = plain["baselines"][name]
            assert (point["value"] is None) == bool(point["undefined"])


@pytest.mark.parametrize("cell", [-0.0, -1e-17, -0.0004999])
def test_no_zero_has_a_sign(cell):
    assert format_cell(cell) == "0.000"


@given(table=tables())
@examples(40)
def test_no_report_shows_a_negative_zero(table):
    result = Evaluation.from_summary(table, "all")
    for form in ("text", "markdown", "latex", "html"):
        assert not re.search(r"-0\.0+(?!\d)", drop_code(render(result, form)))


def test_a_confusion_table_has_gold_in_rows_and_its_totals():
    result = ordinate.evaluate(["low", "low", "high"], ["low", "high", "high"], "low,high")
    lines = str(result).split("Confusion matrix\n")[1].splitlines()
    assert lines[1].split() == ["gold", "\\", "predicted", "low", "high", "total"]
    assert [line.split() for line in lines[3:6]] == [
        ["low", "1", "1", "2"],
        ["high", "0", "1", "1"],
        ["total", "1", "2", "3"],
    ]


def test_items_without_a_prediction_have_their_own_column():
    result = ordinate.evaluate(["low", "high"], ["low", None], "low,high", missing="worst")
    lines = str(result).split("Confusion matrix\n")[1].splitlines()
    assert lines[1].split()[3:] == ["low", "high", "no", "answer", "total"]
    assert lines[4].split() == ["high", "0", "0", "1", "1"]


def test_weights_are_said_where_they_differ_from_the_number_of_items():
    weighted = ordinate.evaluate(GOLD, PREDICTED, "cefr", weights=[0.5] * 6)
    assert str(weighted).startswith("6 items of weight 3")
    assert "weight" not in str(ordinate.evaluate(GOLD, PREDICTED, "cefr"))
