"""REPORT: figures and pages, from tables alone."""
