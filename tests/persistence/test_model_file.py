"""Files that are refused, objects that are refused, and writing that is all or nothing."""

import functools
import hashlib
import json
import os
import pickle
import stat
import struct
import sys
import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from toprank import TopPush
from toprank.datasets import load_bundled
from toprank.persistence import ModelFileError, ModelVersionWarning, atomic, load, model_file, save

OPENING = struct.Struct("<8sIQ")


@pytest.fixture(scope="module")
def model():
    data = load_bundled("breast_cancer")
    return make_pipeline(StandardScaler(), TopPush()).fit(data.X, data.y)


@pytest.fixture
def path(model, tmp_path):
    save(model, tmp_path / "model.toprank")
    return tmp_path / "model.toprank"


def rewrite(path, change=lambda header: None, *, version=1, magic=b"TOPRANK\n", extra=b""):
    """Change the header and make the checksum fit again, as one who means harm would."""
    content = path.read_bytes()
    size = OPENING.unpack_from(content)[2]
    header = json.loads(content[20 : 20 + size])
    header = change(header) or header
    text = json.dumps(header).encode()
    arrays = content[20 + size + -(20 + size) % 64 : -32]
    body = OPENING.pack(magic, version, len(text)) + text + bytes(-(20 + len(text)) % 64) + arrays + extra
    path.write_bytes(body + hashlib.sha256(body).digest())


def test_rewriting_nothing_changes_nothing(path, model):
    rewrite(path)
    np.testing.assert_array_equal(load(path)[-1].coef_, model[-1].coef_)


@pytest.mark.parametrize("kept", [0, 1, 8, 19, 20, 51, 100, 3000, -33, -1])
def test_truncated(path, kept):
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelFileError, match=r"model.toprank' cannot be loaded"):
        load(path)


@pytest.mark.parametrize("position", [3, 9, 15, 30, 500, -400, -5])
def test_altered(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize("content", [b"", pickle.dumps([1, 2]), b"PK\x03\x04", b"label,x\n1,2\n"])
def test_something_else(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="does not start as a file of"):
        load(path)


def test_newer_version(path):
    rewrite(path, version=2)
    with pytest.raises(ModelFileError, match="version 2, and this toprank reads versions up to 1; install a newer"):
        load(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs the endless file of Unix")
def test_endless_file():
    with pytest.raises(ModelFileError, match="not a plain file"):
        load("/dev/zero")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs the pipes of Unix")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    failure = []
    loading = threading.Thread(target=lambda: failure.append(_error_of(tmp_path / "pipe")), daemon=True)
    loading.start()
    loading.join(20)
    assert len(failure) == 1
    assert "not a plain file" in failure[0]


def _error_of(path):
    try:
        load(path)
    except ModelFileError as error:
        return str(error)


@pytest.mark.parametrize("name", ["predict", "decision_function", "fit_transform", "named_steps", "set_output"])
def test_no_method_of_a_pipeline_is_hidden(name, path):
    """Some methods are there only if a step has them, by a descriptor that is no function."""

    def hide(header):
        pipeline = next(node for node in nodes_of_kind(header, "object") if node["class"] == "sklearn.Pipeline")
        pipeline["state"][name] = {"type": "str"}

    rewrite(path, hide)
    with pytest.raises(ModelFileError, match=f"'{name}', which would hide a method"):
        load(path)


def nodes_of_kind(header, kind):
    return [node for node in header["nodes"] if node["kind"] == kind]


def first_array(**changes):
    return lambda header: nodes_of_kind(header, "array")[0].update(changes)


def first_object(**changes):
    return lambda header: nodes_of_kind(header, "object")[0].update(changes)


def attribute(**changes):
    return lambda header: nodes_of_kind(header, "object")[0]["state"].update(changes)


HARMFUL = {
    "a class of the standard library": (
        first_object(**{"class": "subprocess.Popen"}),
        "names the class 'subprocess.Popen'",
    ),
    "a class outside the list": (first_object(**{"class": "sklearn.base.BaseEstimator"}), "names the class"),
    "a class that is a list": (first_object(**{"class": ["os.system"]}), "names the class"),
    "a hidden method": (attribute(transform=3), "'transform', which would hide a method"),
    "a hidden property": (attribute(__class__=3), "'__class__', which would hide a method"),
    "a huge array": (first_array(shape=[10**15]), "needs 8000000000000000 bytes"),
    "an impossible array": (first_array(shape=[0, 2**80]), "array of the shape"),
    "a negative size": (first_array(shape=[-1]), "array of the shape"),
    "a large empty array": (first_array(shape=[0] + [2**61] * 3), "cannot be loaded"),
    "an object array": (first_array(dtype="|O"), "numbers of the type"),
    "a record array": (first_array(dtype="V8"), "numbers of the type"),
    "a type that is evaluated": (first_array(dtype="f8,f8"), "numbers of the type"),
    "an unknown order": (first_array(order="K"), "order 'K'"),
    "an unknown kind": (first_array(kind="pickle"), "unknown kind 'pickle'"),
    "a later node": (attribute(copy={"node": 10**6}), "stands for nothing"),
    "a negative node": (attribute(copy={"node": -1}), "stands for nothing"),
    "a type of no list": (attribute(copy={"type": "os.system"}), "stands for nothing"),
    "a broken number": (attribute(copy={"numpy": "<f8", "hex": "00"}), "stands for nothing"),
    "a non-hexadecimal number": (attribute(copy={"numpy": "<f8", "hex": "zz"}), "makes no sense"),
    "a float that is a string": (attribute(copy={"float": "1e999"}), "stands for nothing"),
    "a bare list": (attribute(copy=[1, 2]), "stands for nothing"),
    "no nodes": (lambda header: header.pop("nodes") and None, "table of nodes"),
    "nodes that are none": (lambda header: header.update(nodes=[3]), "a node should be a dict"),
    "no kind": (lambda header: header.pop("kind") and None, "not a model"),
    "a header that is a list": (lambda header: [1], "not a model"),
    "a checkpoint": (lambda header: header.update(kind="checkpoint"), "checkpoint, not a model"),
    "a circle": (lambda header: header["nodes"][0].update(kind="list", items=[{"node": 0}]), "stands for nothing"),
}


@pytest.mark.parametrize("case", HARMFUL)
def test_made_to_harm(case, path):
    change, message = HARMFUL[case]
    rewrite(path, change)
    with pytest.raises(ModelFileError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"kind": "dict", "items": [[{"node": 0}, 1]]}, "key that is neither"),
        ({"kind": "dict", "items": [[1, 2, 3]]}, "items are not pairs"),
        ({"kind": "objects", "shape": [3], "items": [1]}, "with 1 items"),
        ({"kind": "random_state", "state": {"node": 1}}, "random state"),
        (
            {"kind": "csr_array", "shape": [1, 1], "data": {"node": 2}, "indices": {"node": 3}, "indptr": {"node": 4}},
            "makes no sense",
        ),
        ({"kind": "random_state", "state": {"node": 7}}, "random state that is none"),
    ],
    ids=["key", "pairs", "items", "no state", "index outside", "word outside"],
)
def test_made_to_harm_containers(node, message, path):
    state = [["key", {"node": 5}], ["pos", 10**9]]
    arrays = [("<f8", [1]), ("<i8", [1]), ("<i8", [2]), ("<u4", [624])]
    content = [np.array([1.0]), np.array([9]), np.array([0, 1]), np.zeros(624, np.uint32)]
    nodes = [
        {"kind": "tuple", "items": [1]},
        {"kind": "list", "items": []},
        *[{"kind": "array", "dtype": dtype, "shape": shape, "order": "C"} for dtype, shape in arrays],
        {"kind": "dict", "items": state},
        {
            "kind": "dict",
            "items": [["bit_generator", "MT19937"], ["state", {"node": 6}], ["has_gauss", 0], ["gauss", 0.0]],
        },
        node,
    ]
    text = json.dumps({"kind": "model", "nodes": nodes, "root": {"node": 8}}).encode()
    body = OPENING.pack(b"TOPRANK\n", 1, len(text)) + text
    for array in content:
        body += bytes(-len(body) % 64) + array.tobytes()
    path.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_header_is_strict_json_of_a_bounded_depth(path):
    for text in (b'{"kind": NaN}', b"[" * 100_000, b"\xff", b"9" * 5000):
        body = OPENING.pack(b"TOPRANK\n", 1, len(text)) + text
        path.write_bytes(body + hashlib.sha256(body).digest())
        with pytest.raises(ModelFileError, match="not valid JSON"):
            load(path)


def test_header_longer_than_the_file(path):
    body = OPENING.pack(b"TOPRANK\n", 1, 2**60) + b"{}"
    path.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(ModelFileError, match=f"claims {2**60} bytes"):
        load(path)


def test_bytes_after_the_last_array(path):
    rewrite(path, extra=b"more")
    with pytest.raises(ModelFileError, match="belong to no array"):
        load(path)


def test_loading_calls_no_method(path):
    calls = []

    class Watched(StandardScaler):
        def __getattribute__(self, name):
            calls.append(name)
            return super().__getattribute__(name)

        def __new__(cls):
            calls.append("__new__")
            return super().__new__(cls)

        __init__ = __setattr__ = __setstate__ = lambda self, *arguments: calls.append("a method")

    save(Watched(), path, trusted=[Watched])
    calls.clear()
    assert type(load(path, trusted=[Watched])) is Watched
    assert set(calls) <= {"__dict__"}


class Foreign(StandardScaler):
    """A subclass may override anything, so it is not its parent."""


SAVED = {
    "callable kernel": (
        TopPush(kernel=lambda a, b: a @ b.T),
        r"TopPush.kernel is the function .*<lambda>, and a model file holds no",
    ),
    "partial": (TopPush(kernel=functools.partial(np.dot)), "TopPush.kernel is functools.partial.*holds no code"),
    "function": (
        make_pipeline(FunctionTransformer(np.log1p)),
        r"Pipeline.steps\[0\]\[1\].func is the function numpy.log1p",
    ),
    "class": (TopPush(alpha=dict), "TopPush.alpha is the class builtins.dict"),
    "foreign": (
        make_pipeline(KNeighborsClassifier()),
        r"sklearn.neighbors._classification.KNeighborsClassifier, which is not one",
    ),
    "subclass": (make_pipeline(Foreign()), "Foreign, which is not one of those that toprank saves.*trusted="),
    "search": (make_pipeline(GridSearchCV(TopPush(), {"alpha": [0.1, 1.0]})), r"GridSearchCV, which is not one"),
    "dates": (TopPush(alpha=np.zeros(2, "M8[s]")), r"TopPush.alpha has the type datetime64\[s\]"),
    "long floats": (TopPush(alpha=np.zeros(2, np.longdouble)), "TopPush.alpha has the type"),
    "masked": (TopPush(alpha=np.ma.array([1.0])), "MaskedArray, which is not one"),
    "set": (TopPush(alpha={"b": [{1}]}), r"TopPush.alpha\['b'\]\[0\] is \{1\}"),
    "tuple key": (TopPush(alpha={(1, 2): 3}), "has the key"),
}


@pytest.mark.parametrize("case", SAVED)
def test_refused_when_saved(case, tmp_path):
    estimator, message = SAVED[case]
    with pytest.raises(ModelFileError, match=message):
        save(estimator, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_class_of_the_same_name_is_refused(tmp_path):
    namesake = type("StandardScaler", (BaseEstimator,), {"__module__": StandardScaler.__module__})
    with pytest.raises(ModelFileError, match="which is not one of those that toprank saves"):
        save(namesake(), tmp_path / "model")


def test_a_search_points_to_its_result(tmp_path):
    data = load_bundled("breast_cancer")
    search = GridSearchCV(TopPush(), {"alpha": [0.1]}, cv=2).fit(StandardScaler().fit_transform(data.X), data.y)
    with pytest.raises(ModelFileError, match=r"save GridSearchCV\.best_estimator_"):
        save(search, tmp_path / "model")


def test_refused_when_saved_circles(tmp_path):
    content = [1]
    content.append(content)
    with pytest.raises(ModelFileError, match=r"TopPush.alpha\[1\] refers back"):
        save(TopPush(alpha=content), tmp_path / "model")
    deep = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ModelFileError, match="nested too deeply"):
        save(TopPush(alpha=deep), tmp_path / "model")


@pytest.mark.parametrize("wrong", [TopPush, 3, None, {"a": 1}], ids=["class", "number", "none", "dict"])
def test_save_takes_estimators(wrong, tmp_path):
    with pytest.raises(ModelFileError, match="save takes an estimator"):
        save(wrong, tmp_path / "model")


def test_trusted_must_be_classes(path):
    with pytest.raises(TypeError, match="trusted must hold classes, got 'a'"):
        load(path, trusted=["a"])


def test_another_version_of_scikit_learn_is_told(path, model):
    rewrite(path, lambda header: header["versions"].update({"scikit-learn": "1.2.3"}))
    with pytest.warns(ModelVersionWarning, match=r"StandardScaler of scikit-learn 1\.2\.3, and .* is installed"):
        load(path)
    save(model[-1], path)  # without scikit-learn objects the version does not matter
    rewrite(path, lambda header: header["versions"].update({"scikit-learn": "1.2.3"}))
    load(path)


def test_writing_fails_as_a_whole(path, model, monkeypatch):
    before = path.read_bytes()

    def breaks(blocks):
        yield from list(blocks)[:3]
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[model_file.write_container.__module__], "_with_digest", breaks)
    with pytest.raises(KeyboardInterrupt):
        save(model, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["é" * 127, "m" * 255], ids=["letters-of-two-bytes", "letters"])
def test_names_as_long_as_the_system_takes(name, model, tmp_path):
    save(model, tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    load(tmp_path / name)


def test_full_disk(path, model, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        save(model, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_unwritable_places(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="use a path in an existing folder"):
        save(model, tmp_path / "none" / "model")
    with pytest.raises(OSError, match="not a plain file"):
        save(model, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="cannot be written"):
        save(model, tmp_path / "file" / "model")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the administrator may write anywhere")
def test_unwritable_folder(model, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="that you may write to"):
        save(model, tmp_path / "model")


@pytest.mark.skipif(os.name == "nt", reason="permissions and links of Unix")
def test_permissions_and_links_stay(path, model, tmp_path):
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    before = path.stat().st_ino
    save(model, link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.stat().st_ino != before
    mask = os.umask(0o077)
    try:
        save(model, tmp_path / "new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_same_model_same_bytes(path, model, tmp_path):
    save(load(path), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
