"""Few bytes that refer to the same things again and again, or name sizes that they do not have."""

import hashlib
import json
import struct
import time

import numpy as np
import pytest

from commands import invoke
from toprank import UniExp
from toprank.persistence import ModelFileError, load, save


def write(path, nodes, root, arrays=()):
    """A file with a right checksum."""
    text = json.dumps({"kind": "model", "nodes": nodes, "root": root}).encode()
    body = struct.pack("<8sIQ", b"TOPRANK\n", 1, len(text)) + text
    for array in arrays:
        body += bytes(-len(body) % 64) + array.tobytes()
    path.write_bytes(body + hashlib.sha256(body).digest())
    return path


def doubled(first, times):
    """Lists of twice the one before."""
    return [{"kind": "list", "items": [{"node": i}, {"node": i}]} for i in range(first, first + times)]


PLAIN = {"kind": "object", "class": "sklearn.KFold"}
ONE = {"kind": "list", "items": [1.0]}


@pytest.mark.parametrize(
    "holder",
    [
        {"kind": "csr_array", "shape": [1, 1], **{name: {"node": 28} for name in ("data", "indices", "indptr")}},
        {"kind": "object", "class": "toprank.TopPush", "state": {"alpha": {"node": 28}}},
        {"kind": "objects", "shape": [1], "items": [{"node": 28}]},
        {"kind": "dict", "items": [["a", {"node": 28}]]},
        {"kind": "random_state", "state": {"node": 28}},
    ],
    ids=lambda holder: holder["kind"],
)
def test_references_are_counted(holder, tmp_path):
    path = write(tmp_path / "m", [ONE, *doubled(0, 28), holder], {"node": 29})
    assert path.stat().st_size < 3000
    limit = 8 * path.stat().st_size
    with pytest.raises(ModelFileError, match=f"the limit is {limit}, 8 for each of its {path.stat().st_size} bytes"):
        load(path)


def test_info_does_not_walk_through_them(tmp_path):
    state = {"learning_rate": {"node": 28}, "alpha": 1e-4, "max_fpr": None, "threshold_window": 1000}
    node = {"kind": "object", "class": "toprank.UniExp", "state": state}
    path = write(tmp_path / "m", [ONE, *doubled(0, 28), node], {"node": 29})
    start = time.perf_counter()
    result = invoke("info", path)
    assert result.exit_code == 1
    assert "the limit is" in " ".join(result.output.split())
    assert time.perf_counter() - start < 20  # walking through half a billion values takes minutes


@pytest.mark.parametrize("depth", [190, 250, 5000])
def test_nodes_within_nodes_have_a_limit(depth, tmp_path):
    nodes = [ONE, *({"kind": "list", "items": [{"node": i}]} for i in range(depth))]
    estimator = {"kind": "object", "class": "sklearn.KFold", "state": {"n_splits": {"node": depth}}}
    path = write(tmp_path / "m", [*nodes, estimator], {"node": depth + 1})
    if depth < 200:
        load(path)
        return
    with pytest.raises(ModelFileError, match=r"nodes in nodes, 201 deep; the limit is 200"):
        load(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ({"dtype": "<f8", "shape": [10**9, 0]}, r"shape \(1000000000, 0\); the file has only"),
        ({"dtype": "<U400000000", "shape": [0]}, "'<U400000000', which is larger than its"),
        ({"dtype": "|S999999999", "shape": [0]}, "'|S999999999', which is larger than its"),
        ({"dtype": "<f8", "shape": [2**40]}, "needs 8796093022208 bytes, the file has only"),
        ({"dtype": "<f8", "shape": [2**31, 2**31, 2**31]}, "bytes, the file has only"),
    ],
)
def test_sizes_are_those_of_the_file(array, message, tmp_path):
    path = write(tmp_path / "m", [{"kind": "array", "order": "C", **array}], {"node": 0})
    with pytest.raises(ModelFileError, match=message.replace("|", r"\|")):
        load(path)


def test_types_as_values_are_no_larger_than_the_file(tmp_path):
    state = {"n_splits": {"dtype": "<U400000000"}}
    path = write(tmp_path / "m", [{**PLAIN, "state": state}], {"node": 0})
    with pytest.raises(ModelFileError, match="larger than its"):
        load(path)


def test_what_is_shared_in_earnest_is_no_matter(tmp_path):
    """A model with the same parts in many places, as wrappers in wrappers have them."""
    model = UniExp().fit(np.eye(4), [0, 1, 0, 1])
    shared = np.arange(2000.0)
    model.notes = [[shared] * 20, [shared] * 20]
    save(model, tmp_path / "m")
    notes = load(tmp_path / "m").notes
    assert notes[1][19] is notes[0][0]
