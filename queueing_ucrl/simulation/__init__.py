"""The world: a queue that runs, in SimPy (`world`) and in compiled code (`kernel`), on the same random numbers."""
