"""The paper's experiments, made again: a module each, found by its name in `catalogue.py`."""
