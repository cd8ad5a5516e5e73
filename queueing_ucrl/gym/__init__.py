"""Environments for Gymnasium: admission control with our systems as worlds, one at a time or a thousand at once.

    import gymnasium
    import queueing_ucrl.gym
    environment = gymnasium.make("queueing_ucrl/AdmissionControl-v0", scenario="quickstart")

Importing this module registers the environment. Without an import Gymnasium does it if it is told the module, as in
gymnasium.make("queueing_ucrl.gym:queueing_ucrl/AdmissionControl-v0").
"""

try:
    import gymnasium
except ImportError as error:
    raise ImportError(
        "queueing_ucrl.gym needs Gymnasium, which is not installed: python -m pip install 'queueing_ucrl[rl]'"
    ) from error

from queueing_ucrl.gym.environment import AdmissionControl as AdmissionControl
from queueing_ucrl.gym.policy import TablePolicy as TablePolicy
from queueing_ucrl.gym.policy import policy_of as policy_of
from queueing_ucrl.gym.vector import AdmissionControlVector as AdmissionControlVector

ID = "queueing_ucrl/AdmissionControl-v0"

if ID not in gymnasium.registry:
    gymnasium.register(
        ID,
        entry_point="queueing_ucrl.gym.environment:AdmissionControl",
        vector_entry_point="queueing_ucrl.gym.vector:AdmissionControlVector",
    )
