"""How often regression models that are equally good are called different.

    python benchmarks/regression_verdicts.py --page docs/studies/regression-verdicts.md

Five models with correlated errors of one size; a replicate is wrong if any pair has a verdict. The
share should be 5 %. Both corrections see the same samples.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

import ordinate

MODELS, METRICS, CORRECTIONS = 5, ("mae", "rmse"), ("max_t", "holm")
DESIGNS = ((60, None), (200, None), (600, None), (600, 25))  # items, clusters
HEAD = """# Verdicts on regression models that are equally good

Written by `benchmarks/regression_verdicts.py`. Five models predict the same targets with normal
errors of one size, which they share in part; in clusters the errors have a part that the cluster
shares. In each of {replicates:,} replicates a correction is wrong if it finds any difference: that
should happen in 5 % (Monte-Carlo error {noise:.1f} points).

| items | clusters | metric | max-T | Holm |
|---|---|---|---|---|
"""
TAIL = """
Max-T uses how the models' errors hang together, and finds more than Holm where they do. Standard
errors are by the delta method or over clusters, and so both are a little too ready with a verdict
in samples this small.
"""


def draw(items: int, clusters: int | None, seed: int) -> dict[str, Any]:
    """Return targets, models that are equally good, and clusters."""
    rng = np.random.default_rng([seed, items, clusters or 0])
    units = np.arange(items) % (clusters or items)
    y, shared = rng.normal(900, 50, items), rng.normal(0, 7, items)
    systems = {
        f"m{k}": y + shared + rng.normal(0, 7, items) + rng.normal(0, 3, items)[units]
        for k in range(MODELS)
    }
    return {"target": y, "systems": systems, "groups": units if clusters else None}


def main() -> None:
    """Run the study, and write its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1_000)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    rows = []
    for items, clusters in DESIGNS:
        wrong = {(metric, how): 0 for metric in METRICS for how in CORRECTIONS}
        for seed in range(options.replicates):
            given = draw(items, clusters, seed)
            for how in CORRECTIONS:
                found = ordinate.compare(
                    **given,
                    metrics=METRICS,
                    interval=ordinate.ConfidenceIntervals(method="t"),
                    correction=how,
                )
                for metric in METRICS:
                    pairs = found.leaderboards[metric].pairs
                    wrong[metric, how] += any(x.verdict in {"better", "worse"} for x in pairs)
        for metric in METRICS:
            shares = (
                f"{100 * wrong[metric, how] / options.replicates:.1f} %" for how in CORRECTIONS
            )
            rows.append(f"| {items} | {clusters or '–'} | {metric} | {' | '.join(shares)} |")
            print(rows[-1], flush=True)
    noise = 100 * math.sqrt(0.05 * 0.95 / options.replicates)
    page = HEAD.format(replicates=options.replicates, noise=noise) + "\n".join(rows) + "\n" + TAIL
    if options.page is not None:
        options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
