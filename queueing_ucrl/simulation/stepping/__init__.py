"""Runs that stop at the door: what Gymnasium's environments step from arrival to arrival, one or many at once."""
