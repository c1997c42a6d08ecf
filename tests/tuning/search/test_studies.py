"""A study gives the same trials however often it is killed, and repeats none."""

import logging.handlers
import os
import signal
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import optuna
import pytest

from ordinate.errors import BadOption, BadStore, MissingExtra
from ordinate.tuning.experiment.safe_files import remove_leftovers
from ordinate.tuning.search import studies as kept
from ordinate.tuning.search.studies import Study

TOTAL = 14  # the last batch of four is not full
DEFAULTS = [{"kind": "tree", "depth": 3}]


def space(trial):
    """Suggest from a space that branches."""
    if trial.suggest_categorical("kind", ["line", "tree"]) == "line":
        return {"line": True, "slope": trial.suggest_float("slope", 1e-3, 10.0, log=True)}
    return {"line": False, "depth": trial.suggest_int("depth", 1, 9), "leaf": 2}


def value_of(params):
    return -abs(params["slope"] - 0.7) if params["line"] else -abs(params["depth"] - 6) / 3


def make(batch, one):
    """Make a trial as a search does: fail, be stopped on the way, or end with a value."""
    value = value_of(one.params)
    if one.params.get("depth") == 9:
        batch.finish(one.number, None, failed="too deep")
        return
    for step in range(3):
        if batch.report(one.number, step, value - 0.1 * (2 - step)):
            batch.finish(one.number, None, attributes={"stopped": step})
            return
    batch.finish(one.number, value, attributes={"half": value / 2})


def search(path, total=TOTAL, made=None, name="set/model", seed=5):
    study = Study.open(path, name, direction="maximize", seed=seed)
    for batch in study.iterate_batches(space, total, defaults=DEFAULTS):
        for one in batch.pending:
            make(batch, one)
            if made is not None:
                made.append(one.number)
        batch.close()
    return study


def plain_search(path, total, answer, direction="maximize"):
    """Search a space of one number, with an answer to each trial."""
    study = Study.open(path, "plain", direction=direction, seed=0)
    for batch in study.iterate_batches(lambda trial: {"x": trial.suggest_float("x", 0, 1)}, total):
        for one in batch.pending:
            answer(batch, one)
        batch.close()
    return study


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return search(tmp_path_factory.mktemp("undisturbed") / "studies.db").trials


# --- a process that kills itself, see `killed` ---------------------------------------------------


def killing_at(point):
    """Prepare the death of this process at a point of its work."""
    import optuna.storages._rdb.models as tables
    from optuna.storages import RDBStorage

    def die_at(count, function):
        calls = []

        def counted(*given, **named):
            calls.append(1)
            if len(calls) == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*given, **named)

        return counted

    if point == "making tables":
        create = tables.BaseModel.metadata.create_all
        tables.BaseModel.metadata.create_all = lambda engine: (create(engine), die_at(1, None)())
    if point == "before the study is declared":
        kept.TrialFile.declare_settings = die_at(1, kept.TrialFile.declare_settings)
    if point == "in the first batch":
        globals()["make"] = die_at(3, make)
    if point == "in a later batch":
        globals()["make"] = die_at(11, make)
    if point == "between two writes":
        kept.TrialFile.add = die_at(7, kept.TrialFile.add)
    if point == "in a transaction":
        way = "_set_trial_intermediate_value_without_commit"
        setattr(RDBStorage, way, die_at(17, getattr(RDBStorage, way)))


class Printing(list):
    def append(self, number):
        print(number, flush=True)  # noqa: T201 - the test reads it


def killed(path, point):
    """Search in a process that is killed at a point, and return the trials that it made."""
    script = [sys.executable, __file__, str(path), point]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return [int(line) for line in done.stdout.split()]


def states_in(path):
    """Return the states of trials as the file has them."""
    file = sqlite3.connect(path)
    states = {state for (state,) in file.execute("select state from trials")}
    file.close()
    return states


@pytest.mark.parametrize(
    ("point", "written"),
    [
        ("making tables", None),
        pytest.param("before the study is declared", 0, marks=pytest.mark.slow),
        pytest.param("in the first batch", 0, marks=pytest.mark.slow),
        ("in a later batch", 8),
        ("between two writes", 6),
        ("in a transaction", 6),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_killed_search_goes_on_to_the_same_end(tmp_path, undisturbed, point, written):
    path = tmp_path / "results" / "studies.db"
    killed(path, point)
    remove_leftovers(tmp_path)
    if written is None:
        assert list(path.parent.iterdir()) == []
    else:
        assert states_in(path) <= {"COMPLETE", "PRUNED", "FAIL"}
        study = Study.open(path, "set/model", direction="maximize", seed=5)
        assert study.trials == undisturbed[:written]
    again = []
    assert search(path, made=again).trials == undisturbed
    assert again == list(range(written or 0, TOTAL))
    assert [file.name for file in path.parent.iterdir()] == ["studies.db"]


# --- the same trials -----------------------------------------------------------------------------


def test_the_same_seed_and_name_give_the_same_trials(tmp_path, undisturbed):
    assert search(tmp_path / "again.db").trials == undisturbed
    others = [
        search(tmp_path / "seed.db", seed=6).trials,
        search(tmp_path / "name.db", name="set/other").trials,
    ]
    for other in others:
        assert [one.params for one in other] != [one.params for one in undisturbed]


def test_trials_do_not_depend_on_how_texts_are_hashed(tmp_path, undisturbed):
    path = tmp_path / "studies.db"
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": other}
    script = [sys.executable, __file__, str(path), "nowhere"]
    done = subprocess.run(script, check=True, capture_output=True, env=environment)
    assert done.stderr == b""
    study = Study.open(path, "set/model", direction="maximize", seed=5)
    assert study.trials == undisturbed


def test_the_order_in_which_a_batch_is_finished_changes_nothing(tmp_path, undisturbed):
    study = Study.open(tmp_path / "s.db", "set/model", direction="maximize", seed=5)
    for batch in study.iterate_batches(space, TOTAL, defaults=DEFAULTS):
        for one in reversed(batch.pending):
            make(batch, one)
        batch.close()
    assert study.trials == undisturbed


def test_the_search_learns(undisturbed):
    """Else the other tests would compare random resamples."""
    states = {one.state for one in undisturbed}
    assert states == {"complete", "pruned", "failed"}
    assert len({str(one.params) for one in undisturbed}) > TOTAL / 2


@pytest.mark.parametrize("first", [3, 4, 6])
def test_raising_the_total_goes_on_as_if_it_had_been_so(tmp_path, undisturbed, first):
    path = tmp_path / "studies.db"
    assert search(path, first).trials == undisturbed[:first]
    made = []
    assert search(path, made=made).trials == undisturbed
    assert made == list(range(first, TOTAL))
    again = []
    search(path, made=again)
    search(path, 2, made=again)
    assert again == []


def test_studies_of_one_file_do_not_meet(tmp_path, undisturbed):
    path = tmp_path / "studies.db"
    search(path, 5, name="set/other")
    assert search(path).trials == undisturbed
    assert len(Study.open(path, "set/other", direction="maximize", seed=5).trials) == 5


def test_defaults_come_first(tmp_path):
    defaults = [{"x": 0.25 + k / 100} for k in range(6)]  # more than a batch
    study = Study.open(tmp_path / "s.db", "s", direction="minimize", seed=0)
    asked = []
    for batch in study.iterate_batches(
        lambda trial: {"x": trial.suggest_float("x", 0, 1)}, 8, defaults=defaults
    ):
        for one in batch.pending:
            asked.append(one.params)
            batch.finish(one.number, one.params["x"])
        batch.close()
    assert asked[:6] == defaults
    assert len(asked) == 8
    assert asked[6] not in defaults


# --- what a batch knows --------------------------------------------------------------------------


def test_pruning_looks_at_earlier_batches_alone(tmp_path):
    told = []

    def answer(batch, one):
        level = 0.5 if one.number < 8 else float(one.number - 9)  # -1, 0, 1, 2, then better
        told.append(batch.report(one.number, 0, level))
        batch.finish(one.number, None if told[-1] else level)

    plain_search(tmp_path / "s.db", 16, answer)
    # Eight values of 0.5 judge the third batch; its better ones come too late for each other.
    # They do judge the fourth, whose values are all above the median.
    assert told == [False] * 8 + [True, True, False, False] + [False] * 4


def test_a_stopped_trial_keeps_its_steps_and_has_no_value(tmp_path):
    def answer(batch, one):
        level = 1.0 if one.number < 8 else 0.0
        stop = batch.report(one.number, 0, level) or batch.report(one.number, 1, level)
        batch.finish(one.number, None if stop else level)

    trials = plain_search(tmp_path / "s.db", 12, answer).trials
    assert [one.state for one in trials] == ["complete"] * 8 + ["pruned"] * 4
    assert trials[0].steps == {0: 1.0, 1: 1.0}
    assert (trials[-1].value, trials[-1].steps, trials[-1].reason) == (None, {0: 0.0}, None)


def test_for_a_cost_pruning_stops_what_is_higher(tmp_path):
    told = []

    def answer(batch, one):
        level = 0.0 if one.number < 8 else float(one.number % 2)
        told.append(batch.report(one.number, 0, level))
        batch.finish(one.number, level)

    plain_search(tmp_path / "s.db", 12, answer, direction="minimize")
    assert told == [False] * 8 + [False, True, False, True]


def test_a_value_that_is_undefined_on_the_way_is_passed_over(tmp_path):
    def answer(batch, one):
        assert batch.report(one.number, 0, float("nan")) is False
        batch.finish(one.number, 1.0)

    assert plain_search(tmp_path / "s.db", 1, answer).trials[0].steps == {}


@pytest.mark.parametrize(("direction", "best"), [("maximize", 2), ("minimize", 1)])
def test_the_best_is_the_first_of_equals_in_the_direction(tmp_path, direction, best):
    values = [0.5, 0.1, 0.9, 0.1, 0.9]

    def answer(batch, one):
        batch.finish(one.number, values[one.number])

    study = plain_search(tmp_path / "s.db", 5, answer, direction=direction)
    assert study.best().number == best


@pytest.mark.parametrize("unit", [1.0, 1e-17, 1e17])
def test_the_unit_of_values_does_not_matter_for_the_best(tmp_path, unit):
    values = [0.5, 0.3, 0.2, 0.2 * (1 + 1e-15), 0.4]

    def answer(batch, one):
        batch.finish(one.number, unit * values[one.number])

    study = plain_search(tmp_path / "s.db", 5, answer, direction="minimize")
    assert study.best().number == 2


def test_what_is_drawn_may_depend_on_another_name(tmp_path):
    def space(trial):
        return {"x": trial.suggest_float("x", 0.0, 1.0)}

    def drawn(name, drawn_by):
        study = Study.open(tmp_path / "s.db", name, direction="minimize", seed=0, drawn_by=drawn_by)
        return [one.params for one in next(iter(study.iterate_batches(space, 4))).pending]

    assert drawn("a", "same") == drawn("b", "same")
    assert drawn("a", None) != drawn("b", None)


def test_failed_trials_are_kept_with_their_reason(tmp_path):
    def answer(batch, one):
        if one.number == 0:
            batch.finish(0, None, failed="kappa is undefined", attributes={"fold": 2})
        else:
            batch.finish(one.number, float("nan"))

    study = plain_search(tmp_path / "s.db", 6, answer)
    assert study.best() is None
    assert {one.state for one in study.trials} == {"failed"}
    first, second, *_ = study.trials
    assert (first.reason, first.value) == ("kappa is undefined", None)
    assert first.attributes == {"fold": 2}
    assert second.reason == "its value is undefined"


def test_params_are_what_the_space_returned(undisturbed):
    for one in undisturbed:
        expected = {"line", "slope"} if one.params["line"] else {"line", "depth", "leaf"}
        assert set(one.params) == expected
    assert undisturbed[0].params == {"line": False, "depth": 3, "leaf": 2}


def test_a_batch_that_is_left_unfinished_is_written_up_to_the_gap_and_asked_for_again(
    tmp_path, undisturbed
):
    study = Study.open(tmp_path / "s.db", "set/model", direction="maximize", seed=5)
    for batch in study.iterate_batches(space, TOTAL, defaults=DEFAULTS):
        for one in batch.pending:
            if one.number != 6:  # out of time, say
                make(batch, one)
        batch.close()
    assert study.trials == undisturbed[:6]
    assert search(tmp_path / "s.db").trials == undisturbed


def test_trials_that_are_not_open_are_refused(tmp_path):
    study = Study.open(tmp_path / "s.db", "s", direction="maximize", seed=0)
    batch = next(study.iterate_batches(space, 2))
    batch.finish(0, 1.0)
    with pytest.raises(BadOption, match=r"Trial 0 is not open in this batch; open are: 1\."):
        batch.finish(0, 1.0)
    with pytest.raises(BadOption, match="Trial 7 is not open"):
        batch.report(7, 0, 1.0)


def test_attributes_that_cannot_be_kept_are_refused(tmp_path):
    study = Study.open(tmp_path / "s.db", "s", direction="maximize", seed=0)
    batch = next(study.iterate_batches(space, 2))
    with pytest.raises(BadOption, match="The attributes of trial 0 cannot be kept as JSON"):
        batch.finish(0, 1.0, attributes={"x": float("nan")})
    with pytest.raises(BadOption, match="'reason' is no name for an attribute"):
        batch.finish(0, 1.0, attributes={"reason": "x"})


# --- the file ------------------------------------------------------------------------------------


def test_optuna_reads_the_file(tmp_path, undisturbed):
    path = tmp_path / "studies.db"
    search(path)
    with kept.silence_optuna():
        study = optuna.load_study(study_name="set/model", storage=f"sqlite:///{path}")
        assert len(study.trials) == TOTAL
        complete = [one.value for one in undisturbed if one.state == "complete"]
        assert study.best_value == max(complete)
        assert study.trials[0].params == {"kind": "tree", "depth": 3}
        study._storage._backend.engine.dispose()


def test_optuna_stays_silent_and_keeps_its_settings(tmp_path):
    before = optuna.logging.get_verbosity()
    lines = logging.handlers.BufferingHandler(1_000)
    logging.getLogger("optuna").addHandler(lines)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            search(tmp_path / "studies.db")
    finally:
        logging.getLogger("optuna").removeHandler(lines)
    assert seen == []
    assert lines.buffer == []
    assert optuna.logging.get_verbosity() == before


def test_a_path_may_have_any_letters(tmp_path):
    path = tmp_path / "a {b} %20 ?x=1 #é" / "studies.db"
    assert len(search(path, 2).trials) == 2
    assert [file.name for file in path.parent.iterdir()] == ["studies.db"]


@pytest.mark.parametrize(
    "changes",
    [{"direction": "minimize"}, {"seed": 1}, {"batch": 8}],
    ids=lambda one: next(iter(one)),
)
def test_a_study_that_was_begun_otherwise_is_refused(tmp_path, changes):
    how = {"direction": "maximize", "seed": 0, "batch": 4}
    Study.open(tmp_path / "s.db", "s", **how)
    with pytest.raises(BadStore, match=r"The study s in .* was begun to maximize with .*, not to"):
        Study.open(tmp_path / "s.db", "s", **how | changes)


def test_a_space_that_changed_in_the_middle_of_a_batch_is_refused(tmp_path):
    path = tmp_path / "studies.db"
    search(path, 6)
    study = Study.open(path, "set/model", direction="maximize", seed=5)
    changed = study.iterate_batches(lambda trial: {"x": trial.suggest_float("x", 0, 1)}, 8)
    with pytest.raises(BadStore, match=r"Trial 4 .* was made with .*, and would now be") as told:
        next(changed)
    assert "another --seed" in str(told.value)
    assert f"remove {path}" in str(told.value)


def test_a_default_off_the_space_is_refused(tmp_path):
    study = Study.open(tmp_path / "s.db", "s", direction="maximize", seed=0)
    for default in ({"kind": "tree", "depth": 30}, {"kind": "bush"}):
        with pytest.raises(BadOption, match="Trial 0 of the study s cannot be asked for"):
            next(study.iterate_batches(space, 4, defaults=[default]))


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "s.db").write_bytes(b"no database at all, but long enough" * 100)
    with pytest.raises(BadStore, match=r"s\.db cannot be used for studies: .*not a database"):
        Study.open(tmp_path / "s.db", "s", direction="maximize", seed=0)


def test_a_study_of_another_program_is_refused(tmp_path):
    path = tmp_path / "s.db"
    Study.open(path, "s", direction="maximize", seed=0)
    with kept.silence_optuna():
        storage = kept._open_storage(path)
        optuna.create_study(storage=storage, study_name="foreign").ask()
        optuna.load_study(storage=storage, study_name="s").ask()
    with pytest.raises(BadStore, match=r"foreign in .* was not begun by Ordinate"):
        Study.open(path, "foreign", direction="minimize", seed=0)
    with pytest.raises(BadStore, match="has trials that are not finished"):
        Study.open(path, "s", direction="maximize", seed=0)


def test_a_batch_of_nothing_is_refused(tmp_path):
    with pytest.raises(BadOption, match="one trial or more, not 0"):
        Study.open(tmp_path / "s.db", "s", direction="maximize", seed=0, batch=0)
    assert list(tmp_path.iterdir()) == []


def test_without_optuna_the_way_to_install_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ordinate\[tune\]'"):
        Study.open(tmp_path / "s.db", "s", direction="maximize", seed=0)


if __name__ == "__main__":
    killing_at(sys.argv[2])
    search(Path(sys.argv[1]), made=Printing())
