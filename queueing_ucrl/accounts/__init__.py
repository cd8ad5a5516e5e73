"""From counts and event logs to numbers: what was earned, and what was lost to the best policy."""
