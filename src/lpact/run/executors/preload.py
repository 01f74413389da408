"""Importing this module imports what tasks of the built-in analyses need (`fork_server`)."""

from importlib import import_module

from lpact.analyses import BUILT_IN
from lpact.registry import ANALYSES

for _name in BUILT_IN:
    for _module in ANALYSES.get(_name).task_modules:
        import_module(_module)
