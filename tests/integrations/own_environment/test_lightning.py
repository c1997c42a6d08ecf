"""Lightning logs the metrics of OrdinalMetric over an epoch."""

import pytest
import torch

import ordinate

lightning = pytest.importorskip("lightning")  # `make test-integrations` has it
LEVELS = "low,mid,high"
GOLD = torch.tensor([0, 1, 2, 2, 1, 0, 0])
PREDICTED = torch.tensor([0, 1, 1, 2, 2, 0, 2])


@pytest.mark.filterwarnings("ignore")  # of Lightning, about loaders, loggers and devices
def test_an_epoch_is_logged_as_its_items_together(tmp_path):
    from ordinate.integrations.torch import OrdinalMetric

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.metric = OrdinalMetric(LEVELS, metrics="mae,cem_ord")

        def test_step(self, batch, place):  # noqa: ARG002 - Lightning passes it
            self.metric.update(*batch)

        def on_test_epoch_end(self):
            self.log_dict(self.metric.compute())
            self.metric.reset()

    data = torch.utils.data.TensorDataset(PREDICTED, GOLD)
    trainer = lightning.Trainer(
        accelerator="cpu",
        default_root_dir=tmp_path,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    (logged,) = trainer.test(Module(), torch.utils.data.DataLoader(data, 3), verbose=False)
    for name in ("mae", "cem_ord"):
        expected = ordinate.score(name, GOLD.numpy(), PREDICTED.numpy(), scale="0..2")
        assert logged[name] == pytest.approx(float(expected), rel=1e-6)
