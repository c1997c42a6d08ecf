import json

import numpy as np
import pytest
import torch

from ordinate.errors import BadInput, BadOption, BadStore
from ordinate.tuning.models import model_files
from ordinate.tuning.models.networks.batched_ensemble import (
    CONFIG,
    WEIGHTS,
    NetworkEnsemble,
    derive_seeds,
)
from ordinate.tuning.models.networks.residual_network import ResidualNetwork
from ordinate.tuning.models.networks.trainer import TrainingConfig

SHAPE = ResidualNetwork(3, width=16, depth=1)
QUICK = TrainingConfig(epochs=15, batch=16, lr=1e-2)


pytestmark = pytest.mark.usefixtures("one_thread")


def data(n=120, seed=0, shift=0.0):
    """Rows in units that are far from 0 and 1."""
    x = np.random.default_rng(seed).normal(size=(n, 3))
    y = 700.0 + 50.0 * (np.sin(x[:, 0]) + 0.3 * x[:, 1])
    return 1e4 + 30.0 * x + shift, y


def fitted(members=3, seed=0, **options):
    options = {"network": SHAPE, "training": QUICK, **options}
    return NetworkEnsemble.fit(data(), data(40, 1), seeds=derive_seeds(seed, members), **options)


def test_predictions_are_in_the_unit_of_the_target():
    found = fitted(training=TrainingConfig(epochs=40, batch=8, lr=1e-2))
    x, y = data(60, 2)
    assert found.members(x).shape == (3, 60)
    assert np.sqrt(np.mean((found.predict(x) - y) ** 2)) < 0.4 * y.std()
    assert found.predict(x) == pytest.approx(found.members(x).mean(axis=0))
    assert found.spread(x) == pytest.approx(found.members(x).std(axis=0, ddof=1))


def test_one_network_is_an_ensemble_of_one_member():
    one, three = fitted(1), fitted(3)
    x, _ = data(20, 2)
    assert one.spread(x).tolist() == [0.0] * 20
    assert one.predict(x) == pytest.approx(three.members(x)[0], rel=1e-5)


def test_members_do_not_depend_on_the_units_of_the_data():
    x, y = data()
    v, w = data(40, 1)
    plain = fitted(2)
    other = NetworkEnsemble.fit(
        (x * 8.0, y * 4.0),
        (v * 8.0, w * 4.0),
        seeds=derive_seeds(0, 2),
        network=SHAPE,
        training=QUICK,
    )
    rows, _ = data(20, 2)
    assert other.members(rows * 8.0) == pytest.approx(4.0 * plain.members(rows), rel=1e-6)


def test_members_drawn_again_have_their_own_rows_and_normalisation():
    found = fitted(3, bootstrap=True)
    means = {each.target.mean for each in found.scaled}
    assert len(means) == 3
    assert found.overall.target.mean == pytest.approx(data()[1].mean())
    assert not means & {found.overall.target.mean}
    x, y = data(60, 2)
    assert np.corrcoef(found.predict(x), y)[0, 1] > 0.6
    assert found.spread(x).mean() > 0


def test_the_same_seed_gives_the_same_bits_and_another_others():
    first, second = fitted(seed=5), fitted(seed=5)
    assert first.weights.numpy().tobytes() == second.weights.numpy().tobytes()
    assert not torch.equal(fitted(seed=6).weights, first.weights)
    assert len(set(derive_seeds(0, 16))) == 16


def test_a_checkpoint_is_taken_up(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fitted(checkpoint=path)
    told = []
    again = fitted(checkpoint=path, progress=told.append)
    assert told == [], "nothing is left to do"
    assert torch.equal(again.weights, fitted().weights)


def test_wrong_rows_and_members_are_refused():
    with pytest.raises(BadInput, match="know 3 features"):
        fitted(1).predict(np.zeros((4, 2)))
    with pytest.raises(BadOption, match="one member at least"):
        fitted(0)


def test_no_rows_have_no_predictions():
    assert fitted(2).predict(np.empty((0, 3))).shape == (0,)


# --- files ---------------------------------------------------------------------------------------


def changed(folder, **parts):
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | parts))


@pytest.fixture
def folder(tmp_path):
    fitted(2, bootstrap=True).save(tmp_path)
    return tmp_path


def test_what_is_saved_is_loaded_whole(folder):
    found, again = fitted(2, bootstrap=True), NetworkEnsemble.load(folder)
    x, _ = data(20, 2)
    assert sorted(path.name for path in folder.iterdir()) == [CONFIG, WEIGHTS]
    assert again.members(x).tobytes() == found.members(x).tobytes()
    for name in ("network", "training", "seeds", "steps", "stopped", "history"):
        assert getattr(again, name) == getattr(found, name)


def test_weights_that_do_not_fit_the_configuration_are_refused(folder):
    changed(folder, network=ResidualNetwork(3, width=17, depth=1).to_dict())
    with pytest.raises(BadStore, match=r"inlet\.weight is torch\.float32 \(2, 3, 16\)"):
        NetworkEnsemble.load(folder)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"seeds": [1]}, "weights of 2 members"),
        ({"scaled": []}, "weights of 2 members"),
        ({"network": {"features": 3, "block": "exec"}}, r"'network\.block' must be 'silu'"),
        ({"network": 7}, "'network' must be an object"),
        ({"training": {"lr": -1}}, "lr=-1"),
        (
            {"overall": {"means": [0], "stds": [1], "target": {"mean": 0, "std": 1}}},
            "another number",
        ),
        ({"steps": None}, "'steps' must be a list of integers"),
        ({"steps": [10**400, 1e999]}, "Infinity is no number"),
    ],
    ids=["seeds", "scaled", "block", "network", "training", "overall", "steps", "large"],
)
def test_a_configuration_that_is_none_is_refused(folder, parts, reason):
    changed(folder, **parts)
    with pytest.raises(BadStore, match=reason):
        NetworkEnsemble.load(folder)


def test_a_pickle_is_never_opened(folder):
    with (folder / WEIGHTS).open("wb") as file:
        torch.save({"inlet.weight": torch.zeros(1)}, file)
    with pytest.raises(BadStore, match="cannot be read"):
        NetworkEnsemble.load(folder)


def test_weights_that_are_not_finite_are_refused(folder):
    kept, _ = model_files.read_tensors(folder / WEIGHTS)
    kept["outlet.bias"][0] = torch.nan
    model_files.write_tensors(folder / WEIGHTS, kept, {})
    with pytest.raises(BadStore, match="not finite"):
        NetworkEnsemble.load(folder)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(BadStore, match=r"config\.json cannot be read"):
        NetworkEnsemble.load(tmp_path)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_cuda_predicts_what_the_cpu_predicts():
    found = fitted(2, device="cuda")
    x, _ = data(20, 2)
    assert found.members(x, device="cuda") == pytest.approx(found.members(x), rel=1e-4)
