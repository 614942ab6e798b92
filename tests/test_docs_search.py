"""The search of the docs works from a folder: the frame that stands for a worker there does what a worker does."""

import time
from pathlib import Path

import pytest

from report import browser

ROOT = Path(__file__).parents[1]


def test_the_site_takes_its_own_script():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "- offline" in config
    assert "polyfills: [assets/iframe-worker.js]" in config
    assert "http" not in (ROOT / "docs" / "assets" / "iframe-worker.js").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_frame_answers_like_a_worker(tmp_path):
    shim = (ROOT / "docs" / "assets" / "iframe-worker.js").as_uri()
    (tmp_path / "worker.js").write_text('addEventListener("message", event => postMessage("heard " + event.data))')
    (tmp_path / "page.html").write_text(
        f"""<body><script src="{shim}"></script><script>
        const worker = new Worker("worker.js"), heard = []
        worker.addEventListener("message", event => {{ heard.push(event.data); document.title = heard.join() }})
        worker.postMessage("one"); worker.postMessage("two")
        </script>"""
    )
    driver = browser.start(tmp_path / "profile")
    try:
        driver.get((tmp_path / "page.html").as_uri())
        end = time.monotonic() + 60
        while driver.title != "heard one,heard two" and time.monotonic() < end:
            time.sleep(0.1)
        assert driver.title == "heard one,heard two"
    finally:
        driver.quit()
