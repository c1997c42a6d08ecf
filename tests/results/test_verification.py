"""Verification: a report made again is the same, and a single changed digit is found and named."""

import json
import random
import re

import numpy as np
import pytest

import ordinate
from ordinate.errors import BadInput
from ordinate.inference import ConfidenceIntervals
from ordinate.meta.property_verdicts import PropertyVerdicts
from ordinate.metrics import find_metric
from ordinate.render import render
from ordinate.results.base import Result
from ordinate.results.case_scales import evaluate_cases
from ordinate.results.distribution_shift import evaluate_shift
from ordinate.results.provenance import (
    CALL,
    FUNCTIONS,
    MODULES,
    TAG,
    compute_checksum,
    dump_value,
    load_value,
)
from ordinate.results.residuals import analyse_residuals
from ordinate.results.verification import compare_reports, read_json, verify

LEVELS = ["A1", "A2", "B1", "B2"]
QUICK = ConfidenceIntervals(resamples=100)
RNG = np.random.default_rng(3)
RANDOM = random.Random(1)  # noqa: S311 - which digits are changed
CODES = RNG.integers(0, 4, 60)
GOLD = [LEVELS[k] for k in CODES]
NEAR, FAR = (
    [LEVELS[k] for k in np.clip(CODES + RNG.integers(-s, s + 1, 60), 0, 3)] for s in (1, 2)
)
GROUPS = [f"g{k % 8}" for k in range(60)]
ROWS = RNG.dirichlet(np.ones(4), 60).round(3)
ROWS[:, 3] = 1.0 - ROWS[:, :3].sum(axis=1)
Y = RNG.normal(50.0, 9.0, 60).round(2)
P, Q = (Y + RNG.normal(0.0, s, 60).round(2) for s in (3.0, 5.0))


def evaluate_all():
    return ordinate.evaluate(
        GOLD, NEAR, "A1,A2,B1,B2", "mae,cem_ord,brier", by=["x", "y"] * 30, second_rater=FAR,
        error_attribution="mae", probabilities=ROWS, interval=QUICK,
    )  # fmt: skip


def compare_all():
    return ordinate.compare(
        GOLD, {"near": NEAR, "far": FAR}, "A1,A2,B1,B2", "mae,accuracy", average_over=GROUPS,
        interval=QUICK,
    )  # fmt: skip


def evaluate_regression_all(**options):
    return ordinate.evaluate_regression(
        Y, P, by=GROUPS[:4] * 15, lower=P - 4, upper=P + 4, unit="kg", order=np.arange(60),
        interval=QUICK, **options,
    )  # fmt: skip


def evaluate_shifted():
    inside, shifted = (
        ordinate.evaluate_regression(y, p, interval=QUICK) for y, p in ((Y, P), (Y + 20, Q + 20))
    )
    return evaluate_shift(inside, shifted, {"size": (Y, Y + 3)})


MAKERS = {
    "evaluation": evaluate_all,
    "clusters": lambda: ordinate.evaluate(
        GOLD,
        NEAR,
        "A1,A2,B1,B2",
        "mae",
        by=[None, 2, "2", True] * 15,
        groups=GROUPS,
        interval=QUICK,
    ),
    "cases": lambda: ordinate.evaluate(
        GOLD, NEAR, "A1,A2,B1,B2", "mae,f1_macro", average_over=GROUPS, interval=QUICK
    ),
    "scaled cases": lambda: evaluate_cases(
        [0, 3, 1, 20, 55, 60],
        [0, 2, 1, 30, 50, 60],
        ["p1"] * 3 + ["p2"] * 3,
        {"p1": "0..3", "p2": "0..60"},
        "quadratic_kappa",
    ),
    "comparison": compare_all,
    "calibration": lambda: ordinate.Calibration.of(GOLD, ROWS, scale="A1,A2,B1,B2", bins=5),
    "recalibration": lambda: ordinate.RecalibrationEvaluation.of(
        GOLD, ROWS, ROWS[::-1], scale="A1,A2,B1,B2", metrics="brier,ece"
    ),
    "regression": evaluate_regression_all,
    "clustered regression": lambda: evaluate_regression_all(groups=GROUPS, metrics="rmse,mae"),
    "regression comparison": lambda: ordinate.compare_regression(Y, {"p": P, "q": Q}),
    "residuals": lambda: analyse_residuals(Y, P, {"q": Q, "group": GROUPS}),
    "shift": evaluate_shifted,
    "plan": lambda: ordinate.power(
        GOLD, {"near": NEAR, "far": FAR}, "mae", scale="A1,A2,B1,B2", difference=0.1, resamples=100
    ),
    "properties": lambda: PropertyVerdicts.of([find_metric("mae"), find_metric("cem_ord")]),
}
# Of these, every number is recomputed from a summary.
RECOMPUTED = {
    "evaluation", "clusters", "cases", "scaled cases", "comparison", "calibration",
    "recalibration", "clustered regression", "plan",
}  # fmt: skip
made: dict[str, Result] = {}


def make(kind):
    if kind not in made:
        made[kind] = MAKERS[kind]()
    return made[kind]


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


def change_digit(text, place):
    return text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]


def locate_numbers(page):
    """The place of the last digit of every number of a page, by the kind of element it is in.

    Style sheets, scripts and coordinates are no numbers of the report.
    """
    body = re.sub(r"<(style|script)\b.*?</\1>", lambda m: "~" * len(m[0]), page, flags=re.DOTALL)
    places: dict[str, list[int]] = {}
    for number in re.finditer(r"\d+", body):
        before = body[: number.end()]
        start = before.rfind("<")
        inside = before[start:]
        if ">" in inside:
            kind = re.match(r"<\S+?(?=[ >])", inside)[0]
        else:
            kind = re.findall(r"[\w-]+(?==\")", inside)[-1:] or ["tag"]
            kind = f"{re.match(r'<[^ ]*', inside)[0]} {kind[0]}"
        places.setdefault(kind, []).append(number.end() - 1)
    return places


def test_every_kind_of_number_on_a_page_is_compared(kind):
    page = render(make(kind), "html")
    places = locate_numbers(page)
    assert len(places) > 3
    chosen = RANDOM.sample(sorted(places), min(len(places), 8))
    for element in chosen:
        place = RANDOM.choice(places[element])
        differences = compare_reports(change_digit(page, place), page)
        assert differences, (element, page[place - 60 : place + 20])


def test_every_number_of_json_is_compared_and_named(kind):
    text = render(make(kind), "json")
    shown = text.index('"provenance"')
    ends = [x.end() - 1 for x in re.finditer(r"\d+(?![\w.])", text) if x.end() < shown]
    for place in RANDOM.sample(ends, min(len(ends), 12)):
        changed = change_digit(text, place)
        (difference, *_) = compare_reports(changed, text)
        assert difference.where
        assert difference.shown != difference.recomputed


@pytest.mark.slow
def test_every_number_of_a_page_is_compared_and_named():
    page = render(ordinate.evaluate(GOLD, NEAR, "A1,A2,B1,B2", "mae", interval=None), "html")
    for places in locate_numbers(page).values():
        for place in places:
            (difference,) = compare_reports(change_digit(page, place), page)
            assert difference.shown != difference.recomputed


def test_every_number_that_is_carried_has_a_part_in_the_checksum(kind):
    stored = []
    provenance = make(kind).describe_provenance(lambda text: stored.append(text) or "name")
    text = stored[0] if stored else json.dumps(provenance["made_of"])
    assert compute_checksum(provenance, read_json(text)) == provenance["sha256"]
    ends = [x.end() - 1 for x in re.finditer(r"\d+(?![\w.])", text)]
    for place in RANDOM.sample(ends, min(len(ends), 20)):
        changed = read_json(change_digit(text, place))
        assert compute_checksum(provenance, changed) != provenance["sha256"]
    for name in ("ordinate", "numpy", "schema"):
        assert compute_checksum(provenance | {name: "9"}, read_json(text)) != provenance["sha256"]


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
    matrix = report["provenance"]["made_of"]["arguments"]["self"]["arguments"]["matrix"]
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


def test_what_is_too_large_for_a_report_stands_in_a_file_beside_it(tmp_path):
    groups = np.arange(6_000)
    gold, predicted = (np.resize(column, 6_000) for column in (GOLD, NEAR))
    result = ordinate.evaluate(gold, predicted, "A1,A2,B1,B2", "mae", groups=groups)
    path = tmp_path / "report.html"
    result.save(path)
    (beside,) = [x for x in tmp_path.iterdir() if x != path]
    assert verify(path).agrees
    assert re.fullmatch(r"report\.html\.[0-9a-f]{16}\.json", beside.name)
    content = beside.read_text()
    beside.write_text(change_digit(content, re.search(r"\d", content).start()))
    assert not verify(path).agrees
    ordinate.evaluate(GOLD, NEAR, "A1,A2,B1,B2", "mae").save(path, force=True)
    assert [x.name for x in tmp_path.iterdir()] == ["report.html"]
    result.save(path, force=True)
    next(x for x in tmp_path.iterdir() if x != path).unlink()
    with pytest.raises(BadInput, match="which is not beside it"):
        verify(path)
    (tmp_path / "piped.json").write_text(result.to_json())
    with pytest.raises(BadInput, match=r"letters are too many; with -o they have a file"):
        verify(tmp_path / "piped.json")


def test_only_named_functions_and_classes_make_a_report():
    for made_of in (
        {TAG: CALL, "function": "system", "arguments": {"command": "true"}},
        {TAG: CALL, "function": "Result.save", "arguments": {"self": 1, "path": "x"}},
        {TAG: "Path", "x": 1},
        {TAG: ["call"]},
    ):
        with pytest.raises(BadInput, match=r"[Nn]o(thing|) "):
            load_value(made_of)
    assert all(
        module.startswith("ordinate.") for module in (*FUNCTIONS.values(), *MODULES.values())
    )


def test_a_result_that_was_changed_by_hand_is_carried_as_it_is_shown():
    from dataclasses import replace

    result = replace(make("plan"), spread=0.5)
    assert dump_value(result)[TAG] == "CarriedReport"
    assert dump_value(make("plan"))[TAG] == CALL


def test_labels_of_any_kind_are_carried(tmp_path):
    labels = ["</script>", "\ud800", '"', "1e5", "ß"]
    path = tmp_path / "report.html"
    for suffix in ("html", "json"):
        path = tmp_path / f"report.{suffix}"
        ordinate.evaluate(labels, labels, labels, "mae").save(path)
        assert verify(path).agrees
