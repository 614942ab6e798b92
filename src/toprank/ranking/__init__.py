"""The ranked list: runs of ties, curves and intervals, as numbers; metrics, displays and the report stand on it."""
