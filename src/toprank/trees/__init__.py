"""Ensembles of trees whose leaves are features of a model for the top."""

from toprank.trees.forest import TopForest
from toprank.trees.leaf_features import LeafFeatures

__all__ = ["LeafFeatures", "TopForest"]
