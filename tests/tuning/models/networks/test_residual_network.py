import numpy as np
import pytest
import torch

from ordinate.errors import BadOption, BadStore
from ordinate.tuning.experiment.stored_json import decode
from ordinate.tuning.models.networks.residual_network import Dropout, ResidualNetwork

pytestmark = pytest.mark.usefixtures("one_thread")


def silu(x):
    return x / (1 + np.exp(-x))


def by_hand(network, weights, x):
    """The answers of one member, as the docstring defines them."""
    named = {name: part[0].double().numpy() for name, part in network.named(weights).items()}

    def layer(name, rows):
        return rows @ named[f"{name}.weight"] + named[f"{name}.bias"]

    flow = layer("inlet", x)
    for k in range(network.depth):
        up = layer(f"block{k}.up", flow)
        gate, value = (up, 1.0) if network.block == "silu" else np.split(up, 2, axis=1)
        flow = flow + layer(f"block{k}.down", silu(gate) * value)
    return layer("outlet", flow)[:, 0]


@pytest.mark.parametrize("block", ["silu", "swiglu"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_each_member_answers_as_a_network_of_its_own(block, depth):
    network = ResidualNetwork(3, width=5, depth=depth, block=block)
    weights = network.initialize_weights([4, 5, 6])
    x = np.random.default_rng(0).normal(size=(3, 7, 3)).astype(np.float32)
    found = network(weights, torch.from_numpy(x)).numpy()
    for m in range(3):
        assert found[m] == pytest.approx(by_hand(network, weights[m : m + 1], x[m]), abs=1e-5)


def test_a_seed_gives_the_same_weights_whatever_others_there_are():
    network = ResidualNetwork(4)
    assert torch.equal(network.initialize_weights([1, 2, 3])[2:], network.initialize_weights([3]))
    assert not torch.equal(network.initialize_weights([1]), network.initialize_weights([2]))


def test_the_gradient_of_a_member_does_not_depend_on_the_others():
    network = ResidualNetwork(2, width=4, depth=1, block="swiglu")
    weights = network.initialize_weights([0, 1]).requires_grad_()
    (gradient,) = torch.autograd.grad(network(weights, torch.ones(2, 3, 2))[0].sum(), weights)
    assert gradient[0].abs().sum() > 0
    assert gradient[1].abs().sum() == 0


def test_named_weights_become_the_same_row_again():
    network = ResidualNetwork(4, width=6, depth=2, block="swiglu")
    weights = network.initialize_weights([0, 1])
    named = network.named(weights)
    assert named["block1.up.weight"].shape == (2, 6, 12)
    assert torch.equal(network.flatten_weights(dict(reversed(named.items()))), weights)


def test_weights_of_another_shape_are_refused():
    named = ResidualNetwork(4, width=6).named(ResidualNetwork(4, width=6).initialize_weights([0]))
    with pytest.raises(BadStore, match=r"inlet.weight is torch.float32 \(1, 4, 6\)"):
        ResidualNetwork(4, width=7).flatten_weights(named)
    with pytest.raises(BadStore, match="not those of ResidualNetwork"):
        ResidualNetwork(4, width=6, depth=3).flatten_weights(named)
    with pytest.raises(BadStore, match=r"is torch\.float64"):
        ResidualNetwork(4, width=6).flatten_weights(
            {name: part.double() for name, part in named.items()}
        )
    with pytest.raises(BadStore, match="not those of ResidualNetwork"):
        ResidualNetwork(4, width=6).flatten_weights(named | {"inlet.bias": torch.zeros(2, 1, 6)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 0),
        ("width", 10**6),
        ("depth", -1),
        ("depth", True),
        ("block", "relu"),
        ("dropout", 0.95),
        ("dropout", float("nan")),
        ("features", 0),
        ("features", 1.5),
    ],
)
def test_a_shape_that_is_none_is_refused(name, value):
    with pytest.raises(BadOption, match=f"{name}="):
        ResidualNetwork(**{"features": 3, name: value})


def test_a_stored_shape_is_read_again_or_refused():
    network = ResidualNetwork(4, width=8, block="swiglu", dropout=0.1)
    assert decode(network.to_dict(), ResidualNetwork, "config") == network
    with pytest.raises(BadStore, match="'colour' is not known"):
        decode({"features": 4, "colour": "red"}, ResidualNetwork, "config")


def test_dropout_drops_its_share_and_keeps_the_mean():
    streams = [np.random.default_rng(k) for k in range(2)]
    found = Dropout(0.25, streams)(torch.ones(2, 200, 50))
    assert float((found == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(found.mean()) == pytest.approx(1.0, abs=0.02)
    assert not torch.equal(found[0], found[1])


def test_what_a_member_drops_does_not_depend_on_the_others():
    both = Dropout(0.5, [np.random.default_rng(k) for k in (7, 8)])(torch.ones(2, 9, 4))
    alone = Dropout(0.5, [np.random.default_rng(8)])(torch.ones(1, 9, 4))
    assert torch.equal(both[1:], alone)
