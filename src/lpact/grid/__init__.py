"""The rows that features and neural responses share."""

from lpact.grid.build import ReadGrid, build_grid, read_grid
from lpact.grid.event_grid import EventGrid, Exclusion

__all__ = ["EventGrid", "Exclusion", "ReadGrid", "build_grid", "read_grid"]
