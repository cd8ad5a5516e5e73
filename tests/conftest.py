"""Shared by all tests. This folder is on the path, so `exact` and `generators` can be imported from any of them."""

from hypothesis import HealthCheck, settings

# the same examples on every run and no time limits: a failure is a failure of the code, not of the day
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fixed")
