import importlib.util
import json

import numpy as np
import optuna
import pytest
import torch

from ordinate.errors import BadOption, BadStore, MissingExtra, NotFitted
from ordinate.tuning.models.regressors import create_regressor, load_regressor
from ordinate.tuning.models.regressors.mlp import MLP
from ordinate.tuning.regress.settings import Settings

QUICK = {"epochs": 12, "members": 2, "width": 16, "depth": 1, "lr": 1e-2, "batch": 16}


def data(n=100, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 2))
    return x, np.sin(x[:, 0]) - 0.5 * x[:, 1]


def fitted(seed=0, progress=None, **params):
    return create_regressor("mlp", QUICK | params, seed=seed).fit(
        *data(), *data(40, 1), progress=progress
    )


def test_it_learns_and_tells_how():
    model = fitted(epochs=40)
    x, y = data(50, 2)
    assert np.sqrt(np.mean((model.predict(x) - y) ** 2)) < 0.5
    assert [step for step, _ in model.curve] == list(range(1, 41))
    assert 1 <= model.steps <= 40
    assert (model.spread(x) > 0).all()
    assert not model.notes


def test_networks_that_diverge_at_once_are_noted(tmp_path):
    model = fitted(lr=1e6, loss="mse", epochs=3)
    assert model.fitted.steps == (0, 0)
    (note,) = model.notes
    assert note.startswith("2 of 2 networks did not learn: no epoch made them better")
    model.save(tmp_path)
    assert load_regressor(tmp_path).notes == (note,)


def test_one_member_has_no_spread():
    assert fitted(members=1).spread(data(5, 2)[0]).tolist() == [0.0] * 5


def test_a_tick_ends_training():
    model = fitted(progress=lambda step, _: step == 4)
    assert model.stopped
    assert len(model.curve) == 4


def test_training_without_validation_runs_to_its_end():
    model = create_regressor("mlp", QUICK).fit(*data())
    assert model.steps == 12
    assert model.curve == []


def test_what_is_saved_is_loaded_whole(tmp_path):
    model = fitted(block="swiglu", bootstrap=True)
    model.save(tmp_path)
    again = load_regressor(tmp_path)
    x, _ = data(30, 2)
    assert again.params == model.params
    assert again.predict(x).tobytes() == model.predict(x).tobytes()
    assert again.spread(x).tobytes() == model.spread(x).tobytes()
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(BadStore, match="cannot be read"):
        load_regressor(tmp_path)


def test_the_same_seed_gives_the_same_result_whatever_the_threads():
    x, _ = data(30, 2)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(fitted(seed=3).predict(x).tobytes())
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert found[0] == found[1]
    assert fitted(seed=4).predict(x).tobytes() != found[0]


def test_every_point_of_the_space_can_be_trained():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(5):
        params = MLP.space(study.ask())
        assert params.keys() == MLP.defaults.keys()
        model = create_regressor("mlp", params | {"epochs": 1, "members": 1}).fit(
            *data(30), *data(9)
        )
        assert np.isfinite(model.predict(data(5)[0])).all()


def test_defaults_lie_in_the_space():
    trial = optuna.trial.FixedTrial(dict(MLP.defaults))
    assert MLP.space(trial) == MLP.defaults


def test_small_data_are_enough():
    x, y = data(12)
    assert np.isfinite(create_regressor("mlp", QUICK).fit(x[:, :1], y).predict(x[:, :1])).all()


def test_nothing_is_predicted_before_it_is_learned():
    with pytest.raises(NotFitted, match="call fit first"):
        create_regressor("mlp").spread(data()[0])
    with pytest.raises(BadOption, match="no parameter 'heads'"):
        create_regressor("mlp", {"heads": 8})
    with pytest.raises(BadOption, match="members of mlp takes an integer from 1"):
        fitted(members=0)


def test_torch_missing_names_the_extra(monkeypatch):
    monkeypatch.setattr("ordinate.tuning.models.base.find_spec", lambda _: None)
    assert importlib.util.find_spec("torch") is not None
    with pytest.raises(MissingExtra, match=r"pip install 'ordinate\[regression\]'"):
        create_regressor("mlp")


def test_networks_of_other_features_are_refused(tmp_path):
    fitted().save(tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"features": 3}))
    with pytest.raises(BadStore, match="does not hold a mlp model of 3 features"):
        load_regressor(tmp_path)


def test_the_device_is_that_of_training(monkeypatch):
    from ordinate.tuning.models.networks.batched_ensemble import NetworkEnsemble

    asked = []
    fit = NetworkEnsemble.fit
    monkeypatch.setattr(
        NetworkEnsemble, "fit", lambda *a, device, **k: (asked.append(device), fit(*a, **k))[1]
    )
    fitted(epochs=1, device="cuda")
    assert asked == ["cuda"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_a_device_that_is_not_there_is_refused_before_any_work():
    with pytest.raises(BadOption, match="device 'cuda' cannot be used"):
        Settings(models="mlp", device="cuda")


def test_a_device_is_for_networks():
    with pytest.raises(BadOption, match="name mlp in --model"):
        Settings(models="svr", device="cuda")
    with pytest.raises(BadOption, match="--device takes cpu or cuda"):
        Settings(models="mlp", device="tpu")
