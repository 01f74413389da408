"""Responses to stimuli, as arrays with names: what every analysis starts from.

>>> import numpy as np
>>> from lpact.responses import Responses
>>> brain = Responses.from_numpy(np.random.default_rng(0).normal(size=(20, 3, 8)), regions=["V1"] * 8)
>>> brain
Responses(20 stimuli × 3 repetitions × 8 units, subject '01')
>>> brain.mean().shape
(20, 8)

Neural data, ratings and choices fit alike: a unit is an electrode, a voxel, a region, a rating scale or a person. Time
and words are optional. Constructors take NumPy arrays, pandas or Polars tables, xarray assemblies (Brain-Score), MNE
`Epochs` and `Raw`, and the time × voxels arrays of nilearn; `lpact.inputs.responses` reads them from any dataset.
"""

from lpact.responses.record import Responses

__all__ = ["Responses"]
