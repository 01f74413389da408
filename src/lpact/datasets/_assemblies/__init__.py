"""Parts that readers of assemblies share."""
