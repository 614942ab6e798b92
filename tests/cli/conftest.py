"""A fitted model for the tests of the command line."""

import pytest

from cli.support import run, transactions


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A folder with train.csv, test.csv, new.csv (no labels) and model.toprank."""
    folder = tmp_path_factory.mktemp("fitted")
    transactions(3000).write_csv(folder / "train.csv")
    test = transactions(800, seed=1)
    test.write_csv(folder / "test.csv")
    test.drop("fraud").write_csv(folder / "new.csv")
    result = run(
        *("fit", folder / "train.csv", "--target", "fraud", "--positive", "yes", "--id", "transaction"),
        *("--model", folder / "model.toprank", "--max-fpr", "0.05", "--quiet"),
    )
    assert result.exit_code == 0, result.output
    return folder
