"""Parts that readers of fMRI share."""
