"""READ: raw files to recordings. One file per dataset."""
