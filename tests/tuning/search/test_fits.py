"""Fits: their outputs on disk, and what a killed run leaves of those that took long."""

import json

import numpy as np
import pytest
from search_cases import one_quick_task, read_untimed_files

from ordinate.tuning.search import fits
from ordinate.tuning.search.fits import FitOutputs, load_or_compute, remove_checkpoints, run_fit
from ordinate.tuning.search.task import Candidate

OUTPUTS = {
    "whole": FitOutputs(
        np.array([0.1, 1 / 3]), np.array([1.0, 2.0]), ("a note",), [(1, 0.5)], {"rows": 3}
    ),
    "plain": FitOutputs(np.zeros((2, 3))),
    "of no rows": FitOutputs(np.empty(0)),
}


@pytest.mark.parametrize("outputs", OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_are_stored_to_the_last_digit(tmp_path, outputs):
    outputs.save(tmp_path / "fit.npz")
    found = FitOutputs.load(tmp_path / "fit.npz")
    assert np.array_equal(found.predictions, outputs.predictions)
    assert (found.spread is None) == (outputs.spread is None)
    assert outputs.spread is None or np.array_equal(found.spread, outputs.spread)
    for name in ("notes", "curve", "facts"):
        assert getattr(found, name) == getattr(outputs, name)


@pytest.mark.parametrize(
    "change",
    [
        {"predictions": np.array([np.nan, 0.0])},
        {"predictions": np.array([0, 1])},
        {"predictions": np.array(["a", "b"])},
        {"spread": np.array([1.0])},
        {"spread": np.array([np.inf, 1.0])},
        {"about": np.frombuffer(b"{", np.uint8)},
        {"about": np.frombuffer(b"{}", np.uint8)},
        {"about": np.frombuffer(b"[]", np.uint8)},
        {"about": np.frombuffer(b'{"notes": [], "curve": [3], "facts": {}}', np.uint8)},
        {"predictions": np.array([{}, {}], object)},
    ],
    ids=str,
)
def test_a_file_that_holds_no_outputs_is_none(tmp_path, change):
    path = tmp_path / "fit.npz"
    OUTPUTS["whole"].save(path)
    with np.load(path) as stored:
        usual = dict(stored)
    np.savez(path, **usual | change)
    assert FitOutputs.load(path) is None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04damaged", b"text"])
def test_a_file_that_is_damaged_is_none(tmp_path, content):
    path = tmp_path / "fit.npz"
    assert FitOutputs.load(path) is None
    path.write_bytes(content)
    assert FitOutputs.load(path) is None


# --- checkpoints ---------------------------------------------------------------------------------


class Killed(BaseException):
    """Ends a run as a kill would."""


class FitCounter:
    """Counts the fits of a class, and kills the run at one of them."""

    def __init__(self, monkeypatch, fit_class):
        self.count, self.last = 0, None
        run = fit_class.run

        def counted(fit, kept):
            if self.count == self.last:
                raise Killed
            self.count += 1
            return run(fit, kept)

        monkeypatch.setattr(fit_class, "run", counted)


@pytest.fixture
def counter(case, monkeypatch):
    monkeypatch.setattr(fits, "CHECKPOINT_SECONDS", 0.0)
    return FitCounter(monkeypatch, case.get_fit_class())


def kill_in_first_trial(case, root, counter):
    """Kill a search after two folds of its first trial."""
    task = case.open_task(root)
    counter.last = 2 + (len(task.inputs) * len(task.folds) if task.screening_model else 0)
    with pytest.raises(Killed):
        case.tune(root)
    counter.last = None


def test_a_fit_that_took_long_is_made_once(case, root, counter):
    task = case.open_task(root)
    name = task.inputs[0]
    task.load_input(name)
    some = task.make_fold_fits(Candidate(name, case.model, {}))
    first, second = (task.workers.map(run_fit, some) for _ in range(2))
    assert counter.count == len(some) == len(list(root.glob("results/checkpoints/*.npz")))
    for one, two in zip(first, second, strict=True):
        assert np.array_equal(one.predictions, two.predictions)
    remove_checkpoints(some)
    assert not list(root.glob("results/checkpoints/*"))


@one_quick_task
def test_a_killed_search_goes_on_from_the_fits_that_took_long(case, root, finished, counter):
    case.tune(case.lay_out(root.parent / "whole"))
    whole, counter.count = counter.count, 0
    kill_in_first_trial(case, root, counter)
    assert len(list(root.glob("results/checkpoints/*.npz"))) == counter.count
    assert case.tune(root).to_dict() == finished[1].to_dict()
    assert counter.count == whole
    assert read_untimed_files(root) == read_untimed_files(finished[0])


@one_quick_task
def test_checkpoints_that_are_damaged_are_made_again(case, root, finished, counter):
    kill_in_first_trial(case, root, counter)
    for path in root.glob("results/checkpoints/*.npz"):
        path.write_bytes(b"damaged")
    assert case.tune(root).to_dict() == finished[1].to_dict()
    assert not (root / "results/checkpoints").exists()


def test_what_takes_no_time_leaves_no_checkpoint(case, root, monkeypatch):
    monkeypatch.setattr(fits, "CHECKPOINT_SECONDS", 1e9)
    kill_in_first_trial(case, root, FitCounter(monkeypatch, case.get_fit_class()))
    assert not list(root.glob("results/checkpoints/*"))


# --- records -------------------------------------------------------------------------------------


class Source:
    """Computes records, and counts how often."""

    def __init__(self, record):
        self.record, self.count = record, 0

    def __call__(self):
        self.count += 1
        return dict(self.record)


@pytest.fixture
def source():
    return Source({"value": 3, "failed": None})


def is_usable(record):
    return record.get("value") == 3


def load(path, source):
    return load_or_compute(path, is_usable, source)


def test_a_record_is_computed_once(tmp_path, source):
    path = tmp_path / "deep" / "record.json"
    assert load(path, source) == load(path, source) == source.record
    assert source.count == 1
    assert json.loads(path.read_text()).keys() == {"value", "failed", "digest"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: "{",
        lambda _: "[]",
        lambda _: "{}",
        lambda text: text.replace("3", "4"),
        lambda text: text.replace("value", "other"),
        lambda text: json.dumps(json.loads(text) | {"digest": None}),
        lambda text: json.dumps(json.loads(text) | {"more": 1}),
    ],
)
def test_a_record_that_is_not_as_it_was_written_is_computed_again(tmp_path, source, spoil):
    path = tmp_path / "record.json"
    load(path, source)
    whole = path.read_text()
    path.write_text(spoil(whole))
    assert load(path, source) == source.record
    assert source.count == 2
    assert path.read_text() == whole


def test_a_record_under_the_name_of_another_is_computed_again(tmp_path, source):
    load(tmp_path / "one.json", source)
    (tmp_path / "one.json").rename(tmp_path / "other.json")
    load(tmp_path / "other.json", source)
    assert source.count == 2


def test_a_record_that_is_of_no_use_is_computed_again(tmp_path, source):
    load_or_compute(tmp_path / "record.json", lambda _: True, Source({"value": 99}))
    assert load(tmp_path / "record.json", source) == source.record


def test_a_record_that_is_not_final_is_not_cached(tmp_path):
    source = Source({"value": 3, "final": False})
    assert load(tmp_path / "record.json", source) == {"value": 3}
    assert not list(tmp_path.iterdir())
