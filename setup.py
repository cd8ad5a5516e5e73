"""Packages that are found, and the folder scenarios/ as one of them; setup.cfg has all the rest, but cannot add one."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["queueing_ucrl*"]), "queueing_ucrl.scenarios"])
