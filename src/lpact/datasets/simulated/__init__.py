"""Simulated studies with known truth; docs/explanation/simulated-studies.md has the equations.

Every number comes from a stream keyed by seed, dataset name and its own place: a recording can be made without the
others, in any order and process.
"""
