"""Figures, pages and texts about runs, from tables alone; nothing here knows an analysis by name."""
