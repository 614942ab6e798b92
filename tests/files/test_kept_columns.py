"""Scores beside the columns of the file: what stood there is there again, in all formats and blocks."""

import gzip
import io

import numpy as np
import polars as pl
import pytest

import toprank
from cli.support import run
from toprank import PatMatNP
from toprank.files import TableError, fit_file, score_file
from toprank.files.content import open_content
from toprank.files.csv_file import CSVTable
from toprank.files.score_output import write_tables
from toprank.files.scoring import score_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    random = np.random.default_rng(0)
    n = 300
    amount, country = random.normal(size=n).round(3), random.choice(["DE", "FR", "NA", ""], n)
    fraud = (amount + random.normal(size=n) > 1.5).astype(int)
    words = [f'{"=" if i % 5 == 0 else ""}shop, "{i}"' for i in range(n)]
    frame = pl.DataFrame(
        {"id": [f"00{i}" for i in range(n)], "amount": amount, "country": country, "shop": words, "fraud": fraud}
    )
    frame.write_csv(folder / "rows.csv")
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    frame.write_parquet(folder / "rows.parquet")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return fit_file(folder / "rows.csv", PatMatNP(tau=0.1), target="fraud", id_column="id", holdout=0)


def scored(path, model, **options):
    stream = io.BytesIO()
    score_file(path, model, stream, **options)
    return pl.read_csv(io.BytesIO(stream.getvalue()), infer_schema=False)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet"])
def test_all_columns_as_they_stand_in_the_file(name, folder, model):
    plain, kept = scored(folder / name, model), scored(folder / name, model, keep="all")
    assert kept.columns == ["id", "score", "decision", "amount", "country", "shop", "fraud"]
    assert kept.select(plain.columns).equals(plain)
    original = pl.read_csv(folder / "rows.csv", infer_schema=False)
    assert kept.select(original.columns).fill_null("").equals(original.fill_null(""))


def test_some_columns_of_the_best_rows(folder, model):
    whole = scored(folder / "rows.csv", model, keep=["shop", "country"])
    assert whole.columns == ["id", "score", "decision", "shop", "country"]
    order = whole["score"].cast(pl.Float64).arg_sort(descending=True)
    assert scored(folder / "rows.csv", model, keep=["shop", "country"], top=7).equals(whole[order[:7]])
    best = scored(folder / "rows.csv", model, keep=["shop", "country"], share=0.05)
    assert best.equals(whole[order[:15]])


def test_blocks(folder, model):
    """Rows that come in many blocks keep their own columns."""
    parts = [part.frame() for part in score_rows(CSVTable(str(folder / "rows.csv"), block=500), model, keep="all")]
    assert len(parts) > 5
    (whole,) = (part.frame() for part in score_rows(CSVTable(str(folder / "rows.csv")), model, keep="all"))
    assert pl.concat(parts).equals(whole)


def test_columns_named_like_those_of_the_output(folder, model, tmp_path):
    frame = pl.read_csv(folder / "rows.csv", infer_schema=False)
    frame = frame.with_columns(score=pl.lit("7"), original_score=pl.lit("8"), row=pl.lit("9")).drop("id")
    frame.write_csv(tmp_path / "rows.csv")
    with pytest.warns(UserWarning, match="has no column 'id', by which the model knows its rows"):
        kept = scored(tmp_path / "rows.csv", model, keep=["row", "score", "original_score"])
    names = ["row", "score", "decision", "original_row", "original_score", "original_original_score"]
    assert kept.columns == names
    assert kept.row(0)[3:] == ("9", "7", "8")


def test_formulas_in_kept_texts(folder, model):
    kept = scored(folder / "rows.csv", model, keep=["shop", "amount"], safe_text=True)
    assert kept["shop"][0] == '\'=shop, "0"'
    assert kept["shop"][1] == 'shop, "1"'
    assert kept["amount"].equals(pl.read_csv(folder / "rows.csv", infer_schema=False)["amount"])


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_compressed_output(ending, folder, model, tmp_path):
    score_file(folder / "rows.csv", model, tmp_path / f"scores.csv.{ending}", keep="all")
    with open_content(str(tmp_path / f"scores.csv.{ending}")) as stream:
        assert pl.read_csv(stream.read(), infer_schema=False).equals(scored(folder / "rows.csv", model, keep="all"))


@pytest.mark.parametrize("options", [{}, {"top": 3}])
def test_parquet_has_what_csv_has(options, folder, model, tmp_path):
    expected = scored(folder / "rows.csv", model, keep="all", **options)
    score_file(folder / "rows.csv", model, tmp_path / "scores.parquet", keep="all", **options)
    found = pl.read_parquet(tmp_path / "scores.parquet")
    assert found["score"].dtype == pl.Float64
    np.testing.assert_array_equal(found["score"], expected["score"].cast(float))
    assert found.drop("score").cast(pl.String).equals(expected.drop("score"))
    write_tables(iter([found[:1], found[1:]]), tmp_path / "parts.pq")
    assert pl.read_parquet(tmp_path / "parts.pq").equals(found)


@pytest.mark.parametrize("name", ["scores.parquet.gz", "scores.npz", "scores.XLSX", "scores.svm"])
def test_a_name_of_another_format_is_refused(name, folder, model, tmp_path):
    with pytest.raises(
        TableError, match=r"scores are written as CSV or Parquet, and .* is the name of another format; use"
    ):
        score_file(folder / "rows.csv", model, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_errors(folder, model, tmp_path):
    with pytest.raises(
        TableError, match=r"has no column 'amout' \(did you mean 'amount'\?\); correct the name in what to keep"
    ):
        scored(folder / "rows.csv", model, keep=["amout"])
    with pytest.raises(ValueError, match="keep must be 'all' or a list of columns, got 'shop'; put the name into"):
        scored(folder / "rows.csv", model, keep="shop")
    frame = pl.read_parquet(folder / "rows.parquet").with_columns(tags=pl.lit([1, 2]), day=pl.date(2026, 11, 17))
    frame.write_parquet(tmp_path / "nested.parquet")
    with pytest.raises(TableError, match=r"the column 'tags' of .* type List\(.*name the columns to keep"):
        scored(tmp_path / "nested.parquet", model, keep="all")
    frame.drop("tags").write_parquet(tmp_path / "nested.parquet")
    assert scored(tmp_path / "nested.parquet", model, keep=["day"])["day"][0] == "2026-11-17"
    (tmp_path / "rows.svm").write_text("1 1:2 2:1\n0 1:1 2:3\n" * 20)
    sparse = fit_file(tmp_path / "rows.svm", PatMatNP(), holdout=0)
    with pytest.raises(TableError, match="keep is for columns with names"):
        scored(tmp_path / "rows.svm", sparse, keep="all")


def test_the_command(folder, model, tmp_path):
    toprank.save(model, tmp_path / "model.toprank")
    out = tmp_path / "out.csv"
    assert (
        run("score", folder / "rows.csv", "-m", tmp_path / "model.toprank", "-o", out, "--keep", "shop,fraud").exit_code
        == 0
    )
    assert pl.read_csv(out).columns == ["id", "score", "decision", "shop", "fraud"]
    run("score", folder / "rows.parquet", "-m", tmp_path / "model.toprank", "-o", out, "--keep", "all")
    assert pl.read_csv(out).columns == ["id", "score", "decision", "amount", "country", "shop", "fraud"]
    result = run("score", folder / "rows.csv", "-m", tmp_path / "model.toprank", "-o", out, "--keep", "shops")
    assert result.exit_code == 1
    assert "has no column 'shops'" in result.output
