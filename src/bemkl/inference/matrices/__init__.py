"""Matrices between the kernels, in the form that pays: all numbers, or a diagonal plus thin factors."""
