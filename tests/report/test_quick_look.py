"""What every run of the suite looks at in a headless Chromium, in a few seconds; `test_browser.py` has the rest.

It skips, with the reason, where there is no Chromium.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from report import browser
from report.models import model_and_rows, ranked_rows
from toprank.metrics import precision_at_k, recall_at_k, tpr_at_fpr
from toprank.ranking.paired import Budget, given_limits
from toprank.report import write_report

CHOOSE = """
const [mode, value] = arguments;
document.querySelector(`input[name="mode"][value="${mode}"]`).click();
const field = document.querySelector("#budget-value");
field.value = String(value);
field.dispatchEvent(new Event("input", { bubbles: true }));
const numbers = Array.from(document.querySelectorAll("[data-number]"),
    (e) => [`${e.dataset.list} ${e.dataset.number}`, Number(e.dataset.value)]);
const differences = Array.from(document.querySelectorAll("[data-difference]"),
    (e) => [`difference ${e.dataset.difference}`, ["value", "lower", "upper"].map((key) => Number(e.dataset[key]))]);
return Object.fromEntries(numbers.concat(differences));
"""
WIDE = """
const [width, list] = arguments;
const inside = (e) => e.closest(list + ".unseen, .skip, .definitions, thead") === null;
const right = width + 0.5;
return Array.from(document.body.querySelectorAll("*"))
    .filter((e) => inside(e) && e.getBoundingClientRect().right > right).map((e) => e.outerHTML.slice(0, 80));
"""
SCHEMES = {False: "rgb(255, 255, 255)", True: "rgb(16, 22, 29)"}


@pytest.fixture(scope="module")
def rows():
    y, ours = ranked_rows(400)
    random = np.random.default_rng(1)
    return y, {"ours": ours, "incumbent <b>": np.round(3 * (ours + random.normal(size=400))) / 3}


@pytest.fixture(scope="module")
def pages(rows, tmp_path_factory):
    y, scores = rows
    folder = tmp_path_factory.mktemp("pages")
    write_report(folder / "model.html", *model_and_rows(y, scores["ours"]), y, k=20)
    write_report(folder / "compared.html", y_true=y, scores=scores, k=20)
    table = pd.DataFrame({"a_column_with_a_very_long_name_without_spaces": scores["ours"], "other": 1.0 * y})
    write_report(folder / "reasons.html", LogisticRegression().fit(table, y), table, y, k=20)
    return {name: (folder / f"{name}.html").as_uri() for name in ("model", "compared", "reasons")}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = browser.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.mark.parametrize("page", ["model", "compared"])
def test_the_slider_counts_in_every_list(driver, pages, rows, page):
    y, scores = rows
    browser.set_screen(driver, 1280, 900)
    driver.get(pages[page])
    lists = list(scores.values()) if page == "compared" else [scores["ours"]]
    for k in (1, 20, 33, 150, 400):
        found = driver.execute_script(CHOOSE, "k", k)
        for i, one in enumerate(lists):
            assert found[f"{i} precision"] == pytest.approx(precision_at_k(y, one, k=k), abs=1e-9)
            assert found[f"{i} caught"] == pytest.approx(recall_at_k(y, one, k=k) * y.sum(), abs=1e-9)
    for rate in (0.0, 1.0, 7.5):
        found = driver.execute_script(CHOOSE, "fpr", rate)
        for i, one in enumerate(lists):
            assert found[f"{i} recall"] == pytest.approx(tpr_at_fpr(y, one, max_fpr=rate / 100), abs=1e-9)
    assert browser.complaints(driver) == []
    assert browser.requests(driver) == []


def test_the_difference_is_that_of_python(driver, pages, rows):
    y, scores = rows
    driver.get(pages["compared"])
    for mode, kind, value, scale in (("k", "k", 20, 1), ("k", "k", 33, 1), ("fpr", "max_fpr", 5.0, 100)):
        found = driver.execute_script(CHOOSE, mode, value)
        expected = given_limits(y == 1, *scores.values(), Budget(kind, value / scale), 0.95)
        difference, *limits = found["difference 1"]
        assert difference == pytest.approx(found["0 caught"] - found["1 caught"], abs=1e-9)
        assert limits == pytest.approx(expected, abs=1e-6)
    sentence = driver.execute_script("return document.querySelector('[data-difference]').textContent")
    assert "than incumbent <b> (95\xa0% limits of the difference: " in sentence


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", ["model", "compared", "reasons"])
def test_fits_on_phone_and_desk_in_light_and_dark(driver, pages, page, width, dark):
    browser.set_screen(driver, width, 900, dark=dark, touch=width < 500)
    driver.get(pages[page])
    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == SCHEMES[dark]
    list_that_scrolls = "" if width < 500 else "#top-rows, "
    assert driver.execute_script(WIDE, width, list_that_scrolls) == []  # the tables of numbers too
