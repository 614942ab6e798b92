"""Hostile problems over the whole family, judged by independent references; `make hunt` runs it."""
