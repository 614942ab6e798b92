"""The page in a headless Chromium: the slider is moved, and its numbers are those of Python.

All of it takes a minute or more, so `make test-slow` runs it; `test_quick_look.py` is part of every run of the suite.
"""

import base64

import numpy as np
import pandas as pd
import pytest

from report import browser
from report.models import FirstColumn, cut_by_precision, model_and_rows, ranked_rows
from toprank.metrics import enrichment_factor, precision_at_k, recall_at_k, tpr_at_fpr
from toprank.ranking.curves import list_lengths
from toprank.ranking.intervals import clopper_pearson
from toprank.report import embedding, write_report


def neighbours(dtype):
    """Scores between which there is no other number."""
    y, _ = ranked_rows(120)
    return y, (1 + np.finfo(dtype).eps * np.random.default_rng(0).permutation(120)).astype(dtype)


pytestmark = pytest.mark.slow

LISTS = {
    "distinct": lambda: ranked_rows(300),
    "ties": lambda: ranked_rows(300, ties=True),
    "single": lambda: ranked_rows(400, dtype=np.float32),
    "rare": lambda: ranked_rows(2000, seed=3),
    "neighbours": lambda: neighbours(np.float64),
    "single neighbours": lambda: neighbours(np.float32),
}

READ = """
const read = () => Object.fromEntries(Array.from(document.querySelectorAll("[data-number]"),
    (e) => [e.dataset.number, e.dataset.value]).concat(Array.from(document.querySelectorAll("[data-limits]"),
    (e) => [`${e.dataset.limits}_limits`, [Number(e.dataset.lower), Number(e.dataset.upper)]]),
    [["note", document.querySelector("#budget-note").textContent]],
    [["shown", document.querySelector('[data-number="threshold"]').textContent.replace("−", "-")]]));
"""
CHOOSE = (
    READ
    + """
const [mode, values] = arguments;
document.querySelector(`input[name="mode"][value="${mode}"]`).click();
const field = document.querySelector("#budget-value");
return values.map((value) => {
    field.value = String(value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    return read();
});
"""
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = browser.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One page for each list, written once."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, make in LISTS.items():
        y, scores = make()
        write_report(folder / f"{name}.html", *model_and_rows(y, scores), y, k=20)
        found[name] = ((folder / f"{name}.html").as_uri(), y, scores)
    return found


@pytest.fixture(autouse=True)
def clean(driver):
    """After each test: no complaint of the console, no request."""
    browser.set_screen(driver, 1200, 900)
    browser.requests(driver)
    browser.complaints(driver)
    yield
    assert browser.complaints(driver) == []
    assert browser.requests(driver) == []


def shown(driver):
    return driver.execute_script(READ + "return read();")


def number(found, name):
    return float(found[name])


def assert_counts(found, y, caught, false_alarms):
    """All numbers follow from two counts."""
    positives, negatives = np.sum(y == 1), np.sum(y != 1)
    alerts = caught + false_alarms
    expected = {
        "alerts": alerts,
        "caught": caught,
        "missed": positives - caught,
        "false_alarms": false_alarms,
        "recall": caught / positives,
        "fpr": false_alarms / negatives,
        "precision": caught / alerts if alerts else np.nan,
        "lift": caught / alerts * len(y) / positives if alerts else np.nan,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(number(found, name), value, rtol=1e-12, atol=1e-9, err_msg=name)


def assert_threshold(found, scores, alerts):
    """Exactly the rows above the threshold that a reader sees are alerts."""
    if found["threshold"] == "-Infinity":
        assert alerts == len(scores)
    else:
        for text in (found["threshold"], found["shown"]):
            assert np.sum(scores > float(text)) == alerts  # NumPy rounds the threshold to the precision of the scores
            assert np.sum(scores.astype(np.float64) > float(text)) == alerts


@pytest.mark.parametrize("name", list(LISTS))
def test_every_number_of_alerts(driver, pages, name):
    page, y, scores = pages[name]
    driver.get(page)
    lengths = list(range(1, len(y) + 1)) if len(y) <= 400 else [1, 2, 17, 100, 101, 999, len(y) - 1, len(y)]
    for k, found in zip(lengths, driver.execute_script(CHOOSE, "k", lengths), strict=True):
        caught = recall_at_k(y, scores, k=k) * y.sum()
        assert_counts(found, y, caught, k - caught)
        np.testing.assert_allclose(number(found, "precision"), precision_at_k(y, scores, k=k), rtol=1e-12)
        np.testing.assert_allclose(number(found, "lift"), enrichment_factor(y, scores, fraction=k / len(y)), rtol=1e-9)
        if "equal score" not in found["note"]:
            assert_threshold(found, scores, k)
        else:
            above, equal = np.sum(scores > float(found["shown"])), np.sum(scores == float(found["shown"]))
            assert above < k < above + equal
            assert f"among {equal} rows" in found["note"]
            assert f"which {k - above} fit" in found["note"]


@pytest.mark.parametrize("name", list(LISTS))
def test_false_positive_rates(driver, pages, name):
    page, y, scores = pages[name]
    driver.get(page)
    negatives = np.sum(y == 0)
    rates = [0, 0.1, 0.5, 1, 2.5, 5, 10, 33.3, 50, 99.9, 100, *(100 * np.arange(1, 12) / negatives)]
    for rate, found in zip(rates, driver.execute_script(CHOOSE, "fpr", list(map(float, rates))), strict=True):
        recall = tpr_at_fpr(y, scores, max_fpr=rate / 100)
        np.testing.assert_allclose(number(found, "recall"), recall, rtol=1e-12)
        assert number(found, "fpr") <= rate / 100 * (1 + 1e-9)
        assert_counts(found, y, number(found, "caught"), number(found, "false_alarms"))
        assert_threshold(found, scores, number(found, "alerts"))


@pytest.mark.parametrize("name", list(LISTS))
def test_precisions(driver, pages, name):
    page, y, scores = pages[name]
    driver.get(page)
    values = [0, 5, 12.5, 20, 33.3, 50, 60, 75, 80, 90, 99, 100]
    for value, found in zip(values, driver.execute_script(CHOOSE, "precision", values), strict=True):
        expected = cut_by_precision(y, scores, value / 100)
        if expected is None:
            assert "No threshold reaches this precision" in found["note"]
            expected = 0, 0
        assert_counts(found, y, *expected)
        assert_threshold(found, scores, sum(expected))


def test_limits_are_exact(driver, pages):
    page, y, scores = pages["ties"]
    driver.get(page)
    lengths = [1, 2, 7, 20, 55, 150, 299, 300]
    for k, found in zip(lengths, driver.execute_script(CHOOSE, "k", lengths), strict=True):
        caught = recall_at_k(y, scores, k=k) * y.sum()
        for name, successes, trials in (
            ("precision", caught, k),
            ("recall", caught, y.sum()),
            ("fpr", k - caught, np.sum(y == 0)),
        ):
            expected = np.ravel(clopper_pearson(np.array([successes]), np.array([float(trials)]), 0.95))
            np.testing.assert_allclose(found[f"{name}_limits"], expected, rtol=1e-7, atol=1e-9, err_msg=f"{name} {k}")


def test_keyboard_alone(driver, pages):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    page, y, scores = pages["distinct"]
    driver.get(page)
    slider = driver.find_element(By.ID, "slider")
    assert number(shown(driver), "alerts") == 20
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert number(shown(driver), "alerts") == 21
    assert slider.get_attribute("aria-valuetext") == "21 alerts"
    slider.send_keys(Keys.END)
    assert number(shown(driver), "alerts") == len(y)
    slider.send_keys(Keys.HOME)
    assert_counts(shown(driver), y, recall_at_k(y, scores, k=1) * y.sum(), 1 - recall_at_k(y, scores, k=1) * y.sum())
    assert driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"

    driver.find_element(By.CSS_SELECTOR, 'input[value="k"]').send_keys(Keys.ARROW_RIGHT)
    assert driver.execute_script("return document.activeElement.value") == "fpr"
    slider.send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    found = shown(driver)
    assert number(found, "false_alarms") == 2
    assert number(found, "recall") == pytest.approx(tpr_at_fpr(y, scores, max_fpr=2 / np.sum(y == 0)))

    driver.find_element(By.CSS_SELECTOR, 'input[value="fpr"]').send_keys(Keys.ARROW_RIGHT)
    slider.send_keys(Keys.HOME)
    assert number(shown(driver), "alerts") == len(y)
    slider.send_keys(Keys.END)
    expected = cut_by_precision(y, scores, 1.0) or (0, 0)
    assert_counts(shown(driver), y, *expected)


def test_each_place_of_the_slider_allows_another_false_alarm(driver, pages):
    page, y, _ = pages["distinct"]
    driver.get(page)
    counts = driver.execute_script("""
        document.querySelector('input[value="fpr"]').click();
        const slider = document.querySelector("#slider");
        return Array.from({ length: Number(slider.max) + 1 }, (_, place) => {
            slider.value = String(place);
            slider.dispatchEvent(new Event("input"));
            return Number(document.querySelector('[data-number="false_alarms"]').dataset.value);
        });
    """)
    assert counts == [0, *list_lengths(float(np.sum(y == 0)))]


def test_slider_by_script_and_typed_value(driver, pages):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    page, y, scores = pages["rare"]
    driver.get(page)
    driver.execute_script(
        "const s = document.querySelector('#slider'); s.value = '49'; s.dispatchEvent(new Event('input'));"
    )
    assert number(shown(driver), "alerts") == 50
    field = driver.find_element(By.ID, "budget-value")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("1234")
    assert number(shown(driver), "caught") == pytest.approx(recall_at_k(y, scores, k=1234) * y.sum())
    field.send_keys("99999", Keys.TAB)
    assert number(shown(driver), "alerts") == len(y)
    assert field.get_attribute("value") == str(len(y))
    field.clear()
    assert field.get_attribute("value") == str(len(y))


def test_live_region_marks_and_rows(driver, pages):
    page, y, _ = pages["distinct"]
    driver.get(page)
    found = driver.execute_script(CHOOSE, "k", [12])[0]
    wait = "return new Promise((done) => setTimeout(() => done(document.querySelector('#live').textContent), 500))"
    caught = int(number(found, "caught"))
    assert driver.execute_script(wait).startswith(f"12 alerts: {caught} of {y.sum()} positives caught")
    assert driver.execute_script("return document.querySelectorAll('#top-rows tr.taken').length") == 12
    place = driver.execute_script(
        "const dot = document.querySelector('#figure-roc .dot'); return [dot.getAttribute('cy'), dot.checkVisibility()]"
    )
    expected = 208 - (208 - 24) * number(found, "recall")
    assert float(place[0]) == pytest.approx(expected)
    assert place[1]


def test_click_on_a_figure_chooses_the_budget(driver, pages):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    page, *_ = pages["distinct"]
    driver.get(page)
    for name in ("roc", "precision-at-k", "precision-recall", "densities-0"):
        before = shown(driver)["alerts"]
        figure = driver.find_element(By.ID, f"figure-{name}")
        driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", figure)
        ActionChains(driver).move_to_element_with_offset(figure, 60, 0).click().perform()
        assert shown(driver)["alerts"] != before, name


def test_own_threshold(driver, pages):
    from selenium.webdriver.common.by import By

    page, _, scores = pages["distinct"]
    driver.get(page)
    driver.find_element(By.ID, "own-threshold").click()
    assert number(shown(driver), "alerts") == np.sum(scores > 0)


def test_thresholds_beyond_the_exact_ones(driver, tmp_path, monkeypatch):
    """Counts stay exact, and the threshold is said to lie between two stored scores, as it does."""
    monkeypatch.setattr(embedding, "EXACT_SCORES", 50)
    monkeypatch.setattr(embedding, "OTHER_SCORES", 20)
    y, scores = ranked_rows(500)
    write_report(tmp_path / "page.html", *model_and_rows(y, scores), y, k=20)
    driver.get((tmp_path / "page.html").as_uri())
    lengths = [10, 49, 50, 51, 60, 333, 498, 499]
    falling = np.sort(scores)[::-1]
    rule = "return document.querySelector('[data-rule=threshold]').textContent"
    for k in lengths:
        found = driver.execute_script(CHOOSE, "k", [k])[0]
        caught = recall_at_k(y, scores, k=k) * y.sum()
        assert_counts(found, y, caught, k - caught)
        said = driver.execute_script(rule)
        if "at most" in said:
            assert float(found["shown"]) <= falling[k] <= float(said.split()[-1]) + 1e-5
            assert k > 50
        elif k < 51:
            assert_threshold(found, scores, k)


WIDE = """
const inside = (e) => e.closest(".scroll, .unseen, .skip, .definitions") === null;
return [document.documentElement.scrollWidth, Array.from(document.body.querySelectorAll("*"))
    .filter((e) => inside(e) && e.getBoundingClientRect().right > 320.5).map((e) => e.outerHTML.slice(0, 80))];
"""


def test_phone(driver, pages):
    page, *_ = pages["rare"]
    browser.set_screen(driver, 320, 640, touch=True)
    driver.get(page)
    assert driver.execute_script(WIDE) == [320, []]


def test_long_words_on_a_phone(driver, tmp_path):
    y, scores = ranked_rows(20_000)
    long = "a_word_without_any_space_that_is_longer_than_the_screen_of_a_phone_is_wide"
    model, X = model_and_rows(y, 1e9 * scores)
    table = pd.DataFrame(X, columns=[long, long + "_too"])
    labels = np.where(y == 1, long, "other")
    model = FirstColumn().fit(table, labels)
    more = {"title": long, "data_name": long, "limits": [long], "intended_use": long}
    write_report(tmp_path / "page.html", model, table, labels, pos_label=long, ids=[long] * len(y), **more)
    browser.set_screen(driver, 320, 640, touch=True)
    driver.get((tmp_path / "page.html").as_uri())
    assert driver.execute_script(WIDE) == [320, []]


@pytest.mark.parametrize(("dark", "background"), [(False, "rgb(255, 255, 255)"), (True, "rgb(16, 22, 29)")])
def test_light_and_dark(driver, pages, dark, background):
    page, *_ = pages["distinct"]
    browser.set_screen(driver, 1000, 800, dark=dark)
    driver.get(page)
    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == background


def test_print(driver, pages):
    page, *_ = pages["distinct"]
    driver.get(page)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    display = "return ['nav', '.controls', '#figure-roc'].map((s) => document.querySelector(s).checkVisibility())"
    assert driver.execute_script(display) == [False, False, True]
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")


def test_hostile_text_is_text(driver, tmp_path):
    attack = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
    y, scores = ranked_rows(60)
    model, X = model_and_rows(y, scores)
    table = pd.DataFrame({attack: [attack] * 60, "{{ 7 * 7 }}": ["{% raw %}"] * 60})
    write_report(
        tmp_path / "page.html",
        *(model, X, y),
        ids=[attack] * 60,
        table=table,
        title=attack,
        data_name=attack,
        intended_use=attack,
        limits=[attack],
    )
    driver.get((tmp_path / "page.html").as_uri())
    assert driver.title == attack
    assert driver.execute_script("return document.querySelectorAll('img').length") == 0
    assert driver.execute_script("return document.querySelectorAll('script').length") == 2
    cells = driver.execute_script(
        "return Array.from(document.querySelectorAll('#top-rows tbody tr:first-child td'), (e) => e.textContent)"
    )
    assert cells[0] == cells[3] == attack
    assert cells[4] == "{% raw %}"
