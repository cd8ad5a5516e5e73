"""Shared by all tests. This folder is on the path, so `exact` and `generators` can be imported from any of them."""

import signal
import time

import pytest
from hypothesis import HealthCheck, settings

# the same examples on every run and no time limits: a failure is a failure of the code, not of the day
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fixed")

# a shell starts what it puts in the background with Ctrl-C ignored, which programs started from there would inherit
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seconds", type=float, help="tests that would begin later than this are skipped: a bounded run")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    limit = item.config.getoption("--seconds")
    if limit is not None and time.monotonic() - BEGAN > limit:
        pytest.skip(f"the {limit:g} seconds of this run are over")
