"""Columns of text, gaps and codes: graphs of pipelines as people have them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from deployment.running import assert_same, metadata_of, run, session_of
from toprank import PatMatNP, to_onnx


@pytest.fixture(scope="module")
def table():
    """Numbers with gaps, texts with gaps and rare values, codes, truths; and rows with unknown values."""
    random = np.random.default_rng(0)
    n, shares = 300, [0.5, 0.2, 0.2, 0.08, 0.01, 0.01]
    frame = pd.DataFrame(
        {
            "amount": random.exponential(100, n),
            "age": np.where(random.random(n) < 0.2, np.nan, random.normal(40, 10, n)),
            "country": random.choice(["DE", "FR", "IT", "Åland", "rare 1", "rare 2"], n, p=shares),
            "level": random.choice(["low", "mid", "high"], n),
            "code": random.choice([1.0, 2.0, 7.0], n),
            "member": random.random(n) < 0.5,
        }
    )  # fmt: skip
    frame.loc[::17, "country"] = np.nan
    y = (frame["amount"] + 50 * (frame["level"] == "high") > 150).to_numpy()
    new = frame.tail(60).reset_index(drop=True)
    new.loc[::4, ["country", "code"]] = ["Atlantis", 5.0]
    new.loc[1::4, "amount"] = np.nan
    return frame, y, pd.concat([frame, new.fillna({"amount": 1.0})]), new


def model_of(*parts, **options):
    return make_pipeline(ColumnTransformer(list(parts), **options), PatMatNP())


NUMBERS = ("number", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["amount", "age"])
MISSING_TEXT = SimpleImputer(strategy="constant", fill_value="nowhere", add_indicator=True)

ENCODERS = {
    "ignore": OneHotEncoder(handle_unknown="ignore"),
    "infrequent": OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=8),
    "most": OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=3, sparse_output=False),
    "drop": OneHotEncoder(handle_unknown="ignore", drop="first"),
    "drop and infrequent": OneHotEncoder(handle_unknown="infrequent_if_exist", drop=["DE", "low"], max_categories=3),
    "binary": OneHotEncoder(handle_unknown="ignore", drop="if_binary"),
    "ordinal": make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2), StandardScaler()
    ),
    "ordinal with gaps": make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), SimpleImputer(add_indicator=True)
    ),
    "ordinal infrequent": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, max_categories=3,
                                         encoded_missing_value=-3),
    "imputed": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_of_text(name, table):
    frame, y, rows, _ = table
    model = model_of(NUMBERS, ("text", ENCODERS[name], ["country", "level"])).fit(frame, y)
    assert_same(model, rows)
    assert [one.name for one in session_of(model).get_inputs()] == ["amount", "age", "country", "level"]


def with_none(frame):
    """Its countries as objects, None where they are missing, as frames had them before pandas had texts."""
    countries = [None if value != value else value for value in frame["country"].tolist()]
    return frame.assign(country=pd.Series(countries, frame.index, dtype=object))


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("name", [name for name in ENCODERS if name != "imputed"])
def test_encoders_of_text_with_none(name, table):
    """None is a category to scikit-learn, and to an ordinal encoder not the missing one."""
    frame, y, rows, _ = table
    model = model_of(NUMBERS, ("text", ENCODERS[name], ["country", "level"])).fit(with_none(frame), y)
    encoder = model[0].named_transformers_["text"]
    encoder = encoder[0] if hasattr(encoder, "steps") else encoder
    assert None in encoder.categories_[0].tolist()
    assert_same(model, with_none(rows))


@pytest.mark.parametrize("name", ["imputed", "ordinal"])
def test_none_that_a_graph_cannot_tell_from_nan_is_refused(name, table):
    """None that an imputer of nan has left, and None beside nan."""
    frame, y, _, _ = table
    frame = with_none(frame)
    if name == "ordinal":
        frame.loc[1, "country"] = np.nan
        assert {type(value) for value in frame["country"]} == {str, float, type(None)}
    model = model_of(NUMBERS, ("text", ENCODERS[name], ["country", "level"])).fit(frame, y)
    with pytest.raises(TypeError, match=r"None in its training rows.*frame\.fillna\(np\.nan\)"):
        session_of(model)


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("encoder", [ENCODERS["ignore"], ENCODERS["infrequent"], ENCODERS["ordinal infrequent"]])
def test_encoders_of_numbers(encoder, table):
    """Codes and gaps as categories: all columns are numbers, so that the input is one matrix."""
    frame, y, rows, _ = table
    names = ["amount", "age", "code", "member"]
    gaps = rows[names].assign(code=rows["code"].where(rows["code"] != 7.0))
    train = frame[names].assign(code=frame["code"].where(frame["code"] != 7.0))
    model = model_of(NUMBERS, ("code", encoder, ["code", "member"])).fit(train, y)
    assert_same(model, gaps)
    assert [one["name"] for one in metadata_of(model)["columns"]] == names


STEPS = {
    "passthrough": ("more", "passthrough", ["code", "member"]),
    "dropped": ("more", "drop", ["code"]),
    "mask": ("more", StandardScaler(), np.array([True, False, False, False, True, False])),
    "slice": ("more", StandardScaler(), slice(4, 5)),
    "places": ("more", StandardScaler(), [-2, 0]),
    "powers": ("more", PolynomialFeatures(3, include_bias=False), ["code", "member"]),
    "mixed powers": ("more", PolynomialFeatures(2, interaction_only=True), ["code", "member"]),
    "bins": ("more", KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), ["amount"]),
    "number of bin": ("more", KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), ["code"]),
    "identity": ("more", FunctionTransformer(), ["code"]),
    "imputed text": ("more", make_pipeline(MISSING_TEXT, ColumnTransformer(
        [("text", OneHotEncoder(handle_unknown="ignore"), [0])], remainder="passthrough")), ["country"]),
    "other mark": ("more", SimpleImputer(missing_values=7, strategy="median", add_indicator=True), ["code"]),
    "union": ("more", FeatureUnion([("a", StandardScaler()), ("b", "passthrough"), ("c", "drop")],
                                   transformer_weights={"a": 3.0}), ["code", "amount"]),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_steps(name, table):
    frame, y, rows, _ = table
    text = ("text", OneHotEncoder(handle_unknown="ignore"), ["level"])
    numbers = ("number", SimpleImputer(add_indicator=True), ["amount", "age"])
    model = model_of(numbers, text, STEPS[name], transformer_weights={"text": 0.5}).fit(frame, y)
    assert_same(model, rows)


def test_remainder_and_rows_without_names(table):
    frame, y, rows, _ = table
    chosen = frame[["level", "amount", "code"]]
    for remainder in ("passthrough", StandardScaler()):
        model = make_pipeline(make_column_transformer((OneHotEncoder(), [0]), remainder=remainder), PatMatNP())
        assert_same(model.fit(chosen, y), rows)
        model.fit(chosen.to_numpy(dtype=object), y)
        named = pd.DataFrame(chosen.to_numpy(dtype=object), columns=["x0", "x1", "x2"])
        np.testing.assert_allclose(run(model, named)[0], model.decision_function(chosen.to_numpy(dtype=object)))


def test_what_python_refuses_has_no_score(table):
    frame, y, _, new = table
    model = model_of(("text", OneHotEncoder(), ["country"]), ("code", OrdinalEncoder(), ["code"])).fit(frame, y)
    known = (new["country"] != "Atlantis") & (new["code"] != 5.0)
    assert (np.isfinite(run(model, new)[0]) == known).all()


def test_single_precision(table):
    frame, y, rows, _ = table
    model = model_of(NUMBERS, ("text", ENCODERS["ignore"], ["country", "level"])).fit(frame, y)
    narrow = rows.assign(amount=rows["amount"].astype("float32"), age=rows["age"].astype("float32"))
    expected = model.decision_function(narrow.astype({"amount": "float64", "age": "float64"}))
    np.testing.assert_allclose(run(model, rows, "float32")[0], expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    codes = frame[["amount"]].assign(code=frame["code"] / 10)
    model = model_of(("a", "passthrough", ["amount"]), ("code", OneHotEncoder(), ["code"])).fit(codes, y)
    assert_same(model, codes)
    with pytest.raises(TypeError, match="use input_type='float64'"):
        to_onnx(model)


def test_what_has_no_export(table):
    frame, y, _, _ = table
    pytest.importorskip("onnx", reason="onnx is not installed")
    empty = frame.assign(country=frame["country"].replace("FR", ""))
    model = model_of(("text", OneHotEncoder(), ["country"])).fit(empty, y)
    with pytest.raises(TypeError, match="the text '' is a category, and also how a graph of ONNX writes a missing one"):
        to_onnx(model)
    model = model_of(("text", "passthrough", ["amount"]), ("log", FunctionTransformer(np.log1p), ["code"]))
    with pytest.raises(TypeError, match="FunctionTransformer has no ONNX export here: skl2onnx"):
        to_onnx(model.fit(frame, y))
