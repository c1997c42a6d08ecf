"""Fits of networks that are killed: the next run goes on from what they have learned."""

import pytest
from regression_tables import smooth
from search_cases import read_untimed_files

from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.tuning import tune_table


class Killed(BaseException):
    """Ends a run as a kill would."""


def test_a_network_that_was_killed_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ordinate.tuning.models.networks.trainer import Trainer

    epochs, train = [], Trainer.train_epoch

    def counted(self, part):
        if len(epochs) == 35:
            raise Killed
        epochs.append(self.epoch)
        return train(self, part)

    settings = Settings(models="mlp", trials=1, folds=2, epochs=25)
    whole = tune_table(smooth(), tmp_path / "whole", settings)
    monkeypatch.setattr(Trainer, "train_epoch", counted)
    root = tmp_path / "killed"
    with pytest.raises(Killed):
        tune_table(smooth(), root, settings)
    assert (
        len(list((root / "results" / "checkpoints").iterdir())) == 2
    )  # of the first part, which is done, too
    epochs[:] = [-1] * 36  # no more kills
    again = tune_table(smooth(), root, settings)
    assert epochs[36:][:3] == [10, 11, 12]  # of the second part; the first is not trained again
    assert len(epochs[36:]) == 15 + 25
    assert read_untimed_files(root) == read_untimed_files(tmp_path / "whole")
    assert again.to_dict() == whole.to_dict()
    assert not (root / "results" / "checkpoints").exists()


def test_a_checkpoint_that_is_of_no_use_is_made_again(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ordinate.tuning.models.networks.trainer import Trainer

    settings, write = Settings(models="mlp", trials=1, folds=2, epochs=2), Trainer._write
    whole = tune_table(smooth(), tmp_path / "whole", settings)

    def killed(self, path):
        write(self, path)
        path.write_bytes(b"damaged")
        raise Killed

    root = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_write", killed)
        with pytest.raises(Killed):
            tune_table(smooth(), root, settings)
    assert tune_table(smooth(), root, settings).to_dict() == whole.to_dict()
