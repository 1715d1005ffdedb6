"""One BLAS thread a test process: the problems are small, and workers would fight for the cores."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Hold BLAS to one thread."""
    with threadpool_limits(1):
        yield
