"""What every result can do follows from one base, whatever the result is."""

import json
import math
import re
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from drawn_charts import compare_with_chart
from frozen import keep
from rendered_reports import words
from result_examples import FURTHER_REPORTS, LABELS, MAKERS, TAG

import ordinate
from ordinate.errors import BadOption, BadOutput, MissingExtra
from ordinate.render import FORMATS_BY_SUFFIX, PROVENANCE, find_terminal_width, render, svg
from ordinate.render.document import format_cell
from ordinate.render.records import make_frame
from ordinate.render.tables import to_plain
from ordinate.render.text import measure_width
from ordinate.results import Evaluation
from ordinate.results.base import (
    Origin,
    Result,
    align_columns,
    to_json_label,
)

SOURCE = Path(ordinate.__file__).parent
ALL = pytest.mark.parametrize("name", MAKERS)
EVERY_REPORT = pytest.mark.parametrize("name", [*MAKERS, *FURTHER_REPORTS])
get_result = cache(lambda name: (MAKERS | FURTHER_REPORTS)[name]())


def as_records(frame):
    """Return the cells of a frame of any library as Python values, what is missing as None."""
    if hasattr(frame, "to_dicts"):
        records = frame.to_dicts()
    elif hasattr(frame, "to_pylist"):
        records = frame.to_pylist()
    else:
        records = frame.to_dict("records")
    return [{key: as_cell(value) for key, value in record.items()} for record in records]


def as_cell(value):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


@ALL
def test_the_repr_is_one_short_line(name):
    shown = repr(get_result(name))
    assert len(shown) < 120
    assert "\n" not in shown
    assert shown.startswith(f"<{type(get_result(name)).__name__}: ")


@ALL
def test_each_method_is_its_renderer(name):
    result = get_result(name)
    assert isinstance(result, Result)
    assert str(result) == render(result, "text", width=find_terminal_width())
    assert result.to_markdown() == render(result, "markdown")
    assert result.to_latex() == render(result, "latex")
    assert result.to_csv() == render(result, "csv")
    plain = json.loads(result.to_json())
    assert plain.pop(PROVENANCE).keys() >= {"ordinate", "sha256"}
    assert plain == json.loads(json.dumps(result.to_dict()))
    tables = [result.to_csv(table) for table in result.list_tables()]
    forms = [render(result, form) for form in ("text", "markdown", "latex", "csv")]
    keep(name, json.dumps(plain, indent=1), *forms, *tables)


@EVERY_REPORT
def test_a_report_begins_with_its_verdict(name):
    document = get_result(name).document()
    assert document.verdict.endswith((".", ")"))
    assert next(document.list_body()) == document.verdict


@EVERY_REPORT
@pytest.mark.parametrize("width", [80, 100, 160])
def test_text_fits_its_width(name, width):
    lines = render(get_result(name), width=width).splitlines()
    assert [line for line in lines if measure_width(line) > width] == []


@EVERY_REPORT
def test_views_have_distinct_names_and_are_drawn_with_names_as_text(name):
    charts = get_result(name).list_charts()
    assert len({(chart.name, chart.variant) for chart in charts}) == len(charts)
    for chart in charts:
        series = {getattr(mark, "series", "") for mark in chart.list_marks()} - {""}
        assert series <= set(chart.series) or len(series) == 1
        drawing = svg.render(chart)
        assert TAG not in drawing
        assert not re.search(r'="[^"]*\b(nan|inf)\b', drawing)
        ET.fromstring(drawing)  # noqa: S314 - of our own making


@EVERY_REPORT
def test_a_file_has_every_column_and_every_note_once(name, tmp_path):
    result = get_result(name)
    result.save(tmp_path / "report.txt")
    text = words((tmp_path / "report.txt").read_text("utf-8"))
    document = result.document()
    for block in document.list_body():
        for cells in [(block,)] if isinstance(block, str) else [block.header, *block.rows]:
            assert " ".join(" ".join(format_cell(cell) for cell in cells).split()) in text
    assert "Not shown" not in text
    assert all(text.count(words(note)) == 1 for note in document.list_notes())


@ALL
def test_an_html_file_is_a_page_and_a_notebook_gets_a_piece(name):
    page, piece = render(get_result(name), "html"), get_result(name)._repr_html_()
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">')
    assert piece.startswith('<div class="ordinate">')
    assert not re.search(r"<script|\sid=|\sstyle=|<link|https?://(?!www\.w3\.org/2000/svg)", piece)


@EVERY_REPORT
def test_rules_of_a_piece_concern_nothing_outside_it(name):
    (style,) = re.findall("<style>(.*?)</style>", get_result(name)._repr_html_(), re.DOTALL)
    rules = re.sub(r"/\*.*?\*/|@media[^{]*{", "", style, flags=re.DOTALL)
    selectors = [one for head in re.findall(r"([^{}]+){", rules) for one in head.split(",")]
    assert len(selectors) > 50
    assert all(re.match(r"\s*\.ordinate(-chart)?\b", one) for one in selectors)


@ALL
def test_names_from_data_are_escaped_in_html(name):
    shown = render(get_result(name), "html")
    assert TAG not in shown
    assert "&lt;b&gt;low&lt;/b&gt;" in shown or name in {"catalogue", "properties"}


@ALL
@pytest.mark.parametrize("suffix", FORMATS_BY_SUFFIX)
def test_a_result_is_saved_by_suffix_and_never_overwritten_unasked(name, suffix, tmp_path):
    result, path = get_result(name), tmp_path / f"report{suffix}"
    result.save(path)
    assert path.read_text("utf-8") == render(result, FORMATS_BY_SUFFIX[suffix])
    path.write_text("before", "utf-8")
    with pytest.raises(BadOutput, match="force=True"):
        result.save(str(path))
    assert path.read_text("utf-8") == "before"
    result.save(path, force=True)
    assert [x.name for x in tmp_path.iterdir()] == [path.name]
    assert path.read_text("utf-8") == render(result, FORMATS_BY_SUFFIX[suffix])


def test_a_suffix_that_says_nothing_is_refused_with_those_that_do(tmp_path):
    for path in ("report", "report.docx"):
        with pytest.raises(BadOutput, match=r"\.txt, \.json, \.csv, \.md, \.tex, \.html"):
            get_result("evaluation").save(tmp_path / path)


@pytest.mark.parametrize("name", ["nul\0.txt", "x" * 300 + ".txt"])
def test_a_path_that_cannot_be_is_said_in_words(name, tmp_path):
    with pytest.raises(BadOutput, match="cannot be written"):
        get_result("evaluation").save(tmp_path / name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "many levels" else [])
        for name in [*MAKERS, *FURTHER_REPORTS]
    ],
)
def test_what_matplotlib_draws_of_every_view_is_its_data(name):
    result = get_result(name)
    for chart in result.list_charts():
        display = result.plot(chart.name, chart.variant)
        assert display.chart.name == chart.name
        compare_with_chart(display)
        display.figure_.draw_without_rendering()
        records = as_records(display.frame("polars"))
        assert [row["mark"] for row in records] == [x["mark"] for x in chart.list_records()]


def test_half_a_character_is_escaped_in_json_and_replaced_in_other_files(tmp_path):
    labels = ["low", "\ud800"]
    result = ordinate.evaluate(labels, labels, labels, metrics="mae")
    for suffix in ("json", "md"):
        result.save(tmp_path / f"report.{suffix}")
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["scale"] == labels
    assert "\ufffd" in (tmp_path / "report.md").read_text("utf-8")


@ALL
def test_results_are_compared_by_what_they_say(name):
    result = get_result(name)
    assert type(result).__eq__ is Result.__eq__
    assert result == result  # noqa: PLR0124 # with nan in it, too
    assert result != str(result)
    assert hash(result) == hash(result)


@pytest.mark.parametrize("name", ["evaluation", "regression"])
def test_the_same_evaluation_twice_is_equal(name):
    assert len({get_result(name), MAKERS[name]()}) == 1


def test_numbers_of_numpy_stay_numbers():
    records = [{"n": np.int64(2), "p": np.float32(0.5), "ok": np.True_}]
    assert as_records(make_frame(records, "polars")) == [{"n": 2, "p": 0.5, "ok": True}]
    assert to_plain(records) == [{"n": 2, "p": 0.5, "ok": True}]
    assert type(to_json_label(np.int64(3))) is int


def test_a_folder_that_cannot_be_written_is_said_in_words(tmp_path):
    (tmp_path / "file").write_text("x", "utf-8")
    with pytest.raises(BadOutput, match="cannot be written"):
        get_result("evaluation").save(tmp_path / "file" / "report.txt")


@ALL
def test_all_backends_have_the_same_cells(name):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    result = get_result(name)
    for table, records in result.list_tables().items():
        frames = {
            backend: as_records(result.to_frame(table, backend))
            for backend in ("pandas", "polars", "pyarrow")
        }
        assert frames["pandas"] == frames["polars"] == frames["pyarrow"]
        assert len(frames["pandas"]) == len(records)
        for cells, record in zip(frames["polars"], align_columns(records), strict=True):
            for key, value in record.items():
                assert cells[key] == as_cell(value) or cells[key] == str(value)


@ALL
def test_the_first_table_is_the_one_without_a_name(name):
    pytest.importorskip("pandas")
    result = get_result(name)
    first = next(iter(result.list_tables()))
    assert as_records(result.to_frame(backend="pandas")) == as_records(
        result.to_frame(first, "pandas")
    )
    assert result.to_csv(first).count("\n") >= len(result.list_tables()[first])


def test_an_evaluation_has_its_tables_by_name():
    tables = get_result("evaluation").list_tables()
    others = ["error_attribution", "second_rater", "difference_from_rest"]
    others += ["bins", "calibration_curves"]
    assert [*tables] == ["metrics", "per_level", "confusion_matrix", *others]
    assert {row["group"] for row in tables["metrics"]} == {"", TAG, "other"}
    assert {row["group"] for row in tables["second_rater"]} == {"", TAG, "other"}
    own = [row["metric"] for row in tables["second_rater"] if row["group"] == ""]
    assert own == [*get_result("evaluation").metrics]
    assert {row["group"] for row in tables["difference_from_rest"]} == {TAG, "other"}
    assert [row["level"] for row in tables["per_level"]] == LABELS
    assert sum(row["weight"] for row in tables["confusion_matrix"]) == 60
    assert [*get_result("comparison").list_tables()] == ["metrics", "pairs", "tests"]
    assert [*get_result("regression").list_tables()][:3] == ["metrics", "tails", "baselines"]


def test_an_unknown_table_is_refused_with_those_there_are():
    for ask in (get_result("calibration").to_frame, get_result("calibration").to_csv):
        with pytest.raises(BadOption, match="There are: metrics, bins, per_level"):
            ask("levels")


def test_an_unknown_backend_is_refused_and_a_missing_one_has_its_install_line(monkeypatch):
    with pytest.raises(BadOption, match="There are: pandas, polars, pyarrow"):
        get_result("shift").to_frame(backend="dask")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match="pip install polars"):
        get_result("shift").to_frame(backend="polars")
    monkeypatch.setattr("ordinate.render.records.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match="one of pandas, polars, pyarrow"):
        get_result("shift").to_frame()


def test_a_column_of_several_types_is_one_of_strings():
    records = [{"level": 1, "p": 0.5}, {"level": "B1", "p": math.nan}, {"level": None, "n": 2}]
    frame = as_records(make_frame(records, "polars"))
    assert [row["level"] for row in frame] == ["1", "B1", None]
    assert [row["p"] for row in frame] == [0.5, None, None]
    assert [row["n"] for row in frame] == [None, None, 2]


def test_plain_values_know_no_nan_at_any_depth():
    plain = to_plain({"a": (math.nan, math.inf, 1), "b": {"c": [0.5]}, "d": None})
    assert plain == {"a": [None, None, 1], "b": {"c": [0.5]}, "d": None}


def test_every_result_of_the_package_takes_its_methods_from_the_base():
    sources = {path: path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    headed = re.compile(r"@dataclass\(([^)]*)\)\nclass (\w+)\(Result\)")
    results = {name: options for text in sources.values() for options, name in headed.findall(text)}
    assert len(results) >= 20
    assert all("repr=False" in options for options in results.values()), results
    own = [path.name for path, text in sources.items() if "def _repr_html_" in text]
    assert own == ["base.py"]


@pytest.mark.parametrize(
    ("files", "tab"),
    [
        ((), ""),
        (("data/levels.csv",), "model in levels.csv: "),
        (("gold.csv", "b.csv", "c.csv"), "model in c.csv and 2 more: "),
    ],
)
def test_the_tab_of_a_page_names_column_and_file(files, tab):
    matrix = ordinate.ConfusionMatrix.of(["A1", "B1"], ["A1", "B2"], "cefr")
    result = Evaluation.from_summary(matrix, origin=Origin("gold", "model", files), interval=None)
    assert f"<title>{tab}2 items on A1 &lt; " in render(result, "html")
