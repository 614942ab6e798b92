"""Solvers: each takes a problem and returns a solution with its certificate."""
