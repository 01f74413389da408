"""CONTROLS: severe controls, one file per family."""
