"""Kernels: the matrix of the training rows on demand, and the solvers that work in the dual."""
