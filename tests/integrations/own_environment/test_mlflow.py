"""A result in a run of MLflow: metrics with bounds, reasons, tables and pages."""

import csv
from pathlib import Path

import pytest
from shown_output import find_block

import ordinate
from ordinate.integrations.mlflow import log_evaluation

mlflow = pytest.importorskip("mlflow")  # `make test-integrations` has it
GOLD = ["low", "mid", "high", "mid"] * 10
PREDICTED = ["low", "mid", "mid", "mid"] * 10


@pytest.fixture(autouse=True)
def _store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # rather than a server or a database
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("levels")
    yield
    mlflow.set_tracking_uri(None)


@pytest.fixture
def run(_store):
    with mlflow.start_run() as active:
        yield active


def read_run(run):
    return mlflow.get_run(run.info.run_id).data


def test_metrics_are_logged_with_their_bounds(run):
    result = ordinate.evaluate(GOLD, PREDICTED, "low,mid,high", "mae,weighted_kappa(power=1)")
    logged = log_evaluation(result, "test/")
    estimate = result.metrics["mae"].estimate
    kappa = "test/weighted_kappa_power_1"
    assert set(logged) == {
        *("test/mae", "test/mae.low", "test/mae.high"),
        *(kappa, f"{kappa}.low", f"{kappa}.high"),
    }
    assert read_run(run).metrics == logged
    assert logged["test/mae"] == result.metrics["mae"].value
    assert (logged["test/mae.low"], logged["test/mae.high"]) == (estimate.low, estimate.high)


def test_what_is_undefined_is_a_tag_with_its_reason(run):
    result = ordinate.evaluate(["mid"] * 5, ["mid"] * 5, "low,mid,high", "kendall_tau_b,mae")
    assert "kendall_tau_b" not in log_evaluation(result)
    assert read_run(run).tags["kendall_tau_b.undefined"]


def test_tables_and_pages_are_artefacts(run):
    result = ordinate.evaluate_regression([1.0, 2.0, 4.0], [1.5, 2.0, 3.0], unit="m")
    log_evaluation(result, folder="reports")
    folder = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="reports")
    files = {path.name for path in Path(folder).iterdir()}
    assert {"report.html", "report.json", "metrics.csv"} <= files
    with Path(folder, "metrics.csv").open(encoding="utf-8", newline="") as table:
        assert "rmse" in {row["metric"] for row in csv.DictReader(table)}


def test_the_page_logs_an_evaluation():
    known = {
        "mlflow": mlflow,
        "ordinate": ordinate,
        "gold": ["A1", "B2"],
        "predicted": ["A1", "B1"],
    }
    exec(find_block("docs/integrations.md", "from ordinate.integrations.mlflow"), known)  # noqa: S102 - a page of ours
    assert read_run(mlflow.last_active_run()).metrics["test/mae"] == 0.5
