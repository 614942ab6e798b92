"""Files as messy as real ones: what is read, what is said, and that the model is the one of the clean file."""

import gzip
import os
import warnings

import numpy as np
import polars as pl
import pytest

import messy
from toprank import PatMatNP
from toprank.exceptions import InputError
from toprank.files import TableError, evaluate_file, fit_file, open_table, score_file
from toprank.files.column_list import list_columns
from toprank.files.column_reading import types_of
from toprank.files.strays import nearly_all
from toprank.files.training import read_to_learn
from toprank.persistence import load, save

NUMBERS = ("amount", "balance", "age")
FIT = {"target": "label", "positive": "fraud", "id_column": "payment", "ignore": ["time"]}


@pytest.fixture(scope="module")
def table():
    return messy.cards(2000, share=0.1)


def read(path, target="y", *, written=None, **options):
    rows = read_to_learn(open_table(str(path), **written or {}), target, **options)
    return rows, rows.columns


def csv(folder, name="a.csv", **columns):
    n = max(map(len, columns.values()))
    return messy.write(folder / name, {**columns, "y": [str(i % 2) for i in range(n)]})


def fitted(path, **options):
    """The model of a file, its measures and its notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit_file(path, PatMatNP(tau=0.05), **FIT | options)
    values = {one["name"]: one["value"] for one in model.summary_["held_out"]["measures"]}
    return model, values, [str(one.message) for one in caught]


def test_the_rule():
    assert not nearly_all(9, 1)
    assert nearly_all(10, 1)
    assert not nearly_all(199, 2)
    assert nearly_all(200, 2)


@pytest.mark.parametrize(
    ("change", "features"),
    [
        ({}, 0),
        ({"bom": True, "crlf": True, "delimiter": ";"}, 0),
        ({"encoding": "latin-1"}, 0),
        ({"encoding": "utf-16"}, 0),
    ],
    ids=["gz", "semicolons", "latin-1", "utf-16"],
)
def test_ways_to_write_a_file_change_nothing(tmp_path, table, change, features):
    clean = messy.write(tmp_path / "clean.csv", table)
    other = messy.write(tmp_path / "other.csv.gz", table, **change)
    encoding = {"encoding": change["encoding"]} if "encoding" in change else {}
    ours, theirs = read(clean, **FIT)[0], read(other, written=encoding, **FIT)[0]
    assert ours.X.equals(theirs.X)
    np.testing.assert_array_equal(ours.y, theirs.y)


@pytest.mark.parametrize("kind", ["thousands", "decimal_comma", "words"])
def test_ways_to_write_numbers_change_nothing(tmp_path, table, kind):
    """The values are the same doubles; only words that are no numbers are missing."""
    clean = read(messy.write(tmp_path / "clean.csv", table), **FIT)[0]
    if kind == "words":
        changed = messy.with_stray_marks(table, dict.fromkeys(NUMBERS, "see file"), 3)
    else:
        marks = {"thousands": ".", "decimal": ","} if kind == "decimal_comma" else {}
        changed = messy.with_separators(table, NUMBERS, **marks)
    rows, columns = read(messy.write(tmp_path / "other.csv", changed, ";"), **FIT)
    assert columns.used == clean.columns.used
    for name in NUMBERS:
        old, new = clean.X[name].to_numpy(), rows.X[name].to_numpy()
        assert np.isnan(new).sum() == (3 if kind == "words" else 0)
        np.testing.assert_array_equal(new[~np.isnan(new)], old[~np.isnan(new)])
    if kind == "words":
        first = 2 + changed["age"].index("see file")
        expected = f"column 'age' is a number but for 'see file' (3, first in line {first}), which count as missing"
        assert any(note.startswith(expected) and "types={'age': 'category'}" in note for note in rows.notes)


def test_stray_marks_cost_nothing(tmp_path, table):
    """The example of a number column that one mark made a category."""
    clean = fitted(messy.write(tmp_path / "clean.csv", table))
    marks = messy.with_stray_marks(table, {"age": "?", "amount": "-"})
    stray = fitted(messy.write(tmp_path / "stray.csv", marks))
    assert stray[0].columns == clean[0].columns
    assert stray[1]["auc"] == pytest.approx(clean[1]["auc"], abs=2e-3)
    assert stray[0].summary_["missing"] == {"amount": 1, "age": 1}


@pytest.mark.slow
@pytest.mark.skipif("TOPRANK_DATA" not in os.environ, reason="TOPRANK_DATA names no folder of data sets")
def test_stray_marks_in_bank_marketing(tmp_path):
    measured = []
    for marks in ({}, {"age": "?", "duration": "-"}):
        path = messy.write(tmp_path / "bank.csv", messy.with_stray_marks(messy.bank(), marks))
        model = fit_file(path, PatMatNP(), target="subscribed", positive="yes")
        assert model.columns["age"] == model.columns["duration"] == "number"
        measured.append({one["name"]: one["value"] for one in model.summary_["held_out"]["measures"]})
    assert measured[0]["auc"] > 0.9
    assert measured[1]["auc"] == pytest.approx(measured[0]["auc"], abs=1e-3)
    assert measured[1]["tpr_at_fpr_0.05"] == pytest.approx(measured[0]["tpr_at_fpr_0.05"], abs=5e-3)


def test_spellings_of_missing(tmp_path):
    words = ["", "NA", "n/a", "None", "?", "-", "#DIV/0!", "NULL", "missing", "\\N"]
    values = [f"{i / 4}" for i in range(30)]
    path = csv(tmp_path, x=values + words, c=["u", "v"] * 15 + words)
    rows, columns = read(path)
    assert columns.used == {"x": "number", "c": "category"}
    assert np.isnan(rows.X["x"].to_numpy()).sum() == rows.X["c"].null_count() == len(words)
    path = csv(tmp_path, x=[*values, "-999", "None yet", "-999.0"])
    rows, _ = read(path, written={"missing": ["none YET", "-999"]})
    assert np.isnan(rows.X["x"].to_numpy()).tolist() == [False] * 30 + [True] * 3


def test_labels_may_be_called_none(tmp_path):
    path = messy.write(tmp_path / "a.csv", {"x": [str(i % 7) for i in range(20)], "y": ["none", "-"] * 10})
    assert read(path, positive="none")[0].y.tolist() == [1, 0] * 10


COMMAS = {
    "thousands by two": (["1,234,567", "12", "345"] * 5, {}, 1234567.0, ""),
    "thousands and decimals": (["1,234.5", "12", "345"] * 5, {}, 1234.5, ""),
    "decimals": (["0,64", "12", "345,1"] * 5, {}, 0.64, ""),
    "large with decimals": (["1.234,5", "12", "3,25"] * 5, {}, 1234.5, ""),
    "open": (["1,234", "12", "345"] * 5, {}, "1,234", r"'1,234'.*thousands=',' or decimal=','"),
    "open and said": (["1,234", "12", "345"] * 5, {"thousands": ","}, 1234.0, ""),
    "open and said otherwise": (["1,234", "12", "345"] * 5, {"decimal": ","}, 1.234, ""),
    "sure by many": ([f"{i},{i:03}" for i in range(100, 160)] * 2 + [str(i) for i in range(50, 75)], {}, 100100.0, ""),
    "points by many": (
        [f"{i}.{i:03}" for i in range(100, 160)] * 2 + [str(i) for i in range(50, 75)], {}, 100100.0, "decimal='.'"
    ),
    "points": (["1.234", "1.5", "345"] * 5, {}, 1.234, ""),
}  # fmt: skip


@pytest.mark.parametrize(("values", "written", "first", "note"), COMMAS.values(), ids=COMMAS.keys())
def test_commas(tmp_path, values, written, first, note):
    other = [str(i % 5) for i in range(len(values))]
    rows, columns = read(csv(tmp_path, x=values, z=other), written=written)
    assert rows.X["x"][0] == first
    assert columns.used["x"] == ("number" if isinstance(first, float) else "category")
    assert [bool(pl.Series([text]).str.contains(note)[0]) for text in rows.notes] == ([True] if note else [])


def test_other_columns_tell_what_a_comma_is(tmp_path):
    x = ["1,234", "12", "345"] * 5
    point, comma = ["1.5", "2", "0.25"] * 5, ["1,5", "2", "0,25"] * 5
    assert read(csv(tmp_path, x=x, z=point))[0].X["x"][0] == 1234.0
    assert read(csv(tmp_path, x=x, z=comma))[0].X["x"][0] == 1.234
    rows, _ = read(csv(tmp_path, x=[text.replace(",", ".") for text in x], z=comma))
    assert (rows.X["x"][0], rows.X["z"][0]) == (1234.0, 1.5)


def test_marks_after_the_first_rows_are_found(tmp_path, monkeypatch):
    """The first rows have no large number, or look like text; all rows decide."""
    monkeypatch.setattr("toprank.files.csv_file._GUESS", 60)
    x = [f"{i / 4:.2f}" for i in range(50)] + ["1,283.12", "2,001.50"]
    z = ["word"] * 2 + [str(i) for i in range(300)]
    rows, columns = read(csv(tmp_path, x=x + ["7.25"] * 250, z=z))
    assert columns.used == {"x": "number", "z": "number"}
    assert rows.X["x"].to_list()[50:52] == [1283.12, 2001.5]
    assert any("'word' (2, first in row 1)" in note for note in rows.notes)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"decimal": ",,"}, "decimal must be one character"),
        ({"thousands": "1"}, "thousands must be one character"),
        ({"decimal": ",", "thousands": ","}, "thousands must be another character than decimal"),
        ({"encoding": "latin-99"}, "encoding must be the name of an encoding"),
    ],
)
def test_what_cannot_be(tmp_path, written, message):
    with pytest.raises(InputError, match=message):
        open_table(str(csv(tmp_path, x=["1", "2"])), **written)


def test_types(tmp_path):
    path = csv(
        tmp_path,
        code=[str(i % 3) for i in range(30)],
        x=[str(i % 8 / 8) for i in range(24)] + ["a"] * 6,
        z=["5", "6"] * 15,
    )
    assert read(path)[1].used == {"code": "number", "x": "category", "z": "number"}
    rows, columns = read(path, types={"code": "category", "x": "number", "z": "ignore"})
    assert columns.used == {"code": "category", "x": "number"}
    assert "'a' (6, first in line 26)" in rows.notes[0]
    assert read(path, categorical=["code"], ignore=["z"], types={"code": "category"})[1].used["code"] == "category"
    with pytest.raises(TableError, match="none of its values is a number: 'u'"):
        read(csv(tmp_path, "b.csv", x=["u", "v"] * 10), types={"x": "number"})
    with pytest.raises(InputError, match="'number', 'category' or 'ignore'"):
        types_of({"x": "text"})
    with pytest.raises(TableError, match="'x' is named as 'category' and as 'ignore'"):
        types_of({"x": "category"}, ignore=["x"])
    with pytest.raises(TableError, match=r"has no column 'Coda' \(did you mean 'code'\?\)"):
        read(path, types={"Coda": "number"})


def test_codes_with_first_zeros_are_pointed_out(tmp_path):
    zips = [f"{i * 37 % 99999:05d}" for i in range(100)]
    assert "types={'zip': 'category'}" in read(csv(tmp_path, zip=zips))[0].notes[0]
    assert read(csv(tmp_path, zip=zips), categorical=["zip"])[0].notes == []


def test_a_model_reads_other_files_as_its_own(tmp_path, table):
    """Marks, missing words and encoding are saved; exceptions are told, and too many refused, as in a fit."""
    german = messy.with_separators({**table, "größe": ["groß", "klein"] * 1000}, NUMBERS, ".", ",")
    path = messy.write(tmp_path / "a.csv", german, ";", encoding="latin-1")
    model, _, _ = fitted(path, encoding="latin-1", missing=["kA"], types={"merchant_code": "category"})
    save(model, tmp_path / "m.toprank")
    model = load(tmp_path / "m.toprank")
    new = messy.part(german, slice(0, 200))
    new["country"] = ["XX", "kA", *new["country"][2:]]
    new["amount"] = ["oops", "kA", *new["amount"][2:]]
    new = {name: values for name, values in new.items() if name != "payment"}
    path = messy.write(tmp_path / "b.csv", {**new, "other": new["label"]}, ";", encoding="latin-1")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score_file(path, model, tmp_path / "s.csv")
        evaluate_file(path, model, target="other")
    notes = [str(one.message) for one in caught]
    for expected in (
        "'amount' is a number but for 'oops' (1, in line 2), which counts as missing",
        "'country' has values that the model has never seen: 'XX' (1 rows), missing values (1 rows)",
        "has no column 'payment', by which the model knows its rows",
    ):
        assert sum(expected in note for note in notes) == 2, (expected, notes)
    assert sum("the labels are those of 'other', and the model was fitted to 'label'" in note for note in notes) == 1
    clean = messy.part({**table, "größe": ["groß", "klein"] * 1000}, slice(0, 200))
    frame = pl.DataFrame(clean).with_columns(pl.col("amount", "balance", "age").cast(pl.Float64))
    frame = frame.with_columns(amount=pl.when(pl.int_range(200) < 2).then(None).otherwise("amount"))
    frame = frame.with_columns(country=pl.Series(["XX", None, *clean["country"][2:]]))
    scores = pl.read_csv(tmp_path / "s.csv")["score"].to_numpy()
    np.testing.assert_allclose(scores, model.decision_function(frame), rtol=1e-9)
    messy.write(tmp_path / "c.csv", {**new, "amount": ["oops"] * 200}, ";", encoding="latin-1")
    for use in (lambda: score_file(tmp_path / "c.csv", model, tmp_path / "t.csv"),
                lambda: evaluate_file(tmp_path / "c.csv", model)):  # fmt: skip
        with (
            warnings.catch_warnings(action="ignore"),
            pytest.raises(TableError, match=r"200 of the 200 values of the column 'amount', .* are none: 'oops'"),
        ):
            use()
    assert not (tmp_path / "t.csv").exists()


def test_a_leak_is_named(tmp_path, table):
    leak = messy.write(tmp_path / "a.csv", messy.with_leak(table, "label", "fraud"))
    rows, _ = read(leak, **FIT)
    found = [note for note in rows.notes if "chargeback" in note]
    alone = np.mean([(rows.X["chargeback"].to_numpy() == value)[rows.y == value].mean() for value in (0, 1)])
    assert f"with an AUC of {alone:.3f}" in found[0]
    assert "ignore=['chargeback']" in found[0]
    assert len(found) == len(rows.notes) == 1
    category = read(leak, **FIT, categorical=["chargeback"])[0].notes
    assert "column 'chargeback' alone" in category[0]
    assert read(messy.write(tmp_path / "b.csv", table), **FIT)[0].notes == []


def test_codes_of_single_rows_are_no_leak():
    from toprank.files.leaks import suspicious_columns

    y = np.arange(400) % 2
    frame = pl.DataFrame({"c": [f"v{i // 2}" for i in range(400)], "d": ["u", "v"] * 200})
    assert suspicious_columns(frame, y, {"c": "category", "d": "category"}) == {"d": 1.0}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"PK\x03\x04rest", "is a spreadsheet; save its sheet as CSV"),
        ("a.csv", b"PK\x03\x04rest", "is a spreadsheet"),
        ("a.csv", "x,größe,y\n1,2,1\n".encode("latin-1"), "encoding='latin-1'"),
        ("a.csv", "x,preis,y\n1,2 €,1\n2,3 €,0\n".encode("cp1252"), "line 2 has other bytes.*encoding='cp1252'"),
        ("a.csv", "x,y\n1,1\n".encode("utf-16"), "encoding='utf-16'"),
    ],
    ids=["xlsx", "xlsx in disguise", "latin-1", "windows", "utf-16"],
)
def test_hints(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message):
        read(tmp_path / name)


def test_a_packed_latin_file(tmp_path):
    text = "ort,x,y\n" + "".join(f"{'Köln' if i % 3 else 'Bonn'},{i},{i % 2}\n" for i in range(30))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode("cp1252")))
    assert read(tmp_path / "a.csv.gz", written={"encoding": "cp1252"})[0].X["ort"][1] == "Köln"


def test_all_columns_are_listed(tmp_path, table):
    marked = messy.with_separators(messy.with_missing(table, ("age",)), ("balance",))
    path = messy.write(tmp_path / "a.csv", messy.with_stray_marks(marked, {"amount": "see file"}))
    model, _, _ = fitted(path, categorical=["merchant_code"])
    listed = {one["name"]: one for one in model.summary_["table"]}
    assert list(listed) == list(table)
    assert listed["payment"]["done"] == "identifies a row"
    assert listed["time"]["done"] == "left out: it is ignored"
    assert "as missing: 'see file' (1, in line" in listed["amount"]["done"]
    assert "'.' before decimals, ',' between thousands" in listed["balance"]["done"]
    n_missing = sum(value in messy.FIVE_MISSING for value in marked["age"])
    assert (listed["age"]["type"], listed["age"]["missing"]) == ("number", n_missing)
    assert listed["merchant_code"] == {
        **{"name": "merchant_code", "type": "category", "missing": 0},
        "done": "5 values as columns of 0 and 1",
    }
    assert (listed["abroad"]["type"], listed["label"]["done"]) == ("true/false", "the labels; fraud is positive")
    n_rows, alone, notes = list_columns(open_table(str(path)))
    assert (n_rows, [one["name"] for one in alone], len(notes)) == (2000, list(table), 1)
    assert {one["name"]: one["type"] for one in alone}["time"] == "date"
