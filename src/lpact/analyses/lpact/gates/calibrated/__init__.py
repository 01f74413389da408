"""The ``calibrated`` gate profile: every gate a test with a known error rate (docs/explanation/calibrated.md)."""
