"""General-purpose learners on the uniformized chain: what UCRL-AC is compared with."""

from __future__ import annotations

from queueing_ucrl.learning.tabular.kl_ucrl import KlUcrl
from queueing_ucrl.learning.tabular.psrl import Psrl
from queueing_ucrl.learning.tabular.ucrl2 import Ucrl2
from queueing_ucrl.learning.tabular.ucrl2b import Ucrl2B
from queueing_ucrl.learning.tabular.ucrl3 import Ucrl3

__all__ = ["KlUcrl", "Psrl", "Ucrl2", "Ucrl2B", "Ucrl3"]
