"""Learning for people who act only on the top of a list.

The package loads its parts on first use, so ``import toprank`` is cheap:

>>> import toprank
>>> toprank.metrics.positives_at_top([1, 1, 0], [0.9, 0.2, 0.4])
0.5
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toprank import (
        baselines,
        blending,
        boosting,
        datasets,
        decision,
        explanation,
        files,
        metrics,
        online,
        pairwise,
        persistence,
        plots,
        report,
        selection,
        streams,
        trees,
    )
    from toprank.blending.blend import TopBlend
    from toprank.decision.alert_share import AlertShareClassifier
    from toprank.decision.neyman_pearson import NeymanPearsonClassifier
    from toprank.decision.top_k import TopKClassifier
    from toprank.deployment.export import to_onnx
    from toprank.estimators.path import path
    from toprank.estimators.top import Grill, GrillNP, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
    from toprank.exceptions import ApproximationWarning, DegenerateSolutionWarning, PositiveClassWarning
    from toprank.explanation.contributions import contributions
    from toprank.explanation.importance import importance_at_the_top
    from toprank.explanation.reasons import reasons
    from toprank.online.adaoam import AdaOAM
    from toprank.online.cbr import CBR
    from toprank.online.oam import OAM
    from toprank.online.opauc import OPAUC
    from toprank.online.uniexp import UniExp
    from toprank.pairwise.wmw import WMWRanker
    from toprank.persistence.model_file import load, save
    from toprank.selection.compare import compare
    from toprank.selection.search import TopSearchCV
    from toprank.streams.run import stream
    from toprank.trees.forest import TopForest
    from toprank.trees.leaf_features import LeafFeatures

__version__ = "0.1.0.dev0"

__all__ = [
    "CBR",
    "OAM",
    "OPAUC",
    "AdaOAM",
    "AlertShareClassifier",
    "ApproximationWarning",
    "DegenerateSolutionWarning",
    "Grill",
    "GrillNP",
    "LeafFeatures",
    "NeymanPearsonClassifier",
    "PatMat",
    "PatMatNP",
    "PositiveClassWarning",
    "TauFPL",
    "TopBlend",
    "TopForest",
    "TopKClassifier",
    "TopMeanK",
    "TopPush",
    "TopPushK",
    "TopSearchCV",
    "UniExp",
    "WMWRanker",
    "baselines",
    "blending",
    "boosting",
    "compare",
    "contributions",
    "datasets",
    "decision",
    "explanation",
    "files",
    "importance_at_the_top",
    "load",
    "metrics",
    "online",
    "pairwise",
    "path",
    "persistence",
    "plots",
    "reasons",
    "report",
    "save",
    "selection",
    "stream",
    "streams",
    "to_onnx",
    "trees",
]

HOMES = {
    "AlertShareClassifier": "decision.alert_share",
    "ApproximationWarning": "exceptions",
    "DegenerateSolutionWarning": "exceptions",
    "LeafFeatures": "trees.leaf_features",
    "PositiveClassWarning": "exceptions",
    "TopForest": "trees.forest",
    "NeymanPearsonClassifier": "decision.neyman_pearson",
    "TopBlend": "blending.blend",
    "TopKClassifier": "decision.top_k",
    "TopSearchCV": "selection.search",
    "WMWRanker": "pairwise.wmw",
    "compare": "selection.compare",
    "contributions": "explanation.contributions",
    "importance_at_the_top": "explanation.importance",
    "load": "persistence.model_file",
    "path": "estimators.path",
    "reasons": "explanation.reasons",
    "save": "persistence.model_file",
    "stream": "streams.run",
    "to_onnx": "deployment.export",
    **dict.fromkeys(
        ["PatMatNP", "PatMat", "TauFPL", "TopMeanK", "TopPush", "TopPushK", "GrillNP", "Grill"], "estimators.top"
    ),
    **{name: f"online.{name.lower()}" for name in ["CBR", "OAM", "OPAUC", "AdaOAM", "UniExp"]},
    "AATP": "baselines.aatp",
    "CostSensitive": "baselines.cost_sensitive",
    "InfinitePush": "baselines.infinite_push",
    "OWPC": "baselines.owpc",
    "PNormPush": "baselines.pnorm_push",
    "RankBoost": "baselines.rank_boost",
    "RankNet": "baselines.rank_net",
    "RankSVM": "baselines.rank_svm",
    "SVMMAP": "baselines.svm_map",
    "SVMpAUC": "baselines.svm_pauc",
}
"""Where the public names are; the commands offer the methods among them, and model files may name them."""


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(importlib.import_module(f"toprank.{HOMES[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"toprank.{name}")
    raise AttributeError(f"module 'toprank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
