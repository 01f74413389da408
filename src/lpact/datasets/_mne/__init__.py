"""Parts that readers through MNE share."""
