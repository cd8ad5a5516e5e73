"""Learners that update at every tick of the uniformized chain: R-learning, an actor-critic, SALMUT, integer gradient
ascent. What they remember is in `memory`, one file a rule, `learn` is what the engines call.
"""
