"""The examples run and show what their pages say."""

import importlib.util
import os
import re
from pathlib import Path

import numpy as np
import pytest

import toprank
from cli.support import transactions
from toprank import PatMatNP
from toprank.files import fit_file

EXAMPLES = Path(__file__).parents[1] / "examples"


def load_example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_collapse(tmp_path, capsys):
    models, collapsed = load_example("collapse").main(tmp_path / "figure.png")
    assert collapsed == ["TopPush"]
    for name in ("TopPushK(k=50)", "PatMat(tau=0.1)"):
        w = models[name].coef_[0]
        assert w[0] > 5 * abs(w[1])
    assert "TopPush          objective 1.0000" in capsys.readouterr().out
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_pair_sums(tmp_path):
    module = load_example("pair_sums")
    series, exact, _ = module.main(tmp_path / "figure.png")
    assert (series < module.EPS).all()
    assert np.max(exact) < 1e-12
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_movielens(tmp_path, capsys, monkeypatch):
    module = load_example("movielens")
    if "TOPRANK_DATA" in os.environ:
        wmw = module.main(tmp_path / "figure.png", n_users=3, sizes=(50, 100), name="movielens_100k")
        assert set(wmw) == {50, 100}
        assert all(0.55 < value < 0.95 for value in wmw.values())
        assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.delenv("TOPRANK_DATA", raising=False)
    assert module.main(tmp_path / "none.png") == {}
    assert "TOPRANK_DATA" in capsys.readouterr().out


@pytest.mark.slow
def test_kernel_fashion(tmp_path, capsys, monkeypatch):
    module = load_example("kernel_fashion")
    if "TOPRANK_DATA" in os.environ:
        precisions = module.main(tmp_path / "figure.png", n_train=600)
        assert {kernel for kernel, _ in precisions} == {"linear", "Gaussian"}
        assert all(values[0] > 0.5 for (kernel, _), values in precisions.items() if kernel == "Gaussian")
        assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.delenv("TOPRANK_DATA", raising=False)
    assert module.main(tmp_path / "none.png") == {}
    assert "TOPRANK_DATA" in capsys.readouterr().out


def test_displays(tmp_path, capsys):
    displays = load_example("displays").main(tmp_path / "figure.png")
    found = {name: displays["RocAtTopDisplay", name].curves[0].point.recall for name in ("TauFPL", "logistic")}
    assert found["TauFPL"] > 0.9 > found["logistic"]
    assert "figure:" in capsys.readouterr().out
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow  # the demonstration and the README run the same models on the same payments
def test_alerts(tmp_path, capsys):
    found = load_example("alerts").main(tmp_path / "figure.png", every=50)
    assert "LightGBM" in found
    assert all(150 < number <= 241 for number in found.values())
    best = int(re.search(r"the best that there can be +(\d+)", capsys.readouterr().out).group(1))
    assert best == 241
    assert found["PatMatNP, Gaussian"] > 1.2 * found["logistic regression"]
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_alerts_with_the_card_data_needs_their_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("TOPRANK_DATA", raising=False)
    assert load_example("alerts").main(tmp_path / "none.png", real=True) == {}
    assert "TOPRANK_DATA" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif("TOPRANK_DATA" not in os.environ, reason="needs the card data")
def test_alerts_with_the_card_data(tmp_path):
    found = load_example("alerts").main(tmp_path / "figure.png", real=True, every=20)
    assert len(found) == 5
    assert all(50 < number <= 200 for number in found.values())


def test_online_auc(tmp_path):
    auc = load_example("online_auc").main(tmp_path / "figure.png", passes=2)
    assert len(auc) >= 5
    assert min(auc.values()) > 0.9
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_service(tmp_path, monkeypatch):
    client_of = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed").TestClient
    transactions(600).write_csv(tmp_path / "train.csv")
    known = {"target": "fraud", "positive": "yes", "id_column": "transaction", "ignore": ["date", "note"]}
    model = fit_file(tmp_path / "train.csv", PatMatNP(tau=0.05), **known, holdout=0)
    toprank.save(model, tmp_path / "fraud.toprank")
    monkeypatch.setenv("MODEL", str(tmp_path / "fraud.toprank"))
    client = client_of(load_example("service").app)
    frame = transactions(20, seed=1)
    answer = client.post("/score", json=frame.to_dicts())
    assert answer.status_code == 200
    expected = model.decision_function(frame).tolist()
    assert answer.json() == [{"score": score, "alert": score > 0} for score in expected]
    gaps = [{"amount": 3, "country": None, "age": None, "abroad": "true"}, {"amount": 2.5, "abroad": True}]
    assert len(client.post("/score", json=gaps).json()) == 2
    refused = client.post("/score", json=[{"amount": 1.0}])
    assert (refused.status_code, "has no column" in refused.json()["detail"]) == (422, True)
    refused = client.post("/score", json=[gaps[0] | {"amount": "much"}])
    assert (refused.status_code, "'amount'" in refused.json()["detail"]) == (422, True)
    assert client.post("/score", json={"amount": 1}).status_code == 422
    assert client.get("/health").json()["columns"] == model.columns


def test_the_page_shows_the_service():
    code = (EXAMPLES / "service.py").read_text(encoding="utf-8").split('"""\n\n', 1)[1]
    assert code in (EXAMPLES.parent / "docs" / "howto" / "deploy.md").read_text(encoding="utf-8")


def test_every_example_is_tested():
    tested = {"alerts", "collapse", "displays", "kernel_fashion", "movielens", "online_auc", "pair_sums", "service"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tested
