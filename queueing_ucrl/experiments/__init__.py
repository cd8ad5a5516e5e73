"""Studies: regret accounting, replications, checkpoints."""
