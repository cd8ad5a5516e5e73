"""Own data: reading logs, fitting, tests of assumptions, replay."""
