"""``toprank info`` of a model: what the file says at a glance is what the loaded model says."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.support import run
from toprank import PatMatNP
from toprank.cli.info import _at_a_glance, _loaded
from toprank.cli.output import Output
from toprank.decision import AlertShareClassifier
from toprank.files import fit_file
from toprank.persistence import load, save
from toprank.persistence.container import read_container, write_container
from toprank.persistence.glance import glance

MODELS = Path(__file__).parents[1] / "persistence" / "models"


@pytest.fixture(scope="module")
def table_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("info")
    random = np.random.default_rng(0)
    y = random.random(200) < 0.3
    x = random.normal(size=200) + y
    lines = [f"{i},{x[i]:.3f},{'ab'[i % 2]},{int(y[i])}" for i in range(200)]
    (folder / "rows.csv").write_text("\n".join(["id,x,c,y", *lines]))
    model = fit_file(folder / "rows.csv", PatMatNP(tau=0.05), target="y", id_column="id", max_fpr=0.2)
    save(model, folder / "m.toprank")
    return folder / "m.toprank"


@pytest.mark.filterwarnings("ignore::toprank.persistence.ModelVersionWarning")
@pytest.mark.parametrize("name", sorted(path.stem for path in MODELS.glob("*.toprank")))
def test_both_ways_agree(name, tmp_path):
    """Of a file of an earlier version the model is loaded; saved again it is described at a glance."""
    old, new = str(MODELS / f"{name}.toprank"), str(tmp_path / "new.toprank")
    output = Output()
    assert _at_a_glance(old, output) is None
    save(load(old), new)
    found, loaded = _at_a_glance(new, output), _loaded(new, output)
    assert found is not None
    assert found == json.loads(json.dumps(found)) == loaded
    assert found | {"versions": {}} == _loaded(old, output) | {"versions": {}}


def test_a_model_of_the_command_line(table_model):
    found, loaded = (way(str(table_model), Output()) for way in (_at_a_glance, _loaded))
    assert found == loaded
    assert (found["target"], found["positive"], found["id"]) == ("y", "1", "id")
    assert found["summary"]["threshold"]["max_fpr"] == 0.2


def test_models_that_are_not_fitted(tmp_path):
    path = str(tmp_path / "m")
    save(AlertShareClassifier(PatMatNP(tau=0.5), share=0.1), path)
    assert _at_a_glance(path, Output()) == _loaded(path, Output())
    assert _loaded(path, Output())["steps"] == ["AlertShareClassifier"]


def test_nothing_heavy_is_imported(table_model):
    code = (
        "import sys\nfrom toprank.cli.app import app\n"
        f"try:\n    app(['info', {str(table_model)!r}])\nexcept SystemExit as end:\n    assert not end.code\n"
        "print([name for name in ('sklearn', 'scipy', 'polars', 'pandas', 'numba') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "PatMatNP" in shown
    assert shown.splitlines()[-1] == "[]"


def test_what_is_not_right_is_left_to_the_load(table_model, tmp_path):
    """Whatever the header says, a glance gives nothing that a load would refuse or that is not plain."""
    container = read_container(table_model)
    header = json.loads(json.dumps(container.header))
    arrays = [np.zeros(0)]
    root = header["nodes"][header["root"]["node"]]["state"]
    summary = header["nodes"][root["summary_"]["node"]]["items"]

    def changed(**new):
        write_container(tmp_path / "m", header | new, arrays)
        return glance(tmp_path / "m", "toprank.tables.model.TableModel", ["summary_"])

    assert changed() is not None
    for new in ({"kind": "checkpoint"}, {"about": None}, {"about": {}}, {"nodes": []}, {"root": 7}, {"versions": 1}):
        assert changed(**new) is None
    # a list in a list in a list, each twice in the next: 2^60 values
    bomb = [{"kind": "list", "items": []}]
    bomb += [{"kind": "list", "items": [{"node": i}, {"node": i}]} for i in range(60)]
    nodes = [*bomb, {"kind": "object", "class": "toprank.tables.model.TableModel", "state": {"summary_": {"node": 60}}}]
    assert changed(nodes=nodes, root={"node": 61}) is None
    # a summary of the right form and of wrong types
    summary[:] = [pair for pair in summary if pair[0] != "threshold"]
    write_container(tmp_path / "m", header, arrays)
    assert _at_a_glance(str(tmp_path / "m"), Output()) is None


def test_damage_is_told_as_before(table_model, tmp_path):
    content = table_model.read_bytes()
    (tmp_path / "m").write_bytes(content[:-5])
    result = run("info", tmp_path / "m")
    assert result.exit_code == 1
    assert "its checksum does not fit its content" in result.stderr
    assert "there is no model" in run("info", tmp_path / "none").stderr
