"""Surrogates, thresholds and what they make together; everything here sees scores, never the data."""
