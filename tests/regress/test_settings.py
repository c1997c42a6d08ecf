"""Settings of a search: checked before any work, and presets."""

import pytest
from surrogates import smooth

from ordinate.errors import BadOption
from ordinate.regress import settings
from ordinate.regress.settings import PRESETS, Settings
from ordinate.regress.tuning import tune


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": "lightgmb"}, "Did you mean 'lightgbm'"),
        ({"model": "auto,svr"}, "auto alone"),
        ({"preset": "huge"}, "--preset takes minimal, balanced or thorough"),
        ({"trials": 0}, "--trials takes an integer of at least 1"),
        ({"folds": 1}, "--folds takes 2 or more, or 0"),
        ({"jobs": 0}, "--jobs takes"),
        ({"timeout": -1.0}, "--timeout takes a finite number of at least 0"),
        ({"alpha": 1.0}, "alpha=1.0"),
        ({"blend": "maybe"}, "--blend takes auto, always or never"),
        ({"lattice": "maybe"}, "--lattice takes"),
        ({"shift_share": 0.9}, "--shift-share takes a finite number of 0 to 0.5"),
        ({"model": "svr", "blend": "always"}, "two model types or more"),
        ({"model": "svr", "fixed": {"gp": {}}}, "parameters of gp"),
    ],
)
def test_settings_are_checked_before_any_work(wrong, said):
    with pytest.raises(BadOption, match=said):
        Settings(**wrong)


def test_presets_can_be_said_otherwise():
    assert Settings(preset="minimal").folds == PRESETS["minimal"].folds
    assert Settings(preset="minimal", folds=7).folds == 7


def test_auto_does_without_networks_where_torch_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "list_available_types", lambda: ("poly_ridge", "svr"))
    asked = Settings(preset="minimal", folds=2)
    assert asked.model_types == ("poly_ridge", "svr")
    result = tune(smooth(40), tmp_path, asked)
    assert any("Not installed, so not tried: hist_boosting" in note for note in result.notes)
