"""Reports: no text of the data is markup, undefined has its reason, baselines are what they say."""

import contextlib
import csv
import datetime as dt
import html
import io
import itertools
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import METRICS, NAMES, items_of, same, scale_of, scales, tables

import ordinate
from ordinate.cli.main import main
from ordinate.errors import NotApplicable
from ordinate.render import RENDERERS, csv_records, latex, render
from ordinate.render.document import format_cell
from ordinate.results import Evaluation, Origin
from ordinate.summaries import ConfusionMatrix

FORMS = ("text", "json", "csv", "markdown", "latex", "html")


def rendered(result: Evaluation, form: str) -> str:
    return result._repr_html_() if form == "html" else render(result, form)


def words(result: Evaluation) -> str:
    """Return the text report, whatever its line breaks."""
    return " ".join(str(result).split())


# --- nothing in the data is markup ---------------------------------------------------------------

NASTY = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><b>',
    "&lt;&amp;",
    r"\input{x}",
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
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "bell\x07",
    "new\nline",
    "carriage\rreturn",
    "\u2028separator",
    "\u202eright to left",
    "[1]",
    "*",
    "**",
    "# head",
    "---",
    'quote "x" and, comma',
]


def _from_labels(text: str) -> Evaluation:
    return ordinate.evaluate(["plain", text], [text, text], scale=["plain", text])


def _from_groups(text: str) -> Evaluation:
    return ordinate.evaluate(["A1", "B1"], ["A1", "B2"], scale="cefr", by=[text, "plain"])


def _from_columns(text: str) -> Evaluation:
    table = ConfusionMatrix.of("cefr", ["A1", "B1"], ["A1", "B2"])
    origin = Origin(text, text, (text,), None, (text,))
    return Evaluation.from_summary(table, origin=origin)


PLACES = {"labels": _from_labels, "groups": _from_groups, "columns": _from_columns}
everywhere = pytest.mark.parametrize(
    ("place", "nasty"), [(place, nasty) for place in PLACES for nasty in NASTY]
)


class _Tags(HTMLParser):
    """Collects the tags with their attributes, and the texts."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple]] = []
        self.texts: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@everywhere
def test_html_holds_the_text_and_no_tag_of_it(place, nasty):
    parsed = _Tags(PLACES[place](nasty)._repr_html_())
    tame = _Tags(PLACES[place]("tame")._repr_html_())
    assert set(parsed.tags) <= set(tame.tags)
    assert len(parsed.tags) == len(tame.tags)
    visible = " ".join(filter(str.isprintable, nasty.split()))
    assert visible in " ".join("".join(parsed.texts).split())


def _unescaped(mark: str, line: str) -> int:
    """Count the places where a mark stands without a backslash that escapes it."""
    return len(re.findall(rf"(?<!\\)(?:\\\\)*{re.escape(mark)}", line))


@everywhere
def test_latex_has_no_command_of_the_data(place, nasty):
    source = rendered(PLACES[place](nasty), "latex")
    tame = rendered(PLACES[place]("tame"), "latex")
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
    found = latex.escape("RMSE/σ ≤ 5 kg/m³, s⁻¹, CO₂, 3 °C")
    assert found.isascii()
    assert r"RMSE/\ensuremath{\sigma} \ensuremath{\le} 5 kg/m\ensuremath{^{3}}" in found
    assert r"s\ensuremath{^{-}}\ensuremath{^{1}}, CO\ensuremath{_{2}}" in found


def test_no_records_are_the_header_alone():
    assert csv_records.render([], ["row", "prediction"]) == "row,prediction\n"
    assert not csv_records.render([])


@pytest.mark.parametrize("start", ["[1]", "[", "*", "**", "*a"])
@pytest.mark.parametrize("place", PLACES)
def test_no_row_of_latex_begins_with_what_the_line_before_takes_for_its_argument(place, start):
    lines = rendered(PLACES[place](start), "latex").splitlines()
    after = [b for a, b in itertools.pairwise(lines) if a.endswith((r"\\", "rule"))]
    assert len(after) > 9
    assert not [line for line in after if line.startswith(("[", "*"))]


@everywhere
def test_markdown_has_no_markup_of_the_data(place, nasty):
    source = rendered(PLACES[place](nasty), "markdown")
    tame = rendered(PLACES[place]("tame"), "markdown")
    assert len(source.splitlines()) == len(tame.splitlines())
    for line, plain in zip(source.splitlines(), tame.splitlines(), strict=True):
        for mark in "|`[]_<":
            assert _unescaped(mark, line) == _unescaped(mark, plain), line
        assert _unescaped("**", line) == _unescaped("**", plain), line
        assert not re.match(r"(#|---|\+ |- |> )", line) or line.startswith("# ")
    assert not re.search(r"&(?!amp;|lt;|gt;|#\d+;)", source)


@everywhere
def test_csv_keeps_its_shape_and_has_no_formula(place, nasty):
    rows = list(csv.reader(io.StringIO(rendered(PLACES[place](nasty), "csv"), newline="")))
    tame = list(csv.reader(io.StringIO(rendered(PLACES[place]("tame"), "csv"), newline="")))
    assert [len(row) for row in rows] == [len(row) for row in tame]
    for cell in itertools.chain(*rows):
        assert not re.match(r"[=@\t\r]", cell)
        if re.match(r"[+-]", cell):
            assert math.isfinite(float(cell))


def test_a_number_below_0_stays_a_number_in_csv():
    result = ordinate.evaluate(["B1"], ["A1"], "cefr", "bias")
    (row,) = csv.DictReader(io.StringIO(render(result, "csv")))
    assert float(row["value"]) == -2


@everywhere
@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_what_people_read_on_a_terminal_cannot_drive_it(place, nasty, form):
    source = rendered(PLACES[place](nasty), form)
    assert not [letter for letter in source if not letter.isprintable() and letter != "\n"]


@everywhere
def test_a_text_report_keeps_its_shape(place, nasty):
    if place == "columns":  # sentences, which are wrapped
        return
    result, tame = str(PLACES[place](nasty)), str(PLACES[place]("x" * len(nasty)))
    grids = [part.split("\n") for part in result.split("\n\n") if "-----" in part]
    expected = [part.split("\n") for part in tame.split("\n\n") if "-----" in part]
    assert [len(grid) for grid in grids] == [len(grid) for grid in expected]


@everywhere
def test_json_keeps_every_letter(place, nasty):
    found = json.loads(rendered(PLACES[place](nasty), "json"))
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
    if form == "csv":
        cells = itertools.chain(*csv.reader(io.StringIO(out.getvalue())))
        assert not [cell for cell in cells if cell.startswith("=")]


def test_wide_letters_keep_columns_in_line():
    labels = ["低", "中位", "e\u0301"]  # two columns for each of the first, one for the last
    grid = str(ordinate.evaluate(labels, labels, scale=labels)).split("Levels\n")[1]
    rows = [line for line in grid.splitlines() if line.startswith(tuple(labels))]
    ends = [
        len(row) + sum("\u4e00" <= x <= "\u9fff" for x in row) - ("\u0301" in row) for row in rows
    ]
    assert len(rows) == 3
    assert len(set(ends)) == 1


# --- what an evaluation says of itself -----------------------------------------------------------

GOLD = ["A1", "A2", "B1", "B1", "C2", "B2"]
PREDICTED = ["A2", "A2", "B1", "C1", "B2", "B2"]


def test_an_evaluation_is_shown_as_its_text_report():
    result = ordinate.evaluate(GOLD, PREDICTED, "cefr")
    assert str(result) == render(result) == render(result, "text")
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
@settings(max_examples=40)
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
@settings(max_examples=40)
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
        line = next(x for x in str(result).splitlines() if x.startswith(f"{row['metric']} "))
        assert (line.split()[2 if "near 0" not in line else 3] == "undefined") == undefined
        for name in ("best_constant", "majority", "chance"):
            point = plain["baselines"][name]
            assert (point["value"] is None) == bool(point["undefined"])


@pytest.mark.parametrize("cell", [-0.0, -1e-17, -0.0004999])
def test_no_zero_has_a_sign(cell):
    assert format_cell(cell) == "0.000"


@given(table=tables())
@settings(max_examples=40)
def test_no_report_shows_a_negative_zero(table):
    result = Evaluation.from_summary(table, "all")
    for form in ("text", "markdown", "latex", "html"):
        assert not re.search(r"-0\.0+(?!\d)", rendered(result, form))


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


# --- baselines -----------------------------------------------------------------------------------

every_metric = pytest.mark.parametrize("metric", METRICS, ids=NAMES)


def _constant(table: ConfusionMatrix, level: int) -> ConfusionMatrix:
    """Return the table of predicting one level for everything."""
    cells = np.zeros((len(table.scale),) * 2)
    cells[:, level] = table.gold
    return ConfusionMatrix.from_counts(table.scale, cells)


def _value(metric, table: ConfusionMatrix) -> float:
    try:
        return float(metric(table))
    except NotApplicable:
        return math.nan


def _best(metric, values: list[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    key = {"maximize": lambda x: x, "minimize": lambda x: -x, "zero": lambda x: -abs(x)}
    return max(defined, key=key[metric.direction], default=math.nan)


@every_metric
@given(table=tables())
@settings(max_examples=12)
def test_the_best_constant_is_the_best_of_all_constants(metric, table):
    point = (
        Evaluation.from_summary(table, [metric]).metrics[metric.expression].baselines.best_constant
    )
    values = [_value(metric, _constant(table, k)) for k in range(len(table.scale))]
    best = _best(metric, values)
    if metric.direction == "zero":
        assert same(abs(point.value), abs(best))
    else:
        assert same(point.value, best)
    if not math.isnan(best):
        level = table.scale.labels.index(point.level)
        assert same(point.value, values[level])


@every_metric
@given(table=tables())
@settings(max_examples=12)
def test_the_majority_is_the_constant_of_the_commonest_gold_level(metric, table):
    point = Evaluation.from_summary(table, [metric]).metrics[metric.expression].baselines.majority
    level = table.scale.labels.index(point.level)
    assert table.gold[level] == table.gold.max()
    assert same(point.value, _value(metric, _constant(table, level)))


@every_metric
@given(table=tables())
@settings(max_examples=12)
def test_chance_is_the_metric_of_independent_labels(metric, table):
    point = Evaluation.from_summary(table, [metric]).metrics[metric.expression].baselines.chance
    cells = np.outer(table.gold, table.predicted) / table.total
    expected = float(
        metric.compute_from_expected(ConfusionMatrix.from_counts(table.scale, cells), table)
    )
    assert same(point.value, expected)
    assert math.isnan(expected) == bool(point.undefined)


LINEAR = [metric for metric in METRICS if metric.linear]
GOLDS = [(2,), (0, 1), (0, 0, 2), (0, 1, 2), (0, 1, 1, 2), (0, 0, 0, 1), (0, 1, 2, 2, 2), (1,) * 5]


@pytest.mark.parametrize("metric", LINEAR, ids=[m.expression for m in LINEAR])
@pytest.mark.parametrize("positions", [None, [0, 1, 5]])
@pytest.mark.parametrize("gold", GOLDS)
def test_the_attainable_range_is_that_of_all_predictions(metric, positions, gold):
    scale = scale_of(3, positions)
    cells = np.zeros((3 ** len(gold), 3, 3))
    for table, answers in zip(cells, itertools.product(range(3), repeat=len(gold)), strict=True):
        np.add.at(table, (gold, answers), 1)
    values = metric(ConfusionMatrix.from_counts(scale, cells))
    result = Evaluation.from_summary(ConfusionMatrix.from_counts(scale, cells[-1]), [metric])
    score = result.metrics[metric.expression]
    if np.isnan(values).all():
        assert score.baselines.attainable is None
    else:
        assert score.baselines.attainable == pytest.approx((values.min(), values.max()), abs=1e-12)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("metric", LINEAR, ids=[m.expression for m in LINEAR])
@given(table=tables())
@settings(max_examples=20)
def test_the_attainable_range_stays_within_the_bounds_and_holds_the_value(metric, table):
    score = Evaluation.from_summary(table, [metric]).metrics[metric.expression]
    if score.baselines.attainable is None:
        assert math.isnan(score.value)
        return
    low, high = score.baselines.attainable
    assert metric.bounds[0] - 1e-12 <= low <= high <= metric.bounds[1] + 1e-12
    assert low - 1e-12 <= score.value <= high + 1e-12


@every_metric
def test_only_linear_metrics_have_an_attainable_range(metric):
    table = ConfusionMatrix.from_counts(scale_of(3), [[3, 1, 0], [1, 2, 1], [0, 1, 3]])
    score = Evaluation.from_summary(table, [metric]).metrics[metric.expression]
    assert (score.baselines.attainable is not None) == metric.linear


@given(table=tables())
@settings(max_examples=60)
def test_that_a_constant_is_not_beaten_is_said_exactly_where_it_is_so(table):
    result = Evaluation.from_summary(table, METRICS)
    text = words(result)
    beaten = []
    for metric in METRICS:
        value = _value(metric, table)
        constants = [_value(metric, _constant(table, k)) for k in range(len(table.scale))]
        best = _best(metric, constants)
        comparable = not (math.isnan(value) or math.isnan(best))
        no_better = comparable and (same(value, best, 1e-12) or not metric.is_better(value, best))
        judged = metric.direction != "zero"
        assert (f" {metric.expression} (always " in text) == (no_better and judged)
        assert result.metrics[metric.expression].beats_constant == (
            not no_better if comparable else None
        )
        beaten.append(not (no_better and judged))
    assert ("Better than every constant" in text) == all(beaten)


def test_always_the_majority_does_not_beat_a_constant():
    result = ordinate.evaluate(GOLD, ["B1"] * 6, "cefr")
    assert re.search(
        r"Does not beat a constant on .* accuracy \(always B1: 0\.333\)", words(result)
    )
    assert "Better than every constant" not in words(result)


def test_perfect_predictions_beat_every_constant():
    result = ordinate.evaluate(GOLD, GOLD, "cefr")
    assert "Does not beat" not in words(result)
    assert "Better than every constant" in words(result)


# --- groups, missing labels, weights -------------------------------------------------------------


def _facts(result: Evaluation) -> dict:
    found = result.to_dict()
    return {
        key: value
        for key, value in found.items()
        if key not in {"source", "by", "difference_from_rest"}
    }


def _close(one, two) -> bool:
    """Tell whether two documents agree, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_close(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_close, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return one == pytest.approx(two, rel=1e-12, abs=1e-12)
    return one == two


@given(data=st.data(), scale=scales())
@settings(max_examples=30)
def test_a_group_is_what_it_is_alone(data, scale):
    label = st.sampled_from(scale.labels)
    row = st.tuples(label, label, st.sampled_from("xyz"), st.sampled_from([1.0, 2.0, 0.5, 0.25]))
    rows = data.draw(st.lists(row, min_size=1, max_size=15))
    gold, predicted, groups, weights = (list(column) for column in zip(*rows, strict=True))
    whole = ordinate.evaluate(gold, predicted, scale, weights=weights, by=groups, interval=None)
    assert set(whole.by) == set(groups)
    for group, part in whole.by.items():
        kept = [k for k, name in enumerate(groups) if name == group]
        alone = ordinate.evaluate(
            *([column[k] for k in kept] for column in (gold, predicted)),
            scale,
            weights=[weights[k] for k in kept],
            interval=None,
        )
        assert _close(_facts(part), _facts(alone))
    together = ordinate.evaluate(gold, predicted, scale, weights=weights)
    assert _facts(whole)["confusion_matrix"] == _facts(together)["confusion_matrix"]


@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_a_group_with_missing_labels_is_what_it_is_alone(missing):
    predicted = ["A2", None, "B1", "C1", None, None]
    groups = ["x", "x", "y", "y", "y", "z"]
    whole = ordinate.evaluate(GOLD, predicted, "cefr", by=groups, missing=missing)
    assert list(whole.by) == (["x", "y"] if missing == "drop" else ["x", "y", "z"])
    for group, part in whole.by.items():
        kept = [k for k, name in enumerate(groups) if name == group]
        alone = ordinate.evaluate(
            [GOLD[k] for k in kept], [predicted[k] for k in kept], "cefr", missing=missing
        )
        assert _facts(part) == _facts(alone)


def test_groups_whose_names_look_alike_are_not_lost():
    result = ordinate.evaluate(["A1", "A2"], ["A1", "A2"], "cefr", by=[1, "1"])
    assert len(result.to_dict()["by"]) == 2


def test_many_groups_are_all_shown():
    names = [f"group {k}" for k in range(40)]
    result = ordinate.evaluate(["A1", "B1"] * 20, ["A1", "B2"] * 20, "cefr", by=names)
    text = str(result)
    assert all(re.search(rf"{name}\b", text) for name in names)
    assert max(map(len, text.splitlines())) < 160


HARD = {
    "missing": {"missing": "worst"},
    "fractional weights": {"weights": [0.5, 1, 2.25, 0.1, 1, 1]},
    "both": {"missing": "worst", "weights": [0.5, 1, 2.25, 0.1, 1, 1]},
    "groups": {"missing": "worst", "weights": [0.5, 1, 2.25, 0.1, 1, 1], "by": list("xyxyxz")},
}


@pytest.mark.parametrize("case", HARD)
def test_all_metrics_are_evaluated_and_those_that_refuse_say_why(case):
    predicted = PREDICTED if case == "fractional weights" else [*PREDICTED[:-1], None]
    result = ordinate.evaluate(GOLD, predicted, "cefr", "all", **HARD[case])
    expected = ConfusionMatrix.of("cefr", GOLD, predicted, HARD[case].get("weights"), "worst")
    for name, score in result.metrics.items():
        refuses = (score.metric.needs_whole_counts and not expected.whole) or (
            expected.has_unanswered and not score.metric.takes_unanswered
        )
        assert not refuses or math.isnan(score.value), name
        assert math.isnan(score.value) == bool(score.undefined), name
        assert same(score.value, _value(score.metric, expected)), name
    for form in FORMS:
        assert rendered(result, form)


@given(scale=scales(), data=st.data())
@settings(max_examples=25)
def test_all_metrics_of_any_weighted_table_with_missing_answers_have_value_or_reason(scale, data):
    size = len(scale)
    weight = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    cells = data.draw(st.lists(weight, min_size=size * (size + 1), max_size=size * (size + 1)))
    full = np.reshape(cells, (size, size + 1))
    if not full.any():
        return
    table = ConfusionMatrix.from_counts(scale, full[:, :-1], full[:, -1])
    result = Evaluation.from_summary(table, METRICS)
    for name, score in result.metrics.items():
        assert math.isnan(score.value) == bool(score.undefined), name
    json.dumps(result.to_dict(), allow_nan=False)
    assert str(result)


def test_reports_are_the_same_on_every_run(tmp_path):
    first = render(ordinate.evaluate(GOLD, PREDICTED, "cefr", "all", by=list("xyxyxy")), "json")
    again = render(ordinate.evaluate(GOLD, PREDICTED, "cefr", "all", by=list("xyxyxy")), "json")
    assert first == again
    Path(tmp_path / "report.json").write_text(first, encoding="utf-8")
    assert json.loads(Path(tmp_path / "report.json").read_text("utf-8"))["n"] == 6
