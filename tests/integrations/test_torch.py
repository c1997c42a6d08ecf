"""OrdinalMetric counts what ConfusionMatrix counts, on every device, and is a torchmetrics metric.

The tests of counting run on a CUDA device as well, where there is one.
"""

import pickle
import subprocess
import sys
import tempfile
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from label_tensors import count_share, draw_labels
from law_examples import examples
from torch import multiprocessing
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassConfusionMatrix

import ordinate
from ordinate.errors import BadInput, BadOption, BadValues, NoItems, OffScale, UnequalLengths
from ordinate.integrations.torch import OrdinalMetric, RegressionMetric
from ordinate.results import DEFAULT_METRICS, Evaluation
from ordinate.results.regression import RegressionEvaluation
from ordinate.results.regression_sources import evaluate_regression
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.regression import Moments

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
DTYPES = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
LEVELS = [2, 3, 6, 7, 21, 22, 50]  # on both sides of each way to count

devices = pytest.mark.parametrize("device", DEVICES)


def count_batches(metric, gold, predicted, cuts, dtype=torch.int64, device="cpu"):
    """Return the metric after batches that end at the cuts."""
    metric = metric.to(device)
    columns = (
        torch.tensor_split(torch.from_numpy(x).to(device, dtype), cuts) for x in (gold, predicted)
    )
    for target, preds in zip(*columns, strict=True):
        metric.update(preds, target)
    return metric


# --- counting ------------------------------------------------------------------------------------


@devices
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("levels", LEVELS)
def test_counts_are_those_of_the_columns(levels, dtype, device):
    gold, predicted = draw_labels(levels, 100_003)
    metric = count_batches(
        OrdinalMetric(range(levels)), gold, predicted, [1, 40_000], dtype, device
    )
    assert metric.summary() == ConfusionMatrix.of(gold, predicted, range(levels))


@given(
    levels=st.integers(2, 9),
    n=st.integers(1, 300),
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(0, 300), max_size=4),
    dtype=st.sampled_from(DTYPES),
    device=st.sampled_from(DEVICES),
)
@examples(40)
def test_batches_of_any_size_equal_one_pass(levels, n, seed, cuts, dtype, device):
    gold, predicted = draw_labels(levels, n, seed)
    metric = OrdinalMetric(range(levels))
    metric = count_batches(metric, gold, predicted, sorted(cuts), dtype, device)
    assert metric.summary() == ConfusionMatrix.of(gold, predicted, range(levels))


@given(n=st.integers(2, 200), cut=st.integers(1, 199), seed=st.integers(0, 2**32))
@examples(30)
def test_two_metrics_merge_as_their_summaries_do(n, cut, seed):
    gold, predicted = draw_labels(5, n, seed)
    cut = min(cut, n - 1)
    parts = [
        count_batches(OrdinalMetric("1..5"), gold[part], predicted[part], [])
        for part in (slice(cut), slice(cut, None))
    ]
    expected = parts[0].summary() + parts[1].summary()
    parts[0].merge_state(parts[1])
    assert parts[0].summary() == expected


@devices
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_labels_of_consecutive_integers(dtype, device):
    gold, predicted = draw_labels(5, 1000, first=1)
    metric = OrdinalMetric("1..5", labels=True)
    metric = count_batches(metric, gold, predicted, [10], dtype, device)
    assert metric.summary() == ConfusionMatrix.of(gold, predicted, "1..5")


@devices
@pytest.mark.parametrize("levels", [5, 50])
@pytest.mark.parametrize("ignored", [-100, 255])
def test_ignored_targets_are_left_out(levels, ignored, device):
    gold, predicted = draw_labels(levels, 1000)
    padded = np.where(np.arange(1000) % 7 == 3, ignored, gold)
    metric = OrdinalMetric(range(levels), ignore_index=ignored)
    count_batches(metric, padded, predicted, [500], device=device)
    counted = padded == gold
    assert metric.summary() == ConfusionMatrix.of(gold[counted], predicted[counted], range(levels))


@devices
def test_an_ignored_number_that_the_tensor_cannot_hold_ignores_nothing(device):
    metric = OrdinalMetric("0..2", ignore_index=255).to(device)
    metric.update(torch.tensor([0], device=device), torch.tensor([-1], device=device).char())
    with pytest.raises(OffScale, match="1 of 1 targets"):
        metric.compute()


@devices
def test_binary_levels_may_be_booleans(device):
    gold, predicted = torch.tensor([[True, True, False], [True, False, False]], device=device)
    metric = OrdinalMetric("no,yes").to(device)
    metric.update(predicted, gold)
    assert metric.summary().counts.tolist() == [[1, 0], [1, 1]]


@devices
@pytest.mark.parametrize("labels", [False, True])
def test_of_probabilities_and_logits_the_highest_counts(labels, device):
    scores = torch.rand(8, 5, 3, 2, device=device)  # images of 3 by 2 pixels, 5 levels
    target = torch.randint(1, 5, (8, 3, 2), device=device)
    metric = OrdinalMetric("1..5", labels=labels).to(device)
    metric.update(scores, target)
    predicted = scores.argmax(1).flatten().cpu().numpy() + 1
    gold = target.flatten().cpu().numpy() + (not labels)
    assert metric.summary() == ConfusionMatrix.of(gold, predicted, "1..5")


@devices
def test_tensors_need_not_be_contiguous(device):
    both = torch.randint(0, 4, (100, 2), device=device)
    metric = OrdinalMetric(range(4)).to(device)
    metric.update(both[:, 0], both[:, 1])
    predicted, gold = both.cpu().numpy().T
    assert metric.summary() == ConfusionMatrix.of(gold, predicted, range(4))


class ExportedArray:
    """What an array of any library has, and nothing else: its memory, by DLPack."""

    def __init__(self, values):
        self.__dlpack__, self.__dlpack_device__ = values.__dlpack__, values.__dlpack_device__


@pytest.mark.parametrize("export", [np.asarray, ExportedArray], ids=["NumPy", "DLPack"])
def test_arrays_of_other_libraries_are_read_through_dlpack(export):
    gold, predicted = draw_labels(6, 100)
    metric = OrdinalMetric(range(6))
    metric.update(export(predicted), export(gold))
    assert metric.summary() == ConfusionMatrix.of(gold, predicted, range(6))


@devices
def test_an_empty_batch_counts_nothing(device):
    metric = OrdinalMetric("0..2").to(device)
    metric.update(*torch.empty(2, 0, dtype=torch.int64, device=device))
    assert not metric.cells.any()
    with pytest.raises(NoItems, match="nothing to evaluate"):
        metric.compute()


@devices
def test_counting_is_deterministic(device):
    """PyTorch refuses what is not, when asked to."""
    torch.use_deterministic_algorithms(mode=True)
    try:
        gold, predicted = draw_labels(50, 1000)
        for levels in (5, 50):
            count_batches(OrdinalMetric(range(levels)), gold, predicted, [], device=device)
    finally:
        torch.use_deterministic_algorithms(mode=False)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="takes a CUDA device")
@pytest.mark.parametrize("levels", [6, 50])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_device_counts_what_the_processor_counts(dtype, levels):
    gold, predicted = draw_labels(levels, 100_003)
    gold[:10] = levels
    metrics = (OrdinalMetric(range(levels), ignore_index=2) for _ in range(2))
    counts = [
        count_batches(metric, gold, predicted, [7], dtype, device).cells.cpu()
        for metric, device in zip(metrics, ("cuda", "cpu"), strict=True)
    ]
    assert torch.equal(*counts)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="takes a CUDA device")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")  # which is a prototype
@pytest.mark.parametrize("levels", [6, 50])
def test_no_batch_waits_for_the_device(levels):
    metric = OrdinalMetric(range(levels), ignore_index=-100).cuda()
    target = torch.randint(0, levels, (1000,), device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        metric.update(target, target)
    finally:
        torch.cuda.set_sync_debug_mode("default")


# --- what is refused -----------------------------------------------------------------------------


@devices
@pytest.mark.parametrize("levels", [3, 50])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_off_the_scale_is_refused_in_the_end(levels, dtype, device):
    off = [levels, 127] if dtype is torch.uint8 else [levels, -1]
    gold, predicted = np.array([0, *off]), np.array([off[1], 0, 1])
    metric = count_batches(OrdinalMetric(range(levels)), gold, predicted, [], dtype, device)
    message = f"2 of 3 targets and 1 of 3 predictions .* integers 0 to {levels - 1} here"
    for finish in (metric.compute, metric.summary):
        with pytest.raises(OffScale, match=message):
            finish()
    metric.reset()
    metric.update(*torch.zeros(2, 4, dtype=dtype, device=device))
    assert metric.compute()["accuracy"] == 1.0


@devices
def test_large_numbers_do_not_wrap_around(device):
    far = torch.tensor([2**32, 2**40 + 1, -(2**63), 2**63 - 1], device=device)
    for labels in (False, True):
        metric = OrdinalMetric("1..5", labels=labels).to(device)
        metric.update(far, far)
        assert metric.cells[-1, -1] == 4
    metric = OrdinalMetric("200..204", labels=True).to(device)
    metric.update(*torch.tensor([[-56], [-56]], dtype=torch.int8, device=device))  # 200 - 256
    assert metric.cells[-1, -1] == 1


@pytest.mark.parametrize(
    ("preds", "target", "error", "message"),
    [
        ([0, 1], torch.tensor([0, 1]), BadInput, "preds must be a tensor, .* not list"),
        (torch.tensor([0]), torch.tensor([0, 1]), UnequalLengths, r"shape \(2,\) .* shape \(1,\)"),
        (torch.tensor([[0, 1]]), torch.tensor([[0], [1]]), UnequalLengths, r"\(2, 1\)"),
        (torch.tensor([0, 1]), torch.tensor([0.0, 1.0]), BadInput, "target must be integers"),
        (torch.rand(2), torch.tensor([0, 1]), BadInput, "3 levels along axis 1"),
        (torch.rand(2, 4), torch.tensor([0, 1]), BadInput, r"not \(2, 4\)"),
        (torch.zeros(2, device="meta").int(), torch.tensor([0, 1]), BadInput, r"metric\.to\("),
    ],
)
def test_what_cannot_be_counted_is_refused_at_once(preds, target, error, message):
    with pytest.raises(error, match=message):
        OrdinalMetric("low,mid,high").update(preds, target)


@pytest.mark.parametrize("scale", ["cefr", "1,2,4", "3,2,1"])
def test_labels_are_consecutive_integers(scale):
    with pytest.raises(BadOption, match="class indices 0, 1"):
        OrdinalMetric(scale, labels=True)


@pytest.mark.parametrize("missing", ["torch", "torchmetrics"])
def test_without_its_libraries_it_says_how_to_install_them(missing):
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from ordinate.errors import MissingExtra\n"
        "try:\n    import ordinate.integrations.torch\n"
        "except MissingExtra as problem: print(problem)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'ordinate[torch]'" in done.stdout


# --- a metric of torchmetrics --------------------------------------------------------------------


def make_counted(metrics=None, n=200, seed=0):
    return count_batches(OrdinalMetric("cefr", metrics), *draw_labels(6, n, seed), [])


@devices
def test_values_are_those_of_the_catalogue(device):
    metric = make_counted(["accuracy", "weighted_kappa(power=1)"]).to(device)
    found = metric.compute()
    assert list(found) == ["accuracy", "weighted_kappa(power=1)"]
    for name, value in found.items():
        assert value.device.type == device
        assert value.item() == ordinate.score(name, metric.summary())


def test_every_metric_can_be_computed():
    assert list(make_counted().compute()) == list(DEFAULT_METRICS)
    every = {metric.name for metric in ordinate.list_metrics() if not metric.required}
    assert set(make_counted("all").compute()) == every


def test_what_is_undefined_is_nan():
    metric = OrdinalMetric("cefr", "quadratic_kappa")
    metric.update(*torch.zeros(2, 3, dtype=torch.int64))
    assert metric.compute()["quadratic_kappa"].isnan()


def test_the_summary_has_intervals():
    metric = make_counted("mae")
    estimate = Evaluation.from_summary(metric.summary(), "mae").metrics["mae"].estimate
    assert estimate.low < metric.compute()["mae"].item() < estimate.high


def test_forward_returns_the_value_of_its_batch_and_counts_it():
    metric, (gold, predicted) = make_counted("mae"), draw_labels(6, 50, seed=1)
    before = metric.summary()
    batch = metric(torch.from_numpy(predicted), torch.from_numpy(gold))
    alone = ConfusionMatrix.of(gold, predicted, range(6)).counts
    assert batch["mae"].item() == ordinate.score("mae", before.with_cells(alone))
    assert (metric.summary().counts == before.counts + alone).all()


def test_reset_forgets_everything():
    metric = make_counted("mae")
    metric.reset()
    assert not metric.cells.any()


@pytest.mark.parametrize(
    "copy",
    [
        deepcopy,
        lambda metric: pickle.loads(pickle.dumps(metric)),  # noqa: S301 - made here
        OrdinalMetric.clone,
    ],
)
def test_copies_are_equal_and_apart(copy):
    metric = make_counted("accuracy,weighted_kappa(power=1)")
    twin = copy(metric)
    assert twin.compute() == metric.compute()
    twin.update(*torch.zeros(2, 3, dtype=torch.int64))
    assert twin.summary().n == metric.summary().n + 3


def test_the_state_is_saved_when_asked_for():
    metric, other = make_counted("mae"), OrdinalMetric("cefr", "mae")
    assert not metric.state_dict()
    metric.persistent(mode=True)
    other.persistent(mode=True)
    other.load_state_dict(metric.state_dict())
    assert other.summary() == metric.summary()


def test_it_stands_in_a_collection_beside_others():
    collection = MetricCollection(
        {"ordinal": OrdinalMetric("cefr", "mae,accuracy"), "matrix": MulticlassConfusionMatrix(6)}
    )
    gold, predicted = map(torch.from_numpy, draw_labels(6, 100))
    collection.update(predicted, gold)
    found = collection.compute()
    assert torch.equal(found["matrix"], collection["ordinal"].cells[:-1, :-1])
    assert {"mae", "accuracy"} <= set(found)


def test_two_processes_compute_one_value():
    with tempfile.TemporaryDirectory() as folder:
        other = multiprocessing.spawn(count_share, (folder,), join=False)  # the process 0
        count_share(1, folder)
        other.join()
        first, second = (torch.load(Path(folder, f"{rank}.pt")) for rank in (0, 1))
    matrix = ConfusionMatrix.of(*draw_labels(6, 101), range(6))
    for name in ("cem_ord", "mae"):
        assert first["values"][name] == second["values"][name] == ordinate.score(name, matrix)
    assert first["n"] == second["n"] == 101
    assert (first["own"].sum(), second["own"].sum()) == (51, 50)  # each goes on with its own items


# --- regression ----------------------------------------------------------------------------------

SMOOTH = [
    metric.name
    for metric in ordinate.list_metrics(Moments)
    if metric.name not in {"median_absolute_error", "error_percentile", "baseline_mae"}
]


def draw_values(n=1000, far=1e6):
    """Return targets far from 0 whose spread is small, and predictions."""
    rng = np.random.default_rng(0)
    y = far + rng.gamma(2.0, 3.0, n)
    return y, y + rng.standard_t(4, n)


def add_batches(metric, y, p, cuts, device="cpu"):
    metric = metric.to(device)
    columns = (torch.tensor_split(torch.from_numpy(x).to(device), cuts) for x in (p, y))
    for preds, target in zip(*columns, strict=True):
        metric.update(preds, target)
    return metric


@devices
@pytest.mark.parametrize("cuts", [[], [1, 1, 400], range(100, 1000, 100)], ids=len)
def test_values_in_a_loop_are_those_of_evaluate_regression(cuts, device):
    y, p = draw_values()
    found = add_batches(RegressionMetric(SMOOTH), y, p, list(cuts), device).compute()
    wanted = evaluate_regression(y, p, SMOOTH, interval=None).metrics
    assert {name: value.item() for name, value in found.items()} == pytest.approx(
        {name: one.value for name, one in wanted.items()}, rel=1e-9
    )


def test_the_moments_have_the_intervals_of_the_items():
    y, p = draw_values(far=50.0)
    summary = add_batches(RegressionMetric(), y, p, [300]).summary()
    ours, theirs = (
        RegressionEvaluation.from_summary(x, "rmse,r2,mae,ccc").metrics
        for x in (summary, Moments.of(y, p))
    )
    for name, one in theirs.items():
        assert (ours[name].low, ours[name].high) == pytest.approx((one.low, one.high), rel=1e-9)


def test_normalised_tensors_give_values_in_the_unit_of_the_target():
    training = Normalization(600.0, 90.0)
    y, p = (600.0 + 90.0 * x for x in draw_values(200, far=0.0))
    scaled = ((x - 600.0) / 90.0 for x in (y, p))
    metric = RegressionMetric("rmse,mae,r2,skill,baseline_mae", normalization=training)
    found = add_batches(metric, *scaled, [50]).compute()
    wanted = evaluate_regression(y, p, list(found), normalization=training, interval=None).metrics
    assert {name: value.item() for name, value in found.items()} == pytest.approx(
        {name: one.value for name, one in wanted.items()}
    )


def test_two_regression_metrics_merge_and_go_forward_and_reset():
    y, p = draw_values(90)
    parts = [add_batches(RegressionMetric(), y[k::2], p[k::2], []) for k in (0, 1)]
    parts[0].merge_state(parts[1])
    whole = evaluate_regression(y, p, "r2", interval=None).metrics["r2"].value
    assert parts[0].compute()["r2"].item() == pytest.approx(whole, rel=1e-9)
    batch = parts[1](torch.from_numpy(p[:9]), torch.from_numpy(y[:9]))
    alone = evaluate_regression(y[:9], p[:9], "mae", interval=None).metrics["mae"].value
    assert batch["mae"].item() == pytest.approx(alone)
    assert parts[1].summary().n == 45 + 9
    parts[1].reset()
    parts[1].update(torch.empty(0), torch.empty(0))
    with pytest.raises(NoItems, match="no batch"):
        parts[1].compute()


def test_equal_targets_leave_r2_undefined_and_what_is_no_number_is_refused():
    metric = RegressionMetric("r2")
    for _ in range(3):
        metric.update(torch.rand(7), torch.full((7,), 0.1))
    assert metric.compute()["r2"].isnan()
    metric.update(torch.tensor([float("nan")]), torch.tensor([1.0]))
    with pytest.raises(BadValues, match="no finite number"):
        metric.compute()
    with pytest.raises(UnequalLengths, match=r"\(3, 1\)"):
        metric.update(torch.rand(3), torch.rand(3, 1))
    with pytest.raises(BadOption, match="median_absolute_error takes all errors"):
        RegressionMetric("median_absolute_error")
