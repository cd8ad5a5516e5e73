"""The best policy of a known model: one call, `solve`, over several methods."""
