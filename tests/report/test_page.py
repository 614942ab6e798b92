"""The file as a whole: safe, complete in itself, refused input, written whole or not at all."""

import base64
import hashlib
import json
import re
import stat
import sys
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from report.models import FirstColumn, model_and_rows, ranked_rows
from toprank import TauFPL, TopPushK, WMWRanker
from toprank.datasets import make_imbalanced
from toprank.decision import NeymanPearsonClassifier
from toprank.report import build_report, write_report

ATTACK = "</script><!--<script>alert(1)</script>\u2028\"'><img src=x onerror=alert(1)>&lt;"
VOID = {"meta", "link", "input", "br"}


class Elements(HTMLParser):
    """All elements with their attributes, and whether each one is closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.open, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def held_out():
    y, scores = ranked_rows(200, ties=True)
    return *model_and_rows(y, scores), y


@pytest.fixture(scope="module")
def attacked(held_out):
    model, X, y = held_out
    labels = np.where(y == 1, ATTACK, "fine")
    model = FirstColumn().fit(X, labels)
    table = pd.DataFrame({ATTACK: [ATTACK] * 200})
    more = dict.fromkeys(("title", "data_name", "intended_use"), ATTACK)
    return build_report(model, X, labels, pos_label=ATTACK, ids=[ATTACK] * 200, table=table, limits=[ATTACK], **more)


def test_hostile_text_stays_text(attacked):
    page = Elements(attacked)
    assert page.open == []
    tags = [tag for tag, _ in page.found]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attributes in page.found for name in attributes)
    shown = " ".join(ATTACK.split())
    assert sum(shown in text or ATTACK in text for text in page.texts) > 100


def test_data_cannot_end_the_element(attacked):
    block = attacked[attacked.index('<script type="application/json" id="data">') :]
    block = block[block.index(">") + 1 : block.index("</script>")]
    assert not set("<>&'\u2028") & set(block)
    assert json.loads(block)["lists"][0]["n_runs"] > 1


def test_policy_allows_this_style_and_script_alone(attacked):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', attacked)[1].replace("&#39;", "'")
    for directive, start, end in (("style-src", "<style>", "</style>"), ("script-src", "<script>", "</script>")):
        block = attacked[attacked.rindex(start) + len(start) :]
        digest = base64.b64encode(hashlib.sha256(block[: block.index(end)].encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_nothing_is_loaded(attacked):
    page = Elements(attacked)
    for tag, attributes in page.found:
        assert "src" not in attributes
        assert "style" not in attributes, tag
        assert attributes.get("href", "#").startswith(("#", "data:")), tag
    assert "http:" not in attacked
    assert "https:" not in attacked
    assert "@import" not in attacked
    assert re.findall(r"url\((?!#)", attacked) == []


def test_links_and_labels_have_targets(attacked):
    page = Elements(attacked)
    names = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in page.found:
        for key in ("aria-labelledby", "aria-describedby", "for"):
            assert attributes.get(key, "data") in names
        assert attributes.get("href", "#data").removeprefix("#") in [*names, "data:,"]


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_text_and_marks(scheme):
    css = files("toprank.report").joinpath("page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", blocks[0 if scheme == "light" else 1]))
    for ink in ("ink", "quiet", "accent", "positive"):
        for paper in ("paper", "sheet", "taken"):
            assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
    for mark in ("negative", "focus"):
        assert contrast(colours[mark], colours["paper"]) >= 3, mark


def test_models_of_all_kinds():
    X, y, _ = make_imbalanced(600, n_features=4, separation=3.0, random_state=0)
    inner = TauFPL(tau=0.1)
    cases = {
        "linear": (inner.fit(X, y), X),
        "sparse": (TauFPL().fit(csr_array(X), y), csr_array(X)),
        "single": (TauFPL().fit(X.astype(np.float32), y), X.astype(np.float32)),
        "kernel": (TopPushK(kernel="rbf").fit(X, y), X),
        "ranker": (WMWRanker().fit(X, y), X),
        "vote": (NeymanPearsonClassifier(TauFPL(), max_fpr=0.1, cv=2, random_state=0).fit(X, y), X),
        "trees": (GradientBoostingClassifier(n_estimators=5).fit(X, y), X),
        "pandas": (LogisticRegression().fit(pd.DataFrame(X).add_prefix("c"), y), pd.DataFrame(X).add_prefix("c")),
        "polars": (LogisticRegression().fit(pl.DataFrame(X), y), pl.DataFrame(X)),
        "lists": (LogisticRegression().fit(X.tolist(), y.tolist()), X.tolist()),
    }
    for name, (model, rows) in cases.items():
        page = Elements(build_report(model, rows, y, n_top_rows=3))
        assert page.open == [], name
        assert sum("data-rank" in attributes for _, attributes in page.found) == 3, name
        assert not any("nan" in text.lower().split() for text in page.texts), name


def test_same_input_gives_the_same_page(held_out):
    assert build_report(*held_out) == build_report(*held_out)


def test_size_for_a_hundred_thousand_rows():
    y, scores = ranked_rows(100_000)
    page = build_report(*model_and_rows(y, scores), y)
    assert len(page.encode()) < 2_000_000


def test_rows_may_be_left_out(held_out):
    model, X, y = held_out
    page = build_report(model, X, y, ids=["secret"] * len(y), n_top_rows=0)
    assert "secret" not in page
    assert 'id="rows"' not in page


REFUSED = {
    "positives only": ({"y": np.ones(200)}, ValueError, "no negative row"),
    "negatives only": ({"y": np.zeros(200)}, ValueError, "does not occur in y_true"),
    "three classes": ({"y": np.arange(200) % 3}, ValueError, "must have two classes"),
    "short y": ({"y": np.ones(3)}, ValueError, "X has 200 rows and y has 3"),
    "short ids": ({"ids": ["a"]}, ValueError, "X has 200 rows and ids has 1"),
    "short table": ({"table": pd.DataFrame({"a": [1]})}, ValueError, "X has 200 rows and table has 1"),
    "table of lists": ({"table": [[1]] * 200}, TypeError, "table must be a DataFrame of pandas or polars, got list"),
    "no list": ({"y": 1}, ValueError, "1d array"),
    "no rows": ({"X": np.zeros((0, 2)), "y": []}, ValueError, "X has no rows"),
    "nan score": ({"X": np.full((200, 2), np.nan)}, ValueError, "200 values that are not finite"),
    "infinite score": ({"X": np.full((200, 2), np.inf)}, ValueError, "not finite"),
    "huge scores": ({"X": np.full((200, 2), 1e301)}, ValueError, "too large for an axis"),
    "confidence": ({"confidence": 1.0}, ValueError, "confidence must be strictly between 0 and 1, got 1.0"),
    "k too long": ({"k": 201}, ValueError, r"k must be in \(0, 200\]"),
    "k a share": ({"k": 0.5}, ValueError, "k must be a whole number of at least 1, got 0.5"),
    "k and rate": ({"k": 5, "max_fpr": 0.1}, ValueError, "keep one"),
    "rate": ({"max_fpr": 1.5}, ValueError, r"max_fpr must be in \[0, 1\], got 1.5"),
    "rows": ({"n_top_rows": -1}, ValueError, "n_top_rows must be a whole number of at least 0, got -1"),
    "training rows": ({"training_rows": 0}, ValueError, "training_rows must be a whole number of at least 1, got 0"),
    "unknown label": ({"pos_label": 7}, ValueError, "pos_label=7 is not a valid label"),
    "unfitted": ({"model": TauFPL()}, NotFittedError, "not fitted"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_refused(held_out, tmp_path, case):
    changed, error, message = REFUSED[case]
    model, X, y = held_out
    arguments = {"model": model, "X": X, "y": y, **changed}
    with pytest.raises(error, match=message):
        write_report(tmp_path / "page.html", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_written_whole_or_not_at_all(held_out, tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    target.write_text("before")
    target.chmod(0o640)
    with pytest.raises(OSError, match="cannot be written"):
        write_report(tmp_path / "missing" / "page.html", *held_out)
    with pytest.raises(OSError, match="not a plain file"):
        write_report(tmp_path, *held_out)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match=r"No space left on device.*nothing was changed"):
        write_report(target, *held_out)
    assert target.read_text() == "before"
    monkeypatch.undo()
    write_report(target, *held_out)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert target.read_text(encoding="utf-8") == build_report(*held_out)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_missing_extra_is_named(held_out, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'toprank\[report\]'"):
        build_report(*held_out)


@settings(max_examples=25)
@given(st.data())
def test_any_finite_scores_make_a_page(data):
    dtype = data.draw(st.sampled_from(["float64", "float32", "int64"]))
    largest = {"float64": 1e299, "float32": 2.0**127, "int64": 2**53}[dtype]
    numbers = (
        st.integers(-largest, largest)
        if dtype == "int64"
        else st.floats(-largest, largest, allow_nan=False, width=int(dtype[-2:]))
    )
    scores = np.array(data.draw(st.lists(numbers, min_size=2, max_size=12)), dtype=dtype)
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(scores), max_size=len(scores))))
    y[:2] = 0, 1
    X = np.column_stack([scores, scores])
    html = build_report(FirstColumn().fit(X, y), X, y)
    paths = re.findall(r' d="([^"]+)"', html)
    assert paths
    assert not any("n" in path for path in paths)  # no nan, no inf
