"""Verification: a report made again is the same, and a single changed digit is found and named."""

import json
import re
from importlib import import_module

import numpy as np
import pytest
from verified_reports import GOLD, MAKERS, NEAR, RECOMPUTED, change_digit, compare_reports, make

import ordinate
from ordinate.errors import BadInput
from ordinate.render import render
from ordinate.render.packed_text import pack_text, unpack_text
from ordinate.results.provenance import CLASSES, TAG, compute_checksum, dump_value, load_value
from ordinate.results.verification import read_json, verify


@pytest.fixture(params=MAKERS)
def kind(request):
    return request.param


@pytest.mark.parametrize("suffix", ["html", "json"])
def test_a_report_made_again_agrees_in_all_digits(kind, suffix, tmp_path):
    path = tmp_path / f"report.{suffix}"
    make(kind).save(path)
    found = verify(path)
    assert found.agrees
    assert found.numbers > 20
    assert bool(found.summaries) and not found.carried if kind in RECOMPUTED else found.carried
    assert found.made_with["ordinate"] == ordinate.__version__


def test_what_a_report_is_made_of_stays_the_same_when_it_is_made_again(kind):
    plain = json.loads(json.dumps(dump_value(make(kind))))
    assert dump_value(load_value(plain)) == plain


def test_a_number_that_reads_the_same_but_is_written_otherwise_is_another():
    assert read_json("[0.30000000000000004, 0.300000000000000041, 1e5]") == [
        0.30000000000000004, "0.300000000000000041", "1e5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "where"),
    [
        ('<td class="n">0.', "Metrics"),
        ('"metrics":{"mae":{"value":0.', "data of the page.metrics.mae.value"),
        ("Made with Ordinate ", ""),
        ("<script type=module>let a = 1", "script"),
    ],
)
def test_a_changed_digit_is_named_by_where_it_stands(shown, where):
    page = render(ordinate.evaluate(GOLD, NEAR, "A1,A2,B1,B2", "mae", interval=None), "html")
    page = page.replace('<script type="module">', "<script type=module>let a = 10;", 1)
    place = page.index(shown) + len(shown)
    (difference,) = compare_reports(change_digit(page, place), page)
    assert where in difference.where


def test_changed_words_and_drawings_are_found_too():
    page = render(make("comparison"), "html")
    for words, others in (("better", "worse"), (' x="', ' x="1'), ("<td", "<td hidden")):
        assert compare_reports(page.replace(words, others, 1), page)
    shorter = page.replace("</tr>\n<tr>", "<tr>", 1)
    assert compare_reports(shorter, page)
    assert compare_reports(page[: len(page) // 2], page)


def test_a_changed_count_is_said_with_the_numbers_that_follow_from_it(tmp_path):
    path = tmp_path / "report.json"
    ordinate.evaluate(GOLD, NEAR, "A1,A2,B1,B2", "mae").save(path)
    report = json.loads(path.read_text())
    matrix = report["provenance"]["made_of"]["self"]["matrix"]
    for name in ("weights", "items", "squares"):
        matrix[name][0][0] += 1
    path.write_text(json.dumps(report))
    found = verify(path)
    assert not found.agrees
    named = {one.where for one in found.differences}
    assert {"what the report is made of", "n", "confusion_matrix[0][0]"} <= named
    assert any(where.startswith("metrics.mae") for where in named)
    assert "differences to the report made again" in found.document().verdict


def test_another_version_is_said_first(tmp_path):
    path = tmp_path / "report.html"
    result = ordinate.evaluate(GOLD, NEAR, "A1,A2,B1,B2", "mae", interval=None)
    result.save(path)
    report = path.read_text().replace(f"Ordinate {ordinate.__version__}", "Ordinate 0.0.9")
    provenance = result.describe_provenance()
    provenance["ordinate"] = "0.0.9"
    older = compute_checksum(provenance, provenance["made_of"])
    old = f'"ordinate":"{ordinate.__version__}"'
    report = report.replace(old, '"ordinate":"0.0.9"')
    path.write_text(report.replace(result.describe_provenance()["sha256"], older))
    found = verify(path)
    assert found.agrees
    assert found.document().verdict.startswith("Made with Ordinate 0.0.9, and verified with")


def test_what_is_too_large_for_a_report_stands_in_a_file_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr("ordinate.results.provenance.LARGEST_MADE_OF", 2_000)
    groups = np.arange(6_000)
    gold, predicted = (np.resize(column, 6_000) for column in (GOLD, NEAR))
    result = ordinate.evaluate(gold, predicted, "A1,A2,B1,B2", "mae", groups=groups)
    path = tmp_path / "report.html"
    result.save(path)
    (beside,) = [x for x in tmp_path.iterdir() if x != path]
    assert verify(path).agrees
    assert re.fullmatch(r"report\.html\.[0-9a-f]{16}\.json", beside.name)
    assert beside.stat().st_size < len(json.dumps(dump_value(result))) / 2  # it is packed
    content = unpack_text(json.loads(beside.read_text())["packed"])
    changed = change_digit(content, re.search(r"\d", content).start())
    beside.write_text(json.dumps({"packed": pack_text(changed)}))
    assert not verify(path).agrees
    beside.write_text(content)
    with pytest.raises(BadInput, match="does not say what it is made of"):
        verify(path)
    ordinate.evaluate(GOLD, NEAR, "A1,A2,B1,B2", "mae").save(path, force=True)
    assert [x.name for x in tmp_path.iterdir()] == ["report.html"]
    result.save(path, force=True)
    next(x for x in tmp_path.iterdir() if x != path).unlink()
    with pytest.raises(BadInput, match="which is not beside it"):
        verify(path)
    (tmp_path / "piped.json").write_text(result.to_json())
    with pytest.raises(BadInput, match=r"letters are too many; with -o they have a file"):
        verify(tmp_path / "piped.json")


def test_a_report_without_a_summary_says_so_before_anything_else(tmp_path):
    path = tmp_path / "report.json"
    make("properties").save(path)
    document = verify(path).document()
    assert document.verdict.startswith("Nothing was recomputed: the report carries no summary,")
    assert "All digits agree" not in document.verdict
    assert "What was written again agrees: " in document.verdict
    path.write_text(path.read_text().replace('"task": "properties"', '"task": "others"'))
    assert verify(path).document().verdict.startswith("Nothing was recomputed")


def test_resamples_of_a_call_have_a_limit():
    made_of = dump_value(make("meta-evaluation"))
    made_of["resamples"] = 10**9
    with pytest.raises(BadInput, match="1,000,000,000 resamples are more than"):
        load_value(made_of)


def test_only_named_functions_and_classes_make_a_report():
    for maker in (
        "os:system",
        "results.base:Result.save",
        "results.base:Path",
        "results.verification:verify",
        "results.evaluation:Evaluation",
        "results.evaluation:Evaluation.from_summary.__globals__",
        "__main__:main",
        "examples.__main__:main",
        "results.provenance:import_module",
        ["call"],
    ):
        with pytest.raises(BadInput, match="No report is made by"):
            load_value({TAG: maker, "path": "x"})
    for name in CLASSES:
        module, _, attribute = name.partition(":")
        assert hasattr(import_module(f"ordinate.{module}"), attribute), name


def test_a_result_that_was_changed_by_hand_is_carried_as_it_is_shown():
    from dataclasses import replace

    result = replace(make("plan"), spread=0.5)
    assert dump_value(result)[TAG] == "results.provenance:CarriedReport"
    assert dump_value(make("plan"))[TAG] == "results.sample_size:SampleSizePlan.from_panel"


def test_labels_of_any_kind_are_carried(tmp_path):
    labels = ["</script>", "\ud800", '"', "1e5", "ß"]
    path = tmp_path / "report.html"
    for suffix in ("html", "json"):
        path = tmp_path / f"report.{suffix}"
        ordinate.evaluate(labels, labels, labels, "mae").save(path)
        assert verify(path).agrees


def test_sums_of_probabilities_are_carried_packed_and_agree(tmp_path):
    provenance = make("calibration").describe_provenance()
    assert "made_of" not in provenance
    assert len(provenance["packed"]) < 50_000
    path = tmp_path / "report.json"
    path.write_text(make("calibration").to_json())  # as on standard output
    assert verify(path).agrees
    text = path.read_text()
    changed = text.replace('"packed": "', f'"packed": "{pack_text("[]")}", "was": "')
    path.write_text(changed)
    assert not verify(path).agrees


def test_a_text_in_cdata_is_compared():
    page = render(make("plan"), "html")
    assert compare_reports(page.replace("</text>", "<![CDATA[0.99]]></text>", 1), page)
