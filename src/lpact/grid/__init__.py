"""GRID: the rows that features and neural responses share."""

from lpact.grid.build import build_grid
from lpact.grid.event_grid import EventGrid, Exclusion

__all__ = ["EventGrid", "Exclusion", "build_grid"]
