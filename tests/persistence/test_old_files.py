"""Model files that an earlier version wrote still load, with the same scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from toprank.persistence import load, save
from toprank.solvers.problem import DualPoint

_MODELS = Path(__file__).parent / "models"
_EXPECTED = json.loads((_MODELS / "scores.json").read_text())


@pytest.mark.filterwarnings("ignore::toprank.persistence.ModelVersionWarning")  # scikit-learn may be another
@pytest.mark.parametrize("name", sorted(path.stem for path in _MODELS.glob("*.toprank")))
def test_files_of_an_earlier_version_load(name: str, tmp_path: Path) -> None:
    model = load(_MODELS / f"{name}.toprank")
    rows = _EXPECTED["tables"].get(name)
    if rows is None:
        rows = np.array(_EXPECTED["X"])
    else:
        polars = pytest.importorskip("polars")
        rows = polars.DataFrame(rows)
    scores = model.decision_function(rows)
    np.testing.assert_allclose(scores, _EXPECTED["scores"][name], rtol=1e-12)
    save(model, tmp_path / "again.toprank")
    np.testing.assert_array_equal(load(tmp_path / "again.toprank").decision_function(rows), scores)


def test_every_kind_of_model_is_there() -> None:
    assert set(_EXPECTED["scores"]) == {path.stem for path in _MODELS.glob("*.toprank")}


@pytest.mark.parametrize("name", ["apg_warm_start", "pairs_warm_start"])
def test_the_multipliers_of_an_earlier_version_are_a_dual_point(name: str) -> None:
    state = load(_MODELS / f"{name}.toprank")._solution.state
    assert type(state) is DualPoint
    assert state.y.sum() == pytest.approx(state.p.sum(), rel=1e-9)  # both were kept as multipliers of one sum
