"""Settings that every search has: checked before any work, and presets."""

import pytest
from search_cases import one_quick_task

from ordinate.errors import BadOption, MissingExtra
from ordinate.tuning.search.settings import EXECUTION_SETTINGS


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"models": "lojistic"}, "There is no model 'lojistic'"),
        ({"models": "auto,{model}"}, "auto alone"),
        ({"models": ""}, "There is no model ''"),
        ({"models": []}, "--models names no model"),
        ({"models": 5}, "--models takes names"),
        ({"preset": "huge"}, "--preset takes minimal, balanced or thorough"),
        ({"trials": 0}, "--trials takes an integer of at least 1"),
        ({"trials": 1.5}, "--trials takes"),
        ({"folds": 1}, "--folds takes 2 or more, not 1"),
        ({"folds": -1}, "--folds takes an integer of at least 0"),
        ({"jobs": 0}, "--jobs takes"),
        ({"seed": -1}, "--seed takes"),
        ({"timeout": -1.0}, "--timeout takes a finite number of at least 0"),
        ({"timeout": float("nan")}, "--timeout takes a finite number"),
        ({"params": {"none": {}}}, "--params has hyperparameters of 'none', which --models does"),
        ({"params": {"{model}": {"nothing": 1}}}, "nothing"),
        ({"params": 3}, "--params takes hyperparameters by model type"),
        ({"params": {"{model}": 3}}, "--params takes hyperparameters by model type"),
    ],
    ids=str,
)
def test_settings_are_checked_before_any_work(case, wrong, said):
    def name_model(value):
        if isinstance(value, dict):
            return {name_model(key): x for key, x in value.items()}
        return value.format(model=case.model) if isinstance(value, str) else value

    with pytest.raises(BadOption, match=said):
        case.make_settings(**{key: name_model(value) for key, value in wrong.items()})


def test_a_name_that_is_misspelt_is_suggested(case):
    with pytest.raises(BadOption, match=f"Did you mean '{case.model}'"):
        case.make_settings(models=case.model[:-1])


@pytest.mark.parametrize("preset", ["minimal", "balanced", "thorough"])
def test_presets_can_be_said_otherwise(case, preset):
    settings = type(case.make_settings())
    known = settings.PRESETS[preset]
    whole = settings(preset=preset)
    assert (whole.models, whole.trials, whole.folds) == (known.models, known.trials, known.folds)
    assert settings(preset=preset, folds=7, trials=2).folds == 7
    assert settings(preset=preset, folds=7, trials=2).trials == 2


def refuse_all_but(monkeypatch, settings, *installed):
    """Let the libraries of all other model types be missing."""

    def check(_, name):
        if name not in installed:
            raise MissingExtra(f"{name} is not there: pip install it")

    monkeypatch.setattr(settings, "check_model_type", classmethod(check))


@one_quick_task
def test_auto_does_without_what_is_not_installed(case, root, monkeypatch):
    settings = type(case.make_settings())
    refuse_all_but(monkeypatch, settings, case.model)
    chosen = settings(preset="thorough", trials=1, folds=3)
    assert chosen.model_types == (case.model,)
    notes = case.tune(root, chosen).notes
    first, *_ = chosen.missing
    advice = f"{first} is not there: pip install it"
    assert f"Not installed, so not tried: {', '.join(chosen.missing)}. {advice}" in notes
    refuse_all_but(monkeypatch, settings)
    with pytest.raises(MissingExtra, match="is not there: pip install it"):
        settings(preset="thorough")


def test_manners_of_working_decide_no_result(case):
    whole, plain = case.make_settings().to_dict(), case.make_settings().result_settings
    assert set(whole) - set(plain) == set(EXECUTION_SETTINGS)
    assert case.make_settings(jobs=2, timeout=3.0).result_settings == plain


def test_settings_are_given_whole_or_by_name(case):
    settings = type(case.make_settings())
    assert settings.of(None, case.quick) == case.make_settings()
    assert settings.of(case.make_settings(), {}) == case.make_settings()
    with pytest.raises(BadOption, match="Pass settings, or trials as keyword arguments, not both"):
        settings.of(case.make_settings(), {"trials": 3})
    with pytest.raises(BadOption, match=r"There is no setting 'trails'\. Did you mean 'trials'"):
        settings.of(None, {"trails": 3})
