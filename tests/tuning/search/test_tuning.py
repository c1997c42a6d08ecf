"""A search as a whole, of either task: what it writes, what decides it, and how it goes on."""

import json

import pytest
from search_cases import CASES, one_quick_task, read_untimed_files

from ordinate.errors import BadInput, BadOutput, BadStore, FolderLocked
from ordinate.render import render
from ordinate.tuning.experiment.lock import hold_lock
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.search import hyperparameter_search, saved_models
from ordinate.tuning.search.tuning import RunOrigin, keep_or_make_folder

FILES = ["results.json", "summary.md", "test_predictions.json", "trials.json"]

# --- what comes out ------------------------------------------------------------------------------


def test_the_winner_is_saved_named_and_tested(case, finished):
    root, result = finished
    assert result.folder == root
    assert result.winner in result.finalists
    assert case.load(root).name == result.winner.name
    (test,) = result.tests
    sign = 1.0 if result.report.direction == "minimize" else -1.0
    tested = result.report.get_estimate(test.evaluation).value
    assert test.optimism == pytest.approx(sign * (tested - result.winner.value))


def test_the_files_of_a_run_hold_the_result_and_are_the_latest_ones(finished):
    root, result = finished
    plain = {
        "results.json": result.to_dict(),
        "trials.json": result.list_trials(),
        "test_predictions.json": result.list_test_predictions(),
    }
    own = root / "results" / "runs" / result.run
    for name in FILES:
        latest = (root / "results" / name).read_text()
        assert (own / name).read_text() == latest
        if name in plain:
            stored = json.loads(latest, parse_constant=pytest.fail)
            assert stored == json.loads(json.dumps(plain[name]))
            assert (stored["task"], stored["run"]) == (result.report.task, result.run)
    assert plain["results.json"]["winner"] == result.winner.name


def test_trials_are_listed_with_what_came_out_after_each_fold(finished):
    _, result = finished
    for study in result.list_trials()["studies"]:
        assert [trial["number"] for trial in study["trials"]] == [0, 1, 2]
        complete = [trial for trial in study["trials"] if trial["state"] == "complete"]
        assert complete
        assert all(trial["after_folds"].keys() == {"1", "2"} for trial in complete)


def test_nothing_of_the_test_is_stored_with_a_trial(finished):
    _, result = finished
    for study in result.studies:
        for trial in study.trials:
            assert not [name for name in trial.attributes if "test" in name]


def test_every_model_and_run_has_a_manifest_that_holds(finished):
    root, result = finished
    for one in result.finalists:
        folder = root / "models" / one.name
        manifest = Manifest.read(folder)
        manifest.verify(folder)
        assert (manifest.artifact, manifest.name) == ("model", one.name)
        assert manifest.config["run"] == result.run
        assert manifest.config["cross_validation"] == one.value
    own = root / "results" / "runs" / result.run
    Manifest.read(own).verify(own)


def test_a_run_is_recorded_by_its_command_and_a_file_that_repeats_it(case, copied, finished):
    origin = RunOrigin("ordinate …", "seed = 0\n")
    result = case.tune(copied, origin=origin)
    own = copied / "results" / "runs" / result.run
    assert (own / "config.toml").read_text() == origin.config
    assert Manifest.read(own).command == origin.command
    assert result.run == finished[1].run


# --- again, and on -------------------------------------------------------------------------------


def test_the_same_again_makes_no_fit_and_changes_no_file(case, copied, finished, monkeypatch):
    before = read_untimed_files(copied)

    def refused(*_):
        raise AssertionError("a fit was made")

    monkeypatch.setattr(case.get_fit_class(), "run", refused)
    again = case.tune(copied)
    assert again.to_dict() == finished[1].to_dict()
    assert read_untimed_files(copied) == before
    assert not list(copied.rglob(".ordinate-*"))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.name, marks=pytest.mark.slow if case.name == "regression" else []
        )
        for case in CASES  # the quick run has the other, and a third task, in processes
    ],
    scope="session",
)
def test_more_processes_change_nothing(case, root, finished):
    case.tune(root, case.make_settings(jobs=2))
    assert read_untimed_files(root) == read_untimed_files(finished[0])


@one_quick_task
def test_more_trials_go_on_from_those_that_are_there(case, root, finished, monkeypatch):
    case.tune(root, case.make_settings(trials=1))
    made, finish = [], hyperparameter_search._finish_trial

    def logged(task, batch, trial):
        made.append(trial.pending.number)
        finish(task, batch, trial)

    monkeypatch.setattr(hyperparameter_search, "_finish_trial", logged)
    more = case.tune(root)
    assert set(made) == {1, 2}
    assert more.to_dict() == finished[1].to_dict()


@one_quick_task
def test_fewer_trials_than_there_are_give_the_result_of_fewer(case, copied, finished):
    case.tune(copied, case.make_settings(trials=5))
    assert case.tune(copied).to_dict() == finished[1].to_dict()


@one_quick_task
def test_another_seed_is_another_search(case, root, finished):
    other = case.tune(root, case.make_settings(seed=1))
    assert other.run != finished[1].run
    assert other.winner.value != finished[1].winner.value


class Killed(BaseException):
    """Ends a run as a kill would."""


@one_quick_task
def test_a_kill_before_a_model_has_its_name_leaves_nothing_of_it(case, root, finished, monkeypatch):
    def killed(*_, **__):
        raise Killed("now")

    with monkeypatch.context() as patch:
        patch.setattr(saved_models, "_write_model", killed)
        with pytest.raises(Killed, match="now"):
            case.tune(root)
    assert not list((root / "models").glob("[!.]*"))
    case.tune(root)
    assert not list(root.rglob(".ordinate-*"))
    assert read_untimed_files(root) == read_untimed_files(finished[0])


# --- what decides --------------------------------------------------------------------------------


@one_quick_task
@pytest.mark.parametrize("where", ["apart", "in one folder"])
def test_what_is_tested_on_decides_nothing(case, root, copied, finished, where):
    first, place = finished[1], root if where == "apart" else copied
    case.change_test(place, seed=1)
    second = case.tune(place)
    for one, two in zip(first.studies, second.studies, strict=True):
        assert one.list_trials() == two.list_trials()
    both = [result.to_dict() for result in (first, second)]
    for key in ("winner", "winning", "screening", "studies", "ensemble"):
        assert both[0][key] == both[1][key]
    assert both[0]["tests"] != both[1]["tests"]
    models = [
        {name: x for name, x in read_untimed_files(folder).items() if name.startswith("models/")}
        for folder in (finished[0], place)
    ]
    assert models[0] == models[1]


def test_given_hyperparameters_are_taken_whole_and_once(case, root):
    known = dict(case.make_settings(params={case.model: {}}).params[case.model])
    settings = case.make_settings(models=case.model, trials=9, params={case.model: {}})
    (study,) = case.tune(root, settings).studies
    assert [trial.params for trial in study.trials] == [known]


# --- what is refused -----------------------------------------------------------------------------


def test_a_second_run_is_told_who_holds_the_folder(case, root):
    with hold_lock(root, "the first"), pytest.raises(FolderLocked, match="the first"):
        case.tune(root)
    assert not (root / "results").exists()


@pytest.mark.parametrize("name", FILES)
def test_files_that_no_search_wrote_are_not_replaced(case, root, name):
    (root / "results").mkdir()
    (root / "results" / name).write_text("my own")
    before = read_untimed_files(root)
    with pytest.raises(BadOutput, match=r"was not written by a search.* another folder with -e"):
        case.tune(root)
    assert read_untimed_files(root) == before


@one_quick_task
def test_studies_that_are_damaged_begin_anew_once_they_are_moved_away(case, copied, finished):
    path = copied / "results" / "studies.db"
    path.write_text("no database")
    with pytest.raises(BadStore, match=r"not a database\. If it is damaged, move it away"):
        case.tune(copied)
    path.rename(copied / "moved.db")
    assert case.tune(copied).to_dict() == finished[1].to_dict()


def test_a_search_in_which_all_trials_failed_says_why(case, root, monkeypatch):
    fit_class = case.get_fit_class()
    run = fit_class.run

    def failed(self, kept):
        if self.checkpoint is None or "-0" not in self.checkpoint:
            return run(self, kept)
        raise BadInput("the moon is full")

    settings = case.make_settings(models=case.model, trials=1)
    monkeypatch.setattr(fit_class, "run", failed)
    with pytest.raises(BadInput, match="the moon is full"):
        case.tune(root, settings)


def test_a_trial_that_failed_is_noted_with_its_reason(case, root, monkeypatch):
    fit_class = case.get_fit_class()
    run = fit_class.run

    def failed(self, kept):
        if self.model_type != case.model:
            raise BadInput("the moon is full")
        return run(self, kept)

    monkeypatch.setattr(fit_class, "run", failed)
    result = case.tune(root, case.make_settings(trials=1))
    assert result.winner.model_type == case.model
    assert [one.best is None for one in result.studies] == [False, True]
    assert any("1 of 1 trials failed: the moon is full" in note for note in result.notes)


# --- folders -------------------------------------------------------------------------------------


def test_a_temporary_folder_lives_as_long_as_the_result(tmp_path):
    class Kept:
        pass

    result = Kept()
    with keep_or_make_folder(None) as (folder, tie):
        assert tie(result) is result
    assert folder.is_dir()
    del result
    assert not folder.exists()
    with pytest.raises(BadInput, match="no"), keep_or_make_folder(None) as (folder, _):
        raise BadInput("no")
    assert not folder.exists()
    with keep_or_make_folder(tmp_path) as (folder, tie):
        assert tie(result := Kept()) is result
    assert folder == tmp_path


def test_a_folder_has_the_searches_of_one_task(case, tmp_path):
    root = case.lay_out(tmp_path / "own")
    (root / "results/runs").mkdir(parents=True)
    (root / "results/results.json").write_text('{"task": "tune_something"}')
    with pytest.raises(BadOutput, match=r"has the results of ordinate\.tune_something"):
        case.tune(root, case.make_settings())


# --- dry runs ------------------------------------------------------------------------------------


@one_quick_task
@pytest.mark.parametrize("nested", [False, True])
def test_a_plan_counts_at_least_the_fits_of_the_search(case, root, monkeypatch, nested):
    settings = case.make_settings(nested=nested, trials=2)
    plan = case.plan(root, settings)
    made, fit_class = [], case.get_fit_class()
    run = fit_class.run

    def counted(self, kept):
        made.append(self)
        return run(self, kept)

    monkeypatch.setattr(fit_class, "run", counted)
    case.tune(root, settings)
    assert len(made) <= sum(plan.fits.values())
    assert ("nested" in plan.fits) == nested


def test_a_plan_writes_nothing(case, root):
    before = read_untimed_files(root)
    case.plan(root, case.make_settings())
    assert read_untimed_files(root) == before


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_every_form_is_written(case, root, form):
    plan = case.plan(root, case.make_settings(jobs=2))
    assert render(plan, form)
    if form == "text":
        said = " ".join(render(plan, form).split())
        assert f"At most {sum(plan.fits.values())} fits" in said
        assert "Nothing was written." in said
        assert f"Models: {', '.join(plan.settings.models)}, 6 trials in all" in said
        assert "2 processes" in said
        assert "Test data: test." in said
