"""`ordinate evaluate --task values`."""

import json

import numpy as np
import pytest

from command import run
from ordinate.evaluate.residuals import residuals
from ordinate.evaluate.value_comparison import compare_values
from ordinate.evaluate.values import evaluate_values
from ordinate.summary.normalization import Normalization

N = 400
DEFAULT = {"rmse", "mae", "r2", "relative_accuracy", "skill", "bias", "max_error"}


def _columns(n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(673, 104, n)
    p = y + 20 * rng.standard_t(5, n) + 2
    return {
        "density": y,
        "predicted": p,
        "other": y + rng.normal(0, 15, n),
        "lo": p - 40,
        "hi": p + 40,
        "family": np.where(rng.random(n) < 0.5, "a", "b"),
        "t": rng.permutation(n),
    }


def _write(path, columns):
    names = list(columns)
    rows = zip(*(columns[name] for name in names), strict=True)
    lines = [",".join(str(cell) for cell in row) for row in rows]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "dens.csv", _columns())
    shifted = _columns(100, 1)
    _write(tmp_path / "hot.csv", shifted | {"density": shifted["density"] + 150})
    return tmp_path


ASKED = ("evaluate", "dens.csv", "--task", "values", "--target", "density")


def test_json_has_the_numbers_of_python():
    columns = _columns()
    ran = run(*ASKED, "--unit", "kg/m³", "--by", "family", "--format", "json")
    found = json.loads(ran.out)
    expected = evaluate_values(
        columns["density"], columns["predicted"], unit="kg/m³", by=columns["family"]
    ).to_dict()
    assert found["task"] == "values"
    assert set(found["metrics"]) >= DEFAULT
    for name, cell in found["metrics"].items():
        if name != "median_absolute_error":  # exact for data in memory
            assert cell["value"] == pytest.approx(expected["metrics"][name]["value"], rel=1e-9)
            if cell["low"] is not None:
                limits = [expected["metrics"][name][key] for key in ("low", "high")]
                assert [cell["low"], cell["high"]] == pytest.approx(limits, rel=1e-6)
        assert cell["unit"] == expected["metrics"][name]["unit"]
    assert set(found["by"]) == {"a", "b"}


def test_both_scales_are_shown_and_normalised_columns_are_turned_back(here):
    training = Normalization(673.27, 104.26)
    plain = run(*ASKED, "--train-mean", 673.27, "--train-std", 104.26, "--format", "json")
    columns = _columns()
    for name in ("density", "predicted"):
        columns[name] = training.normalize(columns[name])
    _write(here / "dens.csv", columns)
    numbers = ("--train-mean", 673.27, "--train-std", 104.26)
    turned = run(*ASKED, *numbers, "--normalized", "--format", "json")
    first, second = json.loads(plain.out), json.loads(turned.out)
    for name in DEFAULT:
        assert first["metrics"][name]["value"] == pytest.approx(second["metrics"][name]["value"])
    rmse = first["metrics"]["rmse"]["value"]
    assert first["normalized"]["rmse"] == pytest.approx(rmse / 104.26)
    baselines = [[one["rmse"] for one in found["baselines"]] for found in (first, second)]
    assert baselines[0] == pytest.approx(baselines[1])
    text = run(*ASKED, *numbers, "--normalized").out
    assert "σ of the evaluated targets" in text
    assert "σ of the training targets is 104.3" in " ".join(text.split())


def test_bounds_times_residuals_rivals_shifts_and_levels_join_the_report():
    further = ("--lower", "lo", "--upper", "hi", "--order", "t", "--residuals", "family")
    more = ("--against", "other", "--shifted", "hot.csv", "--bins", "600,700", "--unit", "kg/m³")
    found = json.loads(run(*ASKED, *further, *more, "--format", "json").out)
    columns = _columns()
    y, p = columns["density"], columns["predicted"]
    covered = float(((columns["lo"] <= y) & (y <= columns["hi"])).mean())
    assert found["predictive"]["interval_coverage"]["value"] == pytest.approx(covered)
    assert found["baselines"][-1]["name"] == "previous value"
    looked = residuals(y, p, {"family": columns["family"]}, unit="kg/m³").to_dict()
    assert found["residuals"]["largest"][0]["row"] == looked["largest"][0]["row"]
    models = {"predicted": p, "other": columns["other"]}
    compared = compare_values(y, models, unit="kg/m³").to_dict()
    assert found["comparison"]["conclusions"] == compared["conclusions"]
    assert found["shifted"]["differences"]["rmse"]["low"] > 0
    assert found["levels"]["scale"] == ["below 600", "600 to 700", "700 and above"]
    gold = np.searchsorted([600, 700], y, side="right")
    right = float((gold == np.searchsorted([600, 700], p, side="right")).mean())
    assert found["levels"]["metrics"]["accuracy"]["value"] == pytest.approx(right)
    text = run(*ASKED, *further, *more).out
    for title in ("Predictive intervals", "By prediction", "Largest errors", "As levels"):
        assert title in text


def test_a_limit_fails_a_run():
    assert run(*ASKED, "--fail-under", "rmse=1").code == 3
    assert run(*ASKED, "--fail-under", "mse=1e6", "--fail-under", "r2=0.5").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--normalized"], "--normalized needs --train-mean"),
        (["--train-mean", "1"], "two numbers"),
        (["--train-mean", "1", "--train-std", "0"], "standard deviation above 0"),
        (["--lower", "lo"], "name both columns"),
        (["--bins", "700,600"], "rising edges"),
        (["--bins", "x"], "rising edges"),
        (["--missing", "worst"], "no worst answer"),
        (["--scale", "1..5"], "--scale is for labels"),
        (["--metrics", "cem_ord"], "There is no metric 'cem_ord'"),
        (["--predicted", "nothing"], "has no column 'nothing'"),
        (["--residuals", "nothing"], "has no column 'nothing'"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    ran = run(*ASKED, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
