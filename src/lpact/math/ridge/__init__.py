"""Ridge readouts that choose lag, penalty and components on blocks they are not tested on."""

from lpact.math.ridge._arrays import FittedFeatures
from lpact.math.ridge.banded import (
    BandedFit,
    BandedReadout,
    BandedSubsets,
    cross_validated_banded_ridge,
    nested_banded_ridge,
)
from lpact.math.ridge.compute import Compute, TooLittleMemory
from lpact.math.ridge.grid import (
    METRICS,
    PER_TARGET,
    SHARED,
    BandedGrid,
    Readout,
    RidgeFit,
    RidgeGrid,
    Selection,
    banded_candidates,
)
from lpact.math.ridge.leave_one_out import LeaveOneOutRidge, Targets, leave_one_out_ridge
from lpact.math.ridge.nested import NestedRidge, cross_validated_ridge, nested_ridge, nested_ridge_draws
from lpact.math.ridge.single import single_column_readouts
from lpact.math.ridge.small import LinearFeatures, MappedColumns

__all__ = [
    "METRICS",
    "PER_TARGET",
    "SHARED",
    "BandedFit",
    "BandedGrid",
    "BandedReadout",
    "BandedSubsets",
    "Compute",
    "FittedFeatures",
    "LeaveOneOutRidge",
    "LinearFeatures",
    "MappedColumns",
    "NestedRidge",
    "Readout",
    "RidgeFit",
    "RidgeGrid",
    "Selection",
    "Targets",
    "TooLittleMemory",
    "banded_candidates",
    "cross_validated_banded_ridge",
    "cross_validated_ridge",
    "leave_one_out_ridge",
    "nested_banded_ridge",
    "nested_ridge",
    "nested_ridge_draws",
    "single_column_readouts",
]
