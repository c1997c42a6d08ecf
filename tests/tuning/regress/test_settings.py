"""Settings that only tables have: shifts, blends, networks."""

import pytest

from ordinate.errors import BadOption
from ordinate.tuning.regress.settings import Settings


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"models": "lightgmb"}, "Did you mean 'lightgbm'"),
        ({"alpha": 1.0}, "alpha=1.0"),
        ({"blend": "maybe"}, "--blend takes auto, always or never"),
        ({"lattice": "maybe"}, "--lattice takes"),
        ({"shift_share": 0.9}, "--shift-share takes a finite number of 0 to 0.5"),
        ({"models": "svr", "blend": "always"}, "two model types or more"),
        ({"models": "svr", "params": {"gp": {}}}, "hyperparameters of 'gp', which --models"),
        ({"models": "svr", "params": {"svr": {"wdth": 1}}}, "no parameter 'wdth'"),
        ({"models": "svr", "params": {"svr": {"cost": -1}}}, "cost of svr takes a number"),
        ({"models": "gp", "params": {"gp": {"kernel": 3}}}, "kernel of gp takes matern52"),
        ({"models": "mlp", "params": {"mlp": 3}}, "--params takes hyperparameters by model type"),
        ({"models": "svr", "device": "cuda"}, "name mlp in --models"),
        ({"epochs": 0}, "--epochs takes an integer of at least 1"),
        ({"nested": True, "folds": 0}, "--nested takes --folds"),
    ],
    ids=str,
)
def test_settings_are_checked_before_any_work(wrong, said):
    with pytest.raises(BadOption, match=said):
        Settings(**wrong)


def test_the_preset_decides_the_epochs_of_networks_unless_they_are_given():
    assert Settings(models="mlp", preset="minimal").get_training_options("mlp")["epochs"] == 60
    assert Settings(models="mlp", epochs=7).get_training_options("mlp")["epochs"] == 7
    given = Settings(models="mlp", params={"mlp": {"epochs": 2, "members": 3}})
    assert given.epochs == given.params["mlp"]["epochs"] == 2
    assert given.params["mlp"]["members"] == 3
    assert given.params["mlp"]["device"] == "cpu"
