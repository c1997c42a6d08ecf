import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ordinate.errors import BadOption, BadStore, NoItems
from ordinate.summaries.normalization import Normalization
from ordinate.tuning.models import model_files
from ordinate.tuning.models.networks.residual_network import ResidualNetwork
from ordinate.tuning.models.networks.trainer import DeviceData, Trainer, TrainingConfig

UNIT = Normalization(mean=600.0, std=100.0)
QUICK = TrainingConfig(epochs=6, batch=16, lr=5e-3)
SHAPE = ResidualNetwork(2, width=8, depth=1)


pytestmark = pytest.mark.usefixtures("one_thread")


def part(members, rows=50, seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, 2)).astype(np.float32)
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1]
    features, targets = torch.tensor(x), torch.tensor(y)
    return DeviceData(features.expand(members, -1, -1), targets.expand(members, -1))


def trainer(seeds=(0,), training=QUICK, network=SHAPE):
    return Trainer(network, training, list(seeds), [UNIT] * len(seeds))


def fitted(seeds=(0,), training=QUICK, network=SHAPE, **options):
    count = len(seeds)
    return trainer(seeds, training, network).fit(part(count), part(count, 30, 1), **options)


def state(of):
    """Everything that training leaves behind."""
    numbers = of.rmse.tolist(), of.steps.tolist(), of.running.tolist(), of.epoch, of.history
    moments = {name: value.numpy().tobytes() for name, value in of.moments.items()}
    return (
        numbers,
        of.optimizer_steps,
        of.best.numpy().tobytes(),
        of.weights.detach().numpy().tobytes(),
        moments,
    )


# --- learning ------------------------------------------------------------------------------------


def test_training_learns():
    training, network = replace(QUICK, epochs=60, batch=8, lr=1e-2), replace(SHAPE, width=32)
    found = fitted((0,), training, network)
    assert found.rmse[0] < 0.35
    assert trainer(network=network).validate(part(1, 30, 1))[0] > 0.7


def test_a_step_is_that_of_adamw_with_a_clipped_gradient():
    training = replace(QUICK, epochs=3, batch=50, clip=0.05, weight_decay=0.1)
    data, found = part(2), trainer((0, 1), training)
    peers = [torch.nn.Parameter(row.clone()[None]) for row in found.best]
    for peer in peers:
        optimizer = torch.optim.AdamW([peer], lr=training.lr, weight_decay=0.1)
        for step in range(3):
            optimizer.zero_grad()
            optimizer.param_groups[0]["lr"] = training.compute_rate(step, 3)
            (SHAPE(peer, data.features[:1]) - data.targets[:1]).square().mean().backward()
            assert torch.nn.utils.clip_grad_norm_([peer], 0.05) > 0.05
            optimizer.step()
    for _ in range(3):
        found.train_epoch(data)
    assert torch.allclose(found.weights, torch.cat(peers), atol=1e-5)


def test_every_member_equals_the_network_trained_alone():
    training = replace(QUICK, clip=0.5)
    network = replace(SHAPE, dropout=0.25, block="swiglu")
    together = fitted((3, 4, 5), training, network)
    for k, seed in enumerate((3, 4, 5)):
        alone = fitted((seed,), training, network)
        assert torch.allclose(together.best[k], alone.best[0], atol=1e-5)
        assert together.rmse[k] == pytest.approx(alone.rmse[0], abs=1e-6)


def test_the_training_error_is_a_mean_over_rows_not_over_batches():
    data = part(2, 50)  # batches of 16, 16, 16 and 2
    found = trainer((0, 1), replace(QUICK, lr=1e-30, weight_decay=0.0))
    errors = found.predict(found.best, data) - data.targets.numpy()
    expected = np.sqrt(np.mean(errors**2, axis=1))
    assert found.train_epoch(data) == pytest.approx(expected, rel=1e-5)


def test_each_member_sees_the_rows_in_its_own_order():
    seen = []
    found = trainer((0, 1))
    found._take_step = lambda *given: seen.append(given[1]) or torch.zeros(2)
    found.train_epoch(part(2))
    first, second = torch.cat(seen, dim=1)
    assert not torch.equal(first, second)
    assert torch.equal(first.sort().values, second.sort().values)
    seen.clear()
    found.train_epoch(part(2))
    assert not torch.equal(torch.cat(seen, dim=1)[0], first)


def test_the_robust_loss_cares_less_for_outliers():
    answers, targets = torch.zeros(1, 2), torch.tensor([[0.05, 10.0]])
    plain = TrainingConfig(loss="mse").losses(answers, targets)[0].tolist()
    robust = TrainingConfig(loss="huber", huber=0.1).losses(answers, targets)[0].tolist()
    assert plain == pytest.approx([0.0025, 100.0])
    assert robust == pytest.approx([0.0025, 2 * 0.1 * (10 - 0.05)])


def test_the_learning_rate_rises_and_falls():
    rates = [TrainingConfig(lr=2.0, warm_up=0.2).compute_rate(step, 50) for step in range(50)]
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert max(rates) == 2.0
    assert rates[-1] == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("batch", 1.5),
        ("patience", True),
        ("lr", 0.0),
        ("lr", math.nan),
        ("clip", -1.0),
        ("huber", math.inf),
        ("weight_decay", -1.0),
        ("warm_up", 1.0),
        ("loss", "mae"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, value):
    with pytest.raises(BadOption, match=f"{name}="):
        TrainingConfig(**{name: value})


# --- early stopping ------------------------------------------------------------------------------


def test_the_best_weights_are_kept_not_the_last():
    training = replace(QUICK, epochs=40, lr=0.1, patience=5, warm_up=0.0)
    found = fitted((0, 1, 2), training)
    curve = np.array([row["validation"] for row in found.history], float) / UNIT.std
    assert len(found.running) == 0
    assert len(found.history) < 40
    assert len(set(found.steps)) > 1, "members stop apart in this example"
    for k, step in enumerate(found.steps):
        assert curve[step - 1, k] == pytest.approx(found.rmse[k])
        assert found.rmse[k] == pytest.approx(np.nanmin(curve[:, k]))
        assert np.isfinite(curve[:, k]).sum() == step + 5, "it goes on for its patience"


def test_members_that_stopped_keep_what_they_had_while_others_go_on():
    training = replace(QUICK, epochs=40, lr=0.1, patience=5, warm_up=0.0)
    together = fitted((0, 1, 2), training)
    for k in range(3):
        alone = fitted((k,), training)
        assert alone.steps[0] == together.steps[k]
        assert torch.allclose(alone.best[0], together.best[k], atol=1e-3)


def test_a_member_whose_weights_are_lost_stops_alone():
    data, check = part(2), part(2, 30, 1)
    spoilt = DeviceData(data.features, data.targets.clone())
    spoilt.targets[1, 0] = math.nan
    found = trainer((0, 1)).fit(spoilt, check)
    assert found.running.tolist() == [0]
    assert found.steps[0] > 0
    assert found.steps[1] == 0
    assert torch.isfinite(found.best).all()
    unchecked = trainer((0, 1)).fit(spoilt)
    assert torch.isfinite(unchecked.best).all()


def test_without_validation_rows_the_last_weights_count():
    found = trainer().fit(part(1))
    assert torch.equal(found.best, found.weights)
    assert found.steps.tolist() == [6]
    assert found.history[-1]["validation"] == [None]
    empty = trainer().fit(part(1), part(1, 0))
    assert torch.equal(empty.best, found.best)


def test_a_tick_is_told_the_error_in_the_unit_and_can_end_training():
    told = []
    found = fitted((0, 1), progress=lambda epoch: told.append(epoch) or epoch.number == 3)
    assert [epoch.number for epoch in told] == [1, 2, 3]
    assert found.stopped
    assert told[-1].best == pytest.approx(100.0 * found.rmse.mean())
    assert told[-1].rmse == pytest.approx(np.mean(found.history[-1]["validation"]))


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(NoItems, match="no training rows"):
        trainer().fit(part(1, 0))
    with pytest.raises(BadOption, match="there are 2 and 1"):
        Trainer(SHAPE, QUICK, [1, 2], [UNIT])


# --- the same again ------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits():
    assert state(fitted((1, 2))) == state(fitted((1, 2)))
    assert state(fitted((1, 2))) != state(fitted((1, 3)))


class Killed(Exception):
    """What ends training in the middle of an epoch."""


def killing(epoch):
    def progress(told):
        if told.number == epoch:
            raise Killed

    return progress


@pytest.mark.parametrize("at", [1, 4, 7, 11])
def test_resuming_equals_training_undisturbed(at, tmp_path):
    training = replace(QUICK, epochs=12, lr=0.1, patience=3, warm_up=0.0)
    network = replace(SHAPE, dropout=0.1)
    undisturbed = fitted((0, 1, 2), training, network)
    assert 0 < len(undisturbed.running) < 3 or len(set(undisturbed.steps)) > 1
    path = tmp_path / "checkpoint.safetensors"
    if at < undisturbed.epoch:
        with pytest.raises(Killed):
            fitted((0, 1, 2), training, network, checkpoint=path, every=2, progress=killing(at))
    resumed = fitted((0, 1, 2), training, network, checkpoint=path, every=2)
    assert state(resumed) == state(undisturbed)
    again = fitted((0, 1, 2), training, network, checkpoint=path, every=2)
    assert again.best.numpy().tobytes() == undisturbed.best.numpy().tobytes()


def test_a_checkpoint_of_other_training_is_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fitted((0,), checkpoint=path)
    with pytest.raises(BadStore, match="seeds differ"):
        fitted((1,), checkpoint=path)
    with pytest.raises(BadStore, match="training differ"):
        fitted((0,), replace(QUICK, lr=1.0), checkpoint=path)
    with pytest.raises(BadStore, match="data differ"):
        trainer().fit(part(1, 50, 9), part(1, 30, 1), checkpoint=path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fitted((0,), checkpoint=path)
    kept, facts = model_files.read_tensors(path)
    model_files.write_tensors(path, kept | {"best": torch.zeros(2, 3)}, facts)
    with pytest.raises(BadStore, match=r"best has the shape \(2, 3\)"):
        fitted((0,), checkpoint=path)
    model_files.write_tensors(path, {k: v for k, v in kept.items() if k != "second"}, facts)
    with pytest.raises(BadStore, match=r"no complete checkpoint: .*second"):
        fitted((0,), checkpoint=path)
    model_files.write_tensors(path, kept, {k: v for k, v in facts.items() if k != "epoch"})
    with pytest.raises(BadStore, match="'epoch' is missing"):
        fitted((0,), checkpoint=path)
    model_files.write_tensors(path, kept, facts | {"running": [7]})
    with pytest.raises(BadStore, match=r"\[7\] are no members"):
        fitted((0,), checkpoint=path)
    model_files.write_tensors(path, kept, facts | {"rmse": [10**400]})
    with pytest.raises(BadStore, match="must be a finite number"):
        fitted((0,), checkpoint=path)
    for of in (None, [], {}):
        model_files.write_tensors(path, kept, facts | {"of": of})
        with pytest.raises(BadStore, match=r"checkpoint of other training|'of' must be an object"):
            fitted((0,), checkpoint=path)
    path.write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(BadStore, match="cannot be read"):
        fitted((0,), checkpoint=path)


# --- devices -------------------------------------------------------------------------------------


def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(BadOption, match="'warp:0' cannot be used"):
        Trainer(SHAPE, QUICK, [0], [UNIT], device="warp:0")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none_is_an_error():
    with pytest.raises(BadOption, match=r"'cuda' cannot be used: .*[^.]\. Pass --device cpu\.$"):
        Trainer(SHAPE, QUICK, [0], [UNIT], device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_cuda_learns_what_the_cpu_learns(tmp_path):
    network = replace(SHAPE, dropout=0.1)
    expected = fitted((0, 1), network=network)
    path = tmp_path / "checkpoint.safetensors"
    parts = [DeviceData(*(x.cuda() for x in each)) for each in (part(2), part(2, 30, 1))]
    found = Trainer(network, QUICK, [0, 1], [UNIT] * 2, device="cuda").fit(*parts, checkpoint=path)
    assert torch.allclose(found.best.cpu(), expected.best, atol=1e-2)
    again = Trainer(network, QUICK, [0, 1], [UNIT] * 2, device="cuda").fit(*parts, checkpoint=path)
    assert torch.equal(found.best, again.best)
