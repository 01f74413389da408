"""Alignment of one representation with many units at once, and of units with each other.

``*_to_units(phi, units)`` aligns φ [n_events, n_columns] with every unit (column) of units [n_events, n_units] and
returns [n_units]; ``*_between_units(units)`` is the same definition with φ = one unit, for all pairs: [n_units,
n_units], diagonal 1. Columns are standardised first: shifting a column, or scaling it by a positive factor, changes
nothing. Constant columns of φ are left out; a constant unit, or φ without any varying column, gives NaN. Kernels and
RDM patterns of whole representations are computed once and compared many times; their columns are not standardised.
"""
