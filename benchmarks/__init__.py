"""Measurements of lpact beside other libraries. ``make bench`` runs them; see README.md."""
