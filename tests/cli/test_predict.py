"""`ordinate predict`: a saved model on data of the experiment, new texts or plain features."""

import csv
import io
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command import run
from experiments import lay_out
from saved_models import crown, save_model

from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.lock import hold_lock

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
COLUMNS = ["level", "argmax", "rounded_mean", *(f"p_{x}" for x in CEFR), "set_low", "set_high"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = lay_out(tmp_path_factory.mktemp("made") / "study", tests={"test": 24, "other": 12})
    weak = save_model(root, "weak")
    strong = save_model(root, "strong")
    crown(root, strong)
    return root, strong, weak


@pytest.fixture(autouse=True)
def here(made, tmp_path, monkeypatch):
    shutil.copytree(made[0], tmp_path / "study")
    monkeypatch.chdir(tmp_path)


def predict(*arguments):
    ran = run("predict", "-e", "study", *arguments)
    assert ran.code == 0, ran.err
    return ran


def read(text: str) -> list[dict]:
    return list(csv.DictReader(io.StringIO(text)))


def test_without_more_the_winner_predicts_all_test_sets(made):
    ran = predict()
    assert "36 items predicted by strong/logistic\n" in ran.out
    for stem, n in (("test", 24), ("other", 12)):
        found = read(Path(f"study/predictions/{made[1]}/{stem}.csv").read_text())
        assert len(found) == n
        assert list(found[0]) == ["id", *COLUMNS]
        assert found[1]["id"] == f"{stem}-1"
    assert not Path("study/.lock").exists()


def test_results_are_not_overwritten_without_force():
    predict()
    ran = run("predict", "-e", "study")
    assert (ran.code, ran.out) == (2, "")
    assert "exists already. Pass --force" in ran.err
    predict("--force")
    Path("out.csv").write_text("mine")
    ran = run("predict", "-e", "study", "--data", "study/ml-test-data/test.csv", "-o", "out.csv")
    assert ran.code == 2
    assert Path("out.csv").read_text() == "mine"


def test_a_data_file_of_the_experiment_has_its_features_already(made):
    predict("--data", "study/ml-test-data/other.csv")
    kept = Path(f"study/predictions/{made[1]}/other.csv")
    predict("--data", "study/ml-test-data/other.csv", "-o", "other.csv")
    assert Path("other.csv").read_text() == kept.read_text()
    assert not kept.with_name("test.csv").exists()


def test_a_folder_of_features_goes_to_standard_output_with_the_report_beside():
    predict("--data", "study/ml-test-data/test.csv", "-o", "test.csv")
    ran = predict("--feature-folder", "study/features/strong/test")
    assert ran.out == Path("test.csv").read_text()
    assert "24 items predicted" in ran.err


def test_parquet_is_written_by_the_suffix():
    ran = predict(
        "--feature-folder", "study/features/weak/test", "--model", "weak", "-o", "x.parquet"
    )
    assert "x.parquet" in ran.out
    table = pq.read_table("x.parquet")
    assert table.column_names == ["id", *COLUMNS]
    assert {str(table.schema.field(f"p_{x}").type) for x in CEFR} == {"double"}


@pytest.mark.parametrize("form", ["json", "csv", "markdown", "latex"])
def test_the_report_comes_in_every_form(form, made):
    ran = predict("--format", form)
    if form == "json":
        found = json.loads(ran.out)
        assert found["model"] == made[1]
        assert [one["data"] for one in found["data"]] == ["other", "test"]
        assert sum(found["data"][0]["shares"]["metric_optimal"]) == pytest.approx(1.0)
    else:
        assert "A1" in ran.out


def test_new_texts_get_their_features_from_the_stored_maker():
    pytest.importorskip("sklearn")
    for path in Path("study").rglob("*.csv"):
        if "ml-" in str(path):  # texts that say something of their level
            lines = path.read_text().splitlines()
            rows = [line.split(",") for line in lines[1:]]
            texts = [f"{k},{' '.join([level] * 3)} and words,{level}" for k, _, level in rows]
            path.write_text("\n".join([lines[0], *texts]) + "\n")
    shutil.rmtree("study/features")
    ran = run("features", "tfidf", "-e", "study", "--name", "words")
    assert ran.code == 0, ran.err
    name = save_model(Path("study"), "words")
    Path("new.csv").write_text("id,text\nn1,A1 A1 and words\nn2,C2 C2 C2\nn3,\n")
    ran = predict("--model", name, "--data", "new.csv", "-o", "new-levels.csv")
    found = read(Path("new-levels.csv").read_text())
    assert [row["id"] for row in found] == ["n1", "n2", "n3"]
    assert [row["level"] for row in found[:2]] == ["A1", "C2"]
    assert "1 of 3 texts is empty." in ran.out
    assert "features made by the stored extractors" in ran.out
    own = predict("--model", name, "--data", "study/ml-test-data/test.csv", "-o", "own.csv")
    assert "matched by" in own.out
    shutil.copy("study/ml-test-data/test.csv", "copy.csv")
    predict("--model", name, "--data", "copy.csv", "-o", "copied.csv")
    assert Path("copied.csv").read_text() == Path("own.csv").read_text()


def test_data_without_ids_have_numbered_rows():
    path = Path("study/ml-test-data/test.csv")
    rows = list(csv.reader(io.StringIO(path.read_text())))
    path.write_text("".join(",".join(row[1:]) + "\n" for row in rows))
    Path("study/features/strong/test/ids.csv").unlink()
    predict("--data", str(path), "-o", "x.csv")
    assert [row["row"] for row in read(Path("x.csv").read_text())][:2] == ["1", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "a.csv", "--feature-folder", "b"), "not allowed with"),
        (("-o", "all.csv"), "-o takes the predictions of one data set, and there are 2"),
        (("-o", "x.xlsx"), "written as .csv or .parquet"),
        (("--model", "w", "--scale", "1..6"), "predicts on the scale A1 < A2"),
        (("--model", "nope"), "There is no model 'nope'"),
        (("--model", "../../etc"), "leaves the folder"),
        (("--data", "nowhere.csv"), "no file 'nowhere.csv'"),
        (("--feature-folder", "nowhere"), "no folder 'nowhere'"),
        (("--feature-folder", "study/features/weak/test", "-o", "x.csv"), "'weak_0'"),
        (("--data", "s.csv", "-o", "s.csv"), "is read, so it cannot be written too"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line(arguments, message):
    Path("s.csv").write_text("text\nHello\n")
    ran = run("predict", "-e", "study", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert not list(Path().rglob(".ordinate-*"))
    assert not Path("x.csv").exists()


def test_a_tampered_model_is_refused(made):
    path = Path("study/models") / made[1] / "calibration.json"
    path.write_text(path.read_text().replace("0", "1", 1))
    ran = run("predict", "-e", "study")
    assert ran.code == 2
    assert "calibration.json" in ran.err
    assert "was changed or damaged" in ran.err


def test_a_folder_in_use_says_by_whom():
    with hold_lock(Experiment.open("study").root, "ordinate tune"):
        ran = run("predict", "-e", "study")
    assert ran.code == 2
    assert "in use by process" in ran.err
