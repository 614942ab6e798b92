"""The demonstration prints its table, draws its figure and reports what it cannot write."""

import re

import pytest

from toprank import demo


def test_demo_prints_tables_and_writes_a_figure(tmp_path, capsys):
    out = tmp_path / "new folder" / "figure.png"
    assert demo.main(["--splits", "2", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for title in demo.tasks():
        assert title in printed
    for name in demo.models():
        assert len(re.findall(rf"{re.escape(name)} .*±", printed)) == 2
    gaps = re.findall(r"duality gap of the models of toprank: (\S+)", printed)
    assert len(gaps) == 2
    assert all(float(gap) <= 1e-4 for gap in gaps)
    assert f"figure: {out}" in printed
    assert out.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in out.parent.iterdir()] == ["figure.png"]


def test_demo_says_what_it_cannot_write(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "held_out_scores", lambda X, y, n: ({"model": [(y, y), (y, y)]}, 0.0))
    (tmp_path / "file").write_text("")
    assert demo.main(["--out", str(tmp_path / "file" / "figure.png")]) == 1
    assert "cannot be written" in capsys.readouterr().out


def test_demo_needs_two_splits(capsys):
    with pytest.raises(SystemExit, match="2"):
        demo.main(["--splits", "1"])
    assert "at least 2" in capsys.readouterr().err
