"""Estimators for scikit-learn: they validate and wire, and do not compute."""
