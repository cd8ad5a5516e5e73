"""Controllers: what they believe about the arrival rates, what they do with it, and when they think again."""
