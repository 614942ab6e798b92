"""Damaged files: whatever happens to the bytes, a file is refused or is the same."""

import contextlib
import hashlib
import json
import struct
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import TopPush
from toprank.datasets import load_bundled
from toprank.persistence import ModelFileError, ModelVersionWarning, load, save


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    data = load_bundled("breast_cancer")
    path = tmp_path_factory.mktemp("fuzz") / "model"
    save(make_pipeline(StandardScaler(), TopPush(kernel="rbf")).fit(data.X[::8], data.y[::8]), path)
    return path.read_bytes(), path.with_name("damaged")


places = st.integers(min_value=0, max_value=10**9)
damages = st.one_of(
    st.tuples(st.just("flip"), places, st.integers(1, 255).map(lambda byte: bytes([byte]))),
    st.tuples(st.just("cut"), places, st.just(b"")),
    st.tuples(st.just("remove"), places, st.binary(min_size=1, max_size=9)),
    st.tuples(st.just("insert"), places, st.binary(min_size=1, max_size=9)),
)


def damaged(content, kind, place, extra):
    place %= len(content)
    if kind == "flip":
        return content[:place] + bytes([content[place] ^ extra[0]]) + content[place + 1 :]
    if kind == "cut":
        return content[:place]
    if kind == "remove":
        return content[:place] + content[place + len(extra) :]
    return content[:place] + extra + content[place:]


@given(st.lists(damages, min_size=1, max_size=3))
@settings(max_examples=200)
def test_damage_is_found(saved, steps):
    original, path = saved
    content = original
    for step in steps:
        content = damaged(content, *step) or b"\0"
    path.write_bytes(content)
    if content == original:  # two damages may cancel
        load(path)
        return
    with pytest.raises(ModelFileError):
        load(path)


def places_in(tree, path=()):
    """Where a JSON tree can be changed."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in items:
        yield from places_in(item, (*path, key))


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(
            ["", "C", "F", "<f8", "|O", "<U0", "nan", "array", "dict", "object", "csr_array", "toprank.TopPush"]
        ),
        st.integers(-2, 60).map(lambda number: {"node": number}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["kind", "items", "node", "slice"]), inner, max_size=3),
    ),
    max_leaves=4,
)


@given(place=places, value=json_values)
@settings(max_examples=150)
def test_a_made_up_header_gives_a_model_or_the_one_error(saved, place, value):
    original, path = saved
    size = struct.unpack_from("<Q", original, 12)[0]
    header = json.loads(original[20 : 20 + size])
    chosen = list(places_in(header))
    *way, last = chosen[1 + place % (len(chosen) - 1)]
    inside = header
    for key in way:
        inside = inside[key]
    inside[last] = value
    text = json.dumps(header).encode()
    arrays = original[20 + size + -(20 + size) % 64 : -32]
    body = original[:12] + struct.pack("<Q", len(text)) + text + bytes(-(20 + len(text)) % 64) + arrays
    path.write_bytes(body + hashlib.sha256(body).digest())
    with contextlib.suppress(ModelFileError), warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelVersionWarning)
        load(path)


@pytest.mark.slow
@given(st.lists(damages, min_size=1, max_size=3))
@settings(max_examples=2000)
def test_damage_is_found_in_more_examples(saved, steps):
    test_damage_is_found.hypothesis.inner_test(saved, steps)


@pytest.mark.slow
@given(place=places, value=json_values)
@settings(max_examples=2000)
def test_more_made_up_headers_give_a_model_or_the_one_error(saved, place, value):
    test_a_made_up_header_gives_a_model_or_the_one_error.hypothesis.inner_test(saved, place, value)
