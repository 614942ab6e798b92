"""Reasons as columns of scores; forests in the workflow of files."""

import io

import numpy as np
import polars as pl
import pytest

from commands import invoke
from toprank import PatMatNP, TopForest, load, reasons, save
from toprank.cli import methods
from toprank.files import fit_file, score_file
from toprank.files.errors import TableError

pytestmark = pytest.mark.filterwarnings("ignore:the model does not know these columns")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 300
    job, amount = rng.choice(["clerk", "student", "judge"], n), rng.normal(size=n).round(3)
    fraud = (amount + 2 * (job == "student") + rng.normal(size=n) > 2.5).astype(int)
    amounts = [None if i % 17 == 0 else value for i, value in enumerate(amount.tolist())]
    table = pl.DataFrame({"number": np.arange(n), "job": job, "amount": amounts, "reason_1": "=x", "fraud": fraud})
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    table.write_csv(path)
    return path


@pytest.fixture(scope="module")
def linear(path):
    return fit_file(path, PatMatNP(tau=0.1), target="fraud", id_column="number", ignore=["reason_1"], max_fpr=0.1)


@pytest.fixture(scope="module")
def forest(path, tmp_path_factory):
    ranker = TopForest(tau=0.1, alpha=1.0, n_estimators=5, random_state=0)
    model = fit_file(path, ranker, target="fraud", id_column="number", ignore=["reason_1"], holdout=0)
    file = tmp_path_factory.mktemp("model") / "forest.toprank"
    save(model, file)
    return load(file)


def scored(path, model, **options):
    score_file(path, model, stream := io.BytesIO(), **options)
    return pl.read_csv(stream.getvalue(), infer_schema=False)


@pytest.mark.parametrize("kind", ["linear", "forest"])
def test_rows_above_the_threshold_have_reasons(kind, path, request):
    model = request.getfixturevalue(kind)
    found = scored(path, model, reasons=2, keep=["reason_1"])
    assert found.columns == ["number", "score", "decision", "reason_1", "reason_2", "original_reason_1"]
    rows = pl.read_csv(path)
    above = found["decision"].to_numpy() == "1"
    assert 0 < above.sum() < len(above)
    told = [[str(reason) for reason in row] for row in reasons(model, rows.filter(above), 2)]
    written = [[text for text in row if text is not None] for row in found.select("reason_1", "reason_2").rows()]
    assert [row for row, is_above in zip(written, above, strict=True) if is_above] == told
    assert not any(row for row, is_above in zip(written, above, strict=True) if not is_above)


def test_the_best_rows_have_reasons_wherever_the_threshold_is(path, linear):
    everything = scored(path, linear, reasons=1).sort(pl.col("score").cast(float), descending=True)
    found = scored(path, linear, top=len(everything), reasons=1)
    assert found["number"].to_list() == everything["number"].to_list()
    assert found["reason_1"].is_not_null().sum() > everything["reason_1"].is_not_null().sum()
    safe = scored(path, linear, top=2, reasons=1, safe_text=True, keep=["reason_1"])
    assert safe["original_reason_1"].to_list() == ["'=x"] * 2


def test_a_forest_takes_columns_as_they_are_and_tells_categories_never_seen(path, forest):
    assert forest.columns == {"job": "category", "amount": "number"}
    assert not hasattr(forest.estimator_, "steps")
    assert [one["done"] for one in forest.summary_["table"]][1:3] == [
        "3 values as they are",
        "as it is; missing: as a value of its own",
    ]
    rows = pl.read_csv(path).with_columns(job=pl.lit("pilot"))
    with pytest.warns(UserWarning, match="column 'job' has values that the model has never seen: 'pilot'"):
        score_file_of(rows, forest, path)


def score_file_of(rows, model, path):
    other = path.parent / "other.csv"
    rows.write_csv(other)
    score_file(other, model, io.BytesIO())


def test_what_has_no_names_and_what_is_no_sum(path, linear, tmp_path):
    sparse = tmp_path / "rows.svm"
    sparse.write_text("1 1:1\n0 2:1\n" * 20)
    with pytest.raises(TableError, match="TopForest takes tables with named columns"):
        fit_file(sparse, TopForest(), holdout=0)
    model = fit_file(sparse, PatMatNP(tau=0.1), holdout=0)
    with pytest.raises(TableError, match="reasons is for columns with names"):
        score_file(sparse, model, io.BytesIO(), reasons=1)
    kernel = fit_file(path, PatMatNP(tau=0.1, kernel="rbf"), target="fraud", ignore=["reason_1", "number"], holdout=0)
    with pytest.raises(ValueError, match="must be linear or a TopForest"):
        score_file(path, kernel, io.BytesIO(), top=1, reasons=1)
    old = load(saved_without_means(linear, tmp_path / "old"))
    with pytest.raises(ValueError, match="measured from the mean of the training rows, which this model does not know"):
        score_file(path, old, io.BytesIO(), top=1, reasons=1)


def saved_without_means(model, file):
    means = vars(model).pop("means_")
    save(model, file)
    model.means_ = means
    return file


def test_methods_have_short_names(path, tmp_path):
    assert methods.full_name("forest") == "TopForest"
    assert methods.full_name("linear") == "PatMatNP"
    assert methods.ranker("forest", seed=3, jobs=2, max_fpr=0.02).get_params()["tau"] == 0.02
    told = invoke("fit", path, "-t", "fraud", "-m", "m", "--method", "forest", "--search")
    assert told.exit_code == 2
    assert "forest chooses its penalty itself" in " ".join(told.output.split())
    told = invoke("fit", path, "-t", "fraud", "-m", "m", "--method", "forest", "--kernel", "rbf")
    assert "TopForest has no --kernel" in " ".join(told.output.split())
