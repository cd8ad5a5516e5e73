"""What statistics find can be said in JSON, and several tests of one hypothesis keep their level together."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queueing_ucrl.data.finding import holm
from queueing_ucrl.data.poisson_tests import poisson_test
from queueing_ucrl.data.service_laws import fit_service


def test_findings_are_plain_data() -> None:
    numbers = np.random.default_rng(1).exponential(2.0, 300)
    found = fit_service(numbers).plain_data()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["fits"][0]["law"]["kind"] == found["fits"][0]["kind"]
    assert poisson_test([], 1.0, (0.0, 5.0)).plain_data()["p_value"] is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_the_closed_test_of_bonferroni(p_values: list[float]) -> None:
    """A hypothesis falls if every set of them that it is in falls by Bonferroni: the largest size times smallest p."""
    named = {str(k): p for k, p in enumerate(p_values)}
    for name, adjusted in holm(named).items():
        others = [p for other, p in named.items() if other != name]
        worst = 0.0
        for size in range(len(others) + 1):
            chosen = sorted(others, reverse=True)[:size]
            worst = max(worst, (size + 1) * min([named[name], *chosen]))
        assert adjusted == min(1.0, worst)
