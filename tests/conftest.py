"""Shared by all tests. This folder is on the path, so `exact` and `generators` can be imported from any of them."""

import signal

from hypothesis import HealthCheck, settings

# the same examples on every run and no time limits: a failure is a failure of the code, not of the day
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fixed")

# a shell starts what it puts in the background with Ctrl-C ignored, which programs started from there would inherit
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
