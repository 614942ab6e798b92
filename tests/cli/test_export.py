"""``toprank export``: the printed inputs and outputs are those of the file, and the check compares both."""

import json

import numpy as np
import pytest

import toprank
from cli.support import files_in, run
from toprank import PatMatNP
from toprank.deployment.checking import agreement

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def test_export(fitted):
    result = run("export", fitted / "model.toprank", "-o", fitted / "model.onnx", "--check", fitted / "test.csv")
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.splitlines()]
    assert ["inputs", "amount:", "float64", "(n,", "1),", "number"] in lines
    assert ["country:", "text", "(n,", "1),", "category"] in lines
    assert ["outputs", "score:", "float64", "(n)"] in lines
    assert ["positive", "yes:", "score", ">", "0"] in lines
    assert "all decisions are equal" in result.output
    content = (fitted / "model.onnx").read_bytes()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    model = toprank.load(fitted / "model.toprank")
    assert [one.name for one in session.get_inputs()] == list(model.columns)


def test_export_as_json(fitted):
    result = run(
        *("export", fitted / "model.toprank", "-o", fitted / "narrow.onnx", "--input-type", "float32", "--json"),
        *("--check", fitted / "test.csv"),
    )
    record = json.loads(result.stdout)
    assert {one["type"] for one in record["inputs"]} == {"float32", "text"}
    assert [one["name"] for one in record["outputs"]] == ["score", "label"]
    assert record["bytes"] == (fitted / "narrow.onnx").stat().st_size
    assert 0 < record["check"]["largest"] < 1e-4


def test_a_check_finds_another_model(fitted):
    model = toprank.load(fitted / "model.toprank")
    content = toprank.to_onnx(model, input_type="float64").SerializeToString()
    same = agreement(str(fitted / "test.csv"), model, content)
    assert (same.rows, same.different) == (len((fitted / "test.csv").read_text().splitlines()) - 1, 0)
    assert same.largest < 1e-12
    other = toprank.load(fitted / "model.toprank")
    inner = other.estimator_
    inner = inner.estimators_[0] if hasattr(inner, "estimators_") else inner
    inner[-1].coef_ *= 1.5
    found = agreement(str(fitted / "test.csv"), other, content)
    assert found.largest > 0.01
    assert found.different > 0
    inner[-1].intercept_ = np.full(1, np.nan)
    content = toprank.to_onnx(other).SerializeToString()
    assert agreement(str(fitted / "test.csv"), model, content).largest == np.inf


def test_a_check_reads_as_the_model_does(tmp_path):
    """Decimal commas, words for missing values and a stray mark: the graph gets what the model gets."""
    random = np.random.default_rng(0)
    lines = ["amount;land;fraud"]
    for i in range(400):
        fraud = random.random() < 0.3
        amount = "k.A." if i % 9 == 0 else f"{random.normal() + fraud:.3f}".replace(".", ",")
        lines.append(f"{'?' if i == 7 else amount};{random.choice(['DE', 'FR', 'k.A.', '-', 'None'])};{int(fraud)}")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = run(
        *("fit", tmp_path / "rows.csv", "-t", "fraud", "-m", tmp_path / "m.toprank", "-q"),
        *("--missing", "k.A.", "--decimal", ","),
    )
    assert result.exit_code == 0, result.output
    result = run(
        "export", tmp_path / "m.toprank", "-o", tmp_path / "m.onnx", "--check", tmp_path / "rows.csv", "--json"
    )
    record = json.loads(result.stdout)
    assert {one["name"]: one["kind"] for one in record["inputs"]} == {"amount": "number", "land": "category"}
    assert (record["check"]["rows"], record["check"]["different"]) == (400, 0)
    assert record["check"]["largest"] < 1e-12
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    texts = np.array([["k.A."], ["K.A."], ["-"], ["none"], [""], ["N/A"], ["?"]], dtype=object)
    scores = session.run(["score"], {"amount": np.ones((len(texts), 1)), "land": texts})[0]
    assert len(set(scores.tolist())) == 1


def test_a_model_without_columns(tmp_path):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 2)), random.random(50) < 0.4
    toprank.save(PatMatNP().fit(X, y), tmp_path / "plain.toprank")
    result = run("export", tmp_path / "plain.toprank", "-o", tmp_path / "plain.onnx")
    assert "inputs    X: float64 (n, 2)" in result.output
    result = run("export", tmp_path / "plain.toprank", "-o", tmp_path / "other.onnx", "--check", "rows.csv")
    assert result.exit_code == 1
    assert "--check is for models of toprank fit" in result.output
    assert "other.onnx" not in files_in(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{model}", "-o", "{model}"), "is the file that is read"),
        (("{model}", "-o", "{folder}/a.onnx", "--input-type", "int8"), "--input-type must be one of"),
        (("{folder}/none", "-o", "{folder}/a.onnx"), "there is no model"),
        (("{model}", "-o", "{folder}/a.onnx", "--check", "{folder}/none.csv"), "there is no file"),
        (("{model}", "-o", "{folder}/nowhere/a.onnx"), "folder that does not exist"),
    ],
)
def test_errors(arguments, said, fitted):
    given = [one.format(model=fitted / "model.toprank", folder=fitted) for one in arguments]
    result = run("export", *given)
    assert result.exit_code == 1
    assert said in result.output
    assert "a.onnx" not in files_in(fitted)
