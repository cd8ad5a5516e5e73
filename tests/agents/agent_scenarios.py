"""The scenario that agents from files are tried in."""

QUEUE = """
[queue]
servers = 2
capacity = 6
service_rate = 0.5
[[class]]
name = "gold"
arrival_rate = 0.8
reward = 20.0
[[class]]
name = "basic"
arrival_rate = 1.6
reward = 4.0
"""
RUN = """
[run]
horizon = 60.0
replications = 2
"""
