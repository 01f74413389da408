"""ASSAY SENSITIVITY: positive controls; they never change a verdict on a model."""
