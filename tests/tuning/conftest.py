"""What tests of models share."""

import pytest


@pytest.fixture(scope="module")
def one_thread():
    """PyTorch with one thread, on which the last digits of sums depend."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
