"""Families of posteriors of the kernel weights: one file each, entered in `bemkl.registry`."""
