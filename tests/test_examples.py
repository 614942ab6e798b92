"""The examples run and show what their pages say."""

import importlib.util
from pathlib import Path

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


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"collapse"}
