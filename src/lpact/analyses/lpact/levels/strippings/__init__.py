"""Stripping methods: one file each."""
