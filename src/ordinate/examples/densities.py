"""Densities of alkanes by an equation of state: the data set `densities`, and how it is made.

The equation is that of D.-Y. Peng and D. B. Robinson, "A New Two-Constant Equation of State",
Industrial & Engineering Chemistry Fundamentals 15 (1976) 59–64. Where it has three roots, the phase
of the lower fugacity is the stable one.
"""

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

GAS_CONSTANT = 8.314462618  # J/(mol K)
NOISE = 0.002  # relative error of a simulated measurement
TEMPERATURES = (220.0, 620.0)  # K
PRESSURES = (0.1, 60.0)  # MPa, evenly on a logarithmic scale
HEADER = ("substance", "carbons", "temperature", "pressure", "density")


@dataclass(frozen=True)
class Substance:
    """Critical temperature (K) and pressure (MPa), acentric factor, and molar mass (g/mol)."""

    name: str
    carbons: int
    critical_temperature: float
    critical_pressure: float
    acentric_factor: float
    molar_mass: float


# B. E. Poling, J. M. Prausnitz and J. P. O'Connell, The Properties of Gases and Liquids (2001).
ALKANES = (
    Substance("methane", 1, 190.56, 4.599, 0.011, 16.043),
    Substance("ethane", 2, 305.32, 4.872, 0.099, 30.070),
    Substance("propane", 3, 369.83, 4.248, 0.152, 44.097),
    Substance("butane", 4, 425.12, 3.796, 0.200, 58.123),
    Substance("pentane", 5, 469.70, 3.370, 0.252, 72.150),
    Substance("hexane", 6, 507.60, 3.025, 0.301, 86.177),
    Substance("heptane", 7, 540.20, 2.740, 0.350, 100.204),
    Substance("octane", 8, 568.70, 2.490, 0.400, 114.231),
    Substance("nonane", 9, 594.60, 2.290, 0.444, 128.258),
    Substance("decane", 10, 617.70, 2.110, 0.492, 142.285),
)


def compute_density(substance: Substance, temperature: float, pressure: float) -> float:
    """Return the density in kg/m³ at a temperature in K and a pressure in MPa.

    >>> round(compute_density(ALKANES[0], 300.0, 0.1), 3)  # methane, nearly an ideal gas: 0.643
    0.645
    """
    attraction, volume = _compute_reduced_parameters(substance, temperature, pressure)
    factor = _find_stable_compressibility(attraction, volume)
    return substance.molar_mass * 1e-3 * pressure * 1e6 / (factor * GAS_CONSTANT * temperature)


def _compute_reduced_parameters(
    substance: Substance, temperature: float, pressure: float
) -> tuple[float, float]:
    """Return A and B of the equation."""
    w = substance.acentric_factor
    kappa = 0.37464 + 1.54226 * w - 0.26992 * w**2
    warm = temperature / substance.critical_temperature
    high = pressure / substance.critical_pressure
    alpha = (1.0 + kappa * (1.0 - np.sqrt(warm))) ** 2
    return float(0.45724 * alpha * high / warm**2), float(0.07780 * high / warm)


def _find_stable_compressibility(a: float, b: float) -> float:
    """Return the compressibility factor of the phase with the lowest fugacity."""
    cubic = [1.0, -(1.0 - b), a - 3.0 * b**2 - 2.0 * b, -(a * b - b**2 - b**3)]
    roots = np.roots(cubic)
    real = roots[np.abs(roots.imag) < 1e-9].real
    phases = [float(z) for z in (real.min(), real.max()) if z > b]
    return min(phases, key=lambda z: _log_fugacity(z, a, b))


def _log_fugacity(z: float, a: float, b: float) -> float:
    root = np.sqrt(2.0)
    attraction = a / (2.0 * root * b) * np.log((z + (1.0 + root) * b) / (z + (1.0 - root) * b))
    return float(z - 1.0 - np.log(z - b) - attraction)


def simulate_densities(n: int = 600, seed: int = 0) -> str:
    """Return rows of substance, temperature, pressure and density with an error, as CSV.

    >>> simulate_densities(1).splitlines()
    ['substance,carbons,temperature,pressure,density', 'nonane,9,327.9,0.13,660.27']
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([HEADER, *_simulate_rows(n, seed)])
    return out.getvalue()


def _simulate_rows(n: int, seed: int) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    which = rng.integers(0, len(ALKANES), n)
    warm = rng.uniform(*TEMPERATURES, n).round(1)
    high = np.exp(rng.uniform(np.log(PRESSURES[0]), np.log(PRESSURES[1]), n))
    errors = 1.0 + NOISE * rng.standard_normal(n)
    rows = []
    for k in range(n):
        substance, temperature = ALKANES[which[k]], float(warm[k])
        pressure = float(f"{high[k]:.4g}")
        found = compute_density(substance, temperature, pressure) * errors[k]
        rows.append(
            (substance.name, substance.carbons, temperature, pressure, float(f"{found:.5g}"))
        )
    return rows
