"""Matrices behind a few operations: dense and sparse rows, kernel matrices on demand, features of kernels."""
