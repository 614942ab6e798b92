"""Loading from made folders, whole and broken in every way, and the bundled sets."""

import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from toprank.datasets import DatasetError, list_datasets, load, load_bundled, load_task


def _npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=array.dtype.kind == "O")
    return stream.getvalue()


def _write_folder(folder, files, name="toy", **facts):
    for file, content in files.items():
        (folder / file).write_bytes(content)
    sums = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    entry = {"name": name, "files": list(files), "sha256": sums, **facts}
    (folder / "MANIFEST.json").write_text(json.dumps({"datasets": [entry]}))
    return folder


@pytest.fixture
def dense(tmp_path):
    content = _npz(X=np.arange(12.0).reshape(4, 3), y=np.array([0, 1, 1, 0]), group=np.arange(4))
    return _write_folder(tmp_path, {"toy.npz": content}, n_samples=4, n_features=3, licence="free")


@pytest.fixture
def sparse(tmp_path):
    stream = io.BytesIO()
    sp.save_npz(stream, sp.csr_matrix(np.diag([1.0, 2.0, 3.0])))
    files = {
        "toy.csr.npz": stream.getvalue(),
        "toy.y.npy": _npy(np.array([2, 0, 2], dtype=np.uint8)),
        "toy.classes.npy": _npy(np.array(["a", "b", "c"])),
        "toy.vocab.npz": _npz(vocab=np.char.encode(["x", "é", "z"], "utf-8")),
        "toy.split.npy": _npy(np.array(["train", "train", "test"])),
    }
    return _write_folder(tmp_path, files, n_train=2)


def test_dense_set(dense):
    data = load("toy", data_home=dense)
    np.testing.assert_array_equal(data.X, np.arange(12.0).reshape(4, 3))
    assert data.y.tolist() == [0, 1, 1, 0]
    assert data.feature_names is None
    assert data.target_names is None
    assert data.n_train is None
    assert data.extras["group"].tolist() == [0, 1, 2, 3]
    assert data.name == "toy"
    assert "Licence: free" in data.DESCR


def test_sparse_set_and_its_companions(sparse):
    data = load("toy", data_home=sparse)
    assert sp.issparse(data.X)
    assert data.X.format == "csr"
    np.testing.assert_array_equal(data.X.toarray(), np.diag([1.0, 2.0, 3.0]))
    assert data.target_names[data.y].tolist() == ["c", "a", "c"]
    assert data.feature_names.tolist() == ["x", "é", "z"]
    assert data.extras["split"].tolist() == ["train", "train", "test"]
    assert data.n_train == 2


def test_folder_from_the_environment(dense, monkeypatch):
    monkeypatch.setenv("TOPRANK_DATA", str(dense))
    assert list_datasets() == ["toy"]
    assert load("toy").X.shape == (4, 3)


@pytest.mark.parametrize("value", [None, ""])
def test_no_folder_known(value, monkeypatch):
    monkeypatch.delenv("TOPRANK_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("TOPRANK_DATA", value)
    with pytest.raises(DatasetError, match=r"environment variable TOPRANK_DATA.*data_home="):
        load("toy")


def test_folder_missing(tmp_path, monkeypatch):
    with pytest.raises(DatasetError, match=r"data_home points to .*nowhere.* not a folder"):
        load("toy", data_home=tmp_path / "nowhere")
    monkeypatch.setenv("TOPRANK_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match="TOPRANK_DATA points to"):
        list_datasets()


def test_manifest_missing(tmp_path):
    with pytest.raises(DatasetError, match=r"has no MANIFEST\.json"):
        load("toy", data_home=tmp_path)


@pytest.mark.parametrize("content", [b'{"datasets": [', b"\xff\xfe\x00", b""])
def test_manifest_not_json(tmp_path, content):
    (tmp_path / "MANIFEST.json").write_bytes(content)
    with pytest.raises(DatasetError, match="not valid JSON"):
        load("toy", data_home=tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"datasets": {}},
        {"datasets": ["toy"]},
        {"datasets": [{"name": "toy"}]},
        {"datasets": [{"name": "toy", "files": ["toy.npz"], "sha256": {}}]},
        {"datasets": [{"name": 3, "files": [], "sha256": {}}]},
    ],
)
def test_manifest_of_another_form(tmp_path, content):
    (tmp_path / "MANIFEST.json").write_text(json.dumps(content))
    with pytest.raises(DatasetError, match="expected form"):
        load("toy", data_home=tmp_path)


def test_unknown_name_suggests_the_nearest(dense):
    with pytest.raises(ValueError, match=r"'tyo'.*Did you mean 'toy'\?"):
        load("tyo", data_home=dense)
    with pytest.raises(ValueError, match=r"Known: \['toy'\]"):
        load("../../secret", data_home=dense)


def test_file_missing(dense):
    (dense / "toy.npz").unlink()
    with pytest.raises(DatasetError, match=r"toy\.npz.*missing.*Copy it again"):
        load("toy", data_home=dense)


def test_file_is_a_folder(dense):
    (dense / "toy.npz").unlink()
    (dense / "toy.npz").mkdir()
    with pytest.raises(DatasetError, match=r"toy\.npz.*cannot be read"):
        load("toy", data_home=dense)


def test_truncated_file(dense):
    content = (dense / "toy.npz").read_bytes()
    (dense / "toy.npz").write_bytes(content[:-1])
    expected, found = (hashlib.sha256(part).hexdigest()[:12] for part in (content, content[:-1]))
    with pytest.raises(DatasetError, match="truncated or altered") as caught:
        load("toy", data_home=dense)
    for fact in ("toy.npz", f"{len(content) - 1} bytes", expected, found, "Copy it again"):
        assert fact in str(caught.value)


@pytest.mark.parametrize("file", ["toy.csr.npz", "toy.y.npy", "toy.classes.npy", "toy.vocab.npz"])
def test_one_altered_byte_in_any_file(sparse, file):
    content = bytearray((sparse / file).read_bytes())
    content[len(content) // 2] ^= 1
    (sparse / file).write_bytes(content)
    with pytest.raises(DatasetError, match=f"{file}.*truncated or altered"):
        load("toy", data_home=sparse)


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"toy.npz": b"no archive"}, "cannot be read"),
        ({"toy.npz": _npz(X=np.eye(2), y=np.zeros(2))[:-9]}, "cannot be read"),
        ({"toy.npz": b""}, "cannot be read"),
        ({"toy.csr.npz": _npz(X=np.eye(2))}, "cannot be read"),
        ({"toy.csr.npz": b"", "toy.y.npy": b""}, "cannot be read"),
        ({"toy.vocab.npz": _npz(words=np.array([b"a"]))}, "cannot be read"),
        ({"toy.pickle": b"anything"}, "'pickle' are unknown"),
        ({"other.npz": _npz(X=np.eye(2), y=np.zeros(2))}, r"'other\.npz' are unknown"),
        ({"toy.npz": _npz(X=np.eye(2))}, "hold no y"),
        ({}, "hold no X and no y"),
        ({"toy.npz": _npz(X=np.eye(2), y=np.zeros(3))}, r"y of shape \(3,\)"),
        ({"toy.npz": _npz(X=np.eye(3), y=np.zeros(3))}, r"X of shape \(3, 3\)"),
        ({"toy.npz": _npz(X=np.zeros(2), y=np.zeros(2))}, r"X of shape \(2,\)"),
        ({"toy.npz": _npz(X=np.eye(2), y=np.array(0))}, r"y of shape \(\)"),
    ],
)
def test_right_checksum_but_wrong_content(tmp_path, files, complaint):
    _write_folder(tmp_path, files, n_samples=2, n_features=2)
    with pytest.raises(DatasetError, match=complaint):
        load("toy", data_home=tmp_path)


def test_pickled_objects_are_never_read(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    bomb = np.array([Bomb(), None], dtype=object)
    _write_folder(tmp_path, {"toy.npz": _npz(X=np.eye(2)), "toy.y.npy": _npy(bomb)})
    with pytest.raises(DatasetError, match="cannot be read"):
        load("toy", data_home=tmp_path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("leads_out", ["../toy.npz", "..", ".", "", "sub/toy.npz", "..\\toy.npz", "C:toy.npz"])
def test_manifest_cannot_name_files_elsewhere(tmp_path, leads_out):
    folder = tmp_path / "data" / "inner"
    folder.mkdir(parents=True)
    content = _npz(X=np.eye(2), y=np.zeros(2))
    (tmp_path / "data" / "toy.npz").write_bytes(content)
    entry = {"name": "toy", "files": [leads_out], "sha256": {leads_out: hashlib.sha256(content).hexdigest()}}
    (folder / "MANIFEST.json").write_text(json.dumps({"datasets": [entry]}))
    with pytest.raises(DatasetError, match="not a plain file inside"):
        load("toy", data_home=folder)


def test_absolute_path_in_the_manifest(tmp_path, dense):
    outside = str(dense / "toy.npz")
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "MANIFEST.json").write_text(
        json.dumps({"datasets": [{"name": "toy", "files": [outside], "sha256": {outside: "0" * 64}}]})
    )
    with pytest.raises(DatasetError, match="not a plain file inside"):
        load("toy", data_home=folder)


def test_symlinks_must_stay_inside(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    _write_folder(inner, {"toy.npz": _npz(X=np.eye(2), y=np.zeros(2))})
    (inner / "toy.npz").rename(inner / "stored.npz")
    (inner / "toy.npz").symlink_to(inner / "stored.npz")
    assert load("toy", data_home=inner).X.shape == (2, 2)
    (inner / "stored.npz").rename(tmp_path / "stored.npz")
    (inner / "toy.npz").unlink()
    (inner / "toy.npz").symlink_to(tmp_path / "stored.npz")
    with pytest.raises(DatasetError, match="not a plain file inside"):
        load("toy", data_home=inner)


def test_a_linked_folder_is_fine(tmp_path, dense):
    (tmp_path / "link").symlink_to(dense, target_is_directory=True)
    assert load("toy", data_home=tmp_path / "link").X.shape == (4, 3)


def test_task_of_a_made_folder(tmp_path):
    content = _npz(X=np.eye(4), y=np.array([6, 7, 8, 3]))
    _write_folder(tmp_path, {"winequality-red.npz": content}, name="winequality-red")
    data = load_task("winequality-red", data_home=tmp_path)
    assert data.y.dtype == np.int64
    assert data.y.tolist() == [0, 1, 1, 0]
    assert "quality 7 or 8" in data.DESCR


def test_task_by_class_names(tmp_path):
    stream = io.BytesIO()
    sp.save_npz(stream, sp.csr_matrix(np.eye(3)))
    files = {
        "nslkdd.csr.npz": stream.getvalue(),
        "nslkdd.y.npy": _npy(np.array([0, 1, 2], dtype=np.uint8)),
        "nslkdd.classes.npy": _npy(np.array(["back", "normal", "spy"])),
    }
    data = load_task("nslkdd", data_home=_write_folder(tmp_path, files, name="nslkdd"))
    assert data.y.tolist() == [1, 0, 1]
    assert data.target_names is None


def test_no_task_for_a_set_without_a_convention():
    with pytest.raises(ValueError, match=r"no binary task for 'glass'.*load\('glass'\)"):
        load_task("glass")


def test_breast_cancer_has_malignant_as_the_positive_class():
    from sklearn.datasets import load_breast_cancer

    data, raw = load_bundled("breast_cancer"), load_breast_cancer()
    np.testing.assert_array_equal(data.X, raw.data)
    np.testing.assert_array_equal(data.target_names[data.y], raw.target_names[raw.target])
    assert data.target_names[1] == "malignant"
    assert (data.y == 1).sum() == 212
    assert len(data.feature_names) == 30
    assert "1 is malignant" in data.DESCR


def test_digits_are_raw():
    data = load_bundled("digits")
    assert data.X.shape == (1797, 64)
    assert np.unique(data.y).tolist() == list(range(10))
    assert data.extras == {}


def test_unknown_bundled_name():
    with pytest.raises(ValueError, match="Did you mean 'breast_cancer'"):
        load_bundled("breast-cancer")


def test_import_is_cheap():
    code = (
        "import sys, toprank.datasets\n"
        "heavy = {'sklearn', 'scipy', 'pandas', 'polars', 'numba', 'tabmat'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
