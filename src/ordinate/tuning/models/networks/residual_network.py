"""A residual network for tables, as a function of its weights; all members of an ensemble at once.

The weights of M equally shaped networks are one tensor [M, P], a row for each. A layer is one
product of stacked matrices for all members, so that 16 members cost far less than 16 networks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ordinate.errors import BadOption, BadStore

Block = Literal["silu", "swiglu"]
Shape = tuple[int, int]
WEIGHT, BIAS = "weight", "bias"
WIDEST, DEEPEST, MOST_DROPOUT = (
    4096,
    64,
    0.9,
)  # width, depth, dropout beyond which nothing is learned


@dataclass(frozen=True)
class ResidualNetwork:
    """The shape of a network: an inlet, residual blocks, an outlet.

    A block adds to what flows by it: SiLU(x A + a) B + b, or, gated (SwiGLU),
    (SiLU(x A + a) · (x C + c)) B + b. In training, a share of what a block makes is dropped.

    >>> network = ResidualNetwork(features=4, width=8, depth=1)
    >>> weights = network.initialize_weights([0, 1, 2])
    >>> tuple(weights.shape), tuple(network(weights, torch.zeros(3, 10, 4)).shape)
    ((3, 193), (3, 10))
    """

    features: int
    width: int = 64
    depth: int = 2
    block: Block = "silu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name, least, most in (
            ("features", 1, None),
            ("width", 1, WIDEST),
            ("depth", 0, DEEPEST),
        ):
            _check_integer(name, getattr(self, name), least, most)
        if self.block not in get_args(Block):
            raise BadOption(f"block={self.block!r} is not one of {', '.join(get_args(Block))}.")
        if not 0.0 <= self.dropout <= MOST_DROPOUT:
            raise BadOption(f"dropout={self.dropout!r} is not a share from 0 to {MOST_DROPOUT}.")

    # --- weights -----------------------------------------------------------------------------

    @cached_property
    def layout(self) -> dict[str, Shape]:
        """The name and shape of every weight and bias, in their order in a row of weights."""
        gates = 2 if self.block == "swiglu" else 1
        layers = {"inlet": (self.features, self.width)}
        for number in range(self.depth):
            layers[f"block{number}.up"] = (self.width, gates * self.width)
            layers[f"block{number}.down"] = (self.width, self.width)
        layers["outlet"] = (self.width, 1)
        return {
            f"{name}.{part}": shape if part == WEIGHT else (1, shape[1])
            for name, shape in layers.items()
            for part in (WEIGHT, BIAS)
        }

    @cached_property
    def sizes(self) -> list[int]:
        """How many numbers each weight and bias has."""
        return [math.prod(shape) for shape in self.layout.values()]

    @property
    def size(self) -> int:
        """How many numbers a network has."""
        return sum(self.sizes)

    def initialize_weights(self, seeds: Sequence[int]) -> Tensor:
        """Return weights to begin with, a row for each seed, the same on every device."""
        return torch.from_numpy(np.stack([self._initialize_member(seed) for seed in seeds]))

    def _initialize_member(self, seed: int) -> NDArray[np.float32]:
        rng = np.random.default_rng((seed, 0))
        parts, inputs = [], 1
        for name, shape in self.layout.items():
            inputs = shape[0] if name.endswith(WEIGHT) else inputs
            drawn = (
                rng.standard_normal(shape) if name.endswith(WEIGHT) else rng.uniform(-1, 1, shape)
            )
            parts.append((drawn * self._compute_gain(name) / math.sqrt(inputs)).ravel())
        return np.concatenate(parts).astype(np.float32)

    def _compute_gain(self, name: str) -> float:
        """Return how large a layer begins: blocks add little at first, however many there are."""
        return 1.0 / math.sqrt(2.0 * self.depth) if ".down." in name else 1.0

    def named(self, weights: Tensor) -> dict[str, Tensor]:
        """Return the weights [M, P] by name, [M, rows, columns] each."""
        parts = torch.split(weights, self.sizes, dim=1)
        shaped = zip(self.layout.items(), parts, strict=True)
        return {name: part.view(len(weights), *shape) for (name, shape), part in shaped}

    def flatten_weights(self, named: Mapping[str, Tensor]) -> Tensor:
        """Return named weights as one tensor [M, P]; what does not fit is refused."""
        members = {tensor.shape[0] if tensor.ndim else 0 for tensor in named.values()}
        if set(named) != set(self.layout) or len(members) != 1:
            raise BadStore(f"the weights are not those of {self}")
        (count,) = members
        for name, shape in self.layout.items():
            found = named[name]
            if found.shape != (count, *shape) or found.dtype != torch.float32 or not count:
                raise BadStore(
                    f"{name} is {found.dtype} {tuple(found.shape)}, and the configuration says "
                    f"{torch.float32} {(count, *shape)}"
                )
        return torch.cat([named[name].reshape(count, -1) for name in self.layout], dim=1)

    # --- predictions ---------------------------------------------------------------------------

    def __call__(
        self, weights: Tensor, x: Tensor, drop: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """Return predictions [M, N] of members with weights [M, P] for rows [M, N, features]."""
        parts = self.named(weights)

        def layer(name: str, rows: Tensor) -> Tensor:
            return torch.baddbmm(parts[f"{name}.{BIAS}"], rows, parts[f"{name}.{WEIGHT}"])

        flow = layer("inlet", x)
        for number in range(self.depth):
            made = self._activate(layer(f"block{number}.up", flow))
            made = made if drop is None else drop(made)
            flow = flow + layer(f"block{number}.down", made)
        return layer("outlet", flow).squeeze(-1)

    def _activate(self, x: Tensor) -> Tensor:
        if self.block == "silu":
            return functional.silu(x)
        gate, value = x.chunk(2, dim=-1)
        return functional.silu(gate) * value

    # --- plain values ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


class Dropout:
    """Drops numbers at random, for each member from its own stream, the same on every device."""

    def __init__(self, share: float, streams: Sequence[np.random.Generator]) -> None:
        self.below = round(256 * share)  # of a random byte: far quicker than a random number
        self.streams = streams

    def __call__(self, x: Tensor) -> Tensor:
        """Return the rest of x [M, N, width], scaled so that its mean stays."""
        drawn = b"".join(stream.bytes(x[0].numel()) for stream in self.streams)
        retained = np.frombuffer(drawn, np.uint8).reshape(x.shape) >= self.below
        scale = np.float32(256 / (256 - self.below))
        return x * torch.from_numpy(retained * scale).to(x.device)


def _check_integer(name: str, value: Any, least: int, most: int | None = None) -> None:
    right = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not right or (most is not None and value > most):
        upto = "" if most is None else f" and at most {most}"
        raise BadOption(f"{name}={value!r} is not an integer of at least {least}{upto}.")
