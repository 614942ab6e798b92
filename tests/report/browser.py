"""A headless Chromium for the tests of the page; they skip where there is none."""

import json
import shutil

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def start(profile):
    """A driver with an empty profile, which logs the console and all requests."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    from selenium.common.exceptions import WebDriverException

    binary = next((found for found in map(shutil.which, BROWSERS) if found), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with chromedriver found: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    except WebDriverException as error:
        pytest.skip(f"Chromium did not start on this machine: {error.msg}")
    started.set_script_timeout(300)  # seconds; a busy machine is slow, not wrong
    return started


def set_screen(driver, width, height, *, dark=False, touch=False):
    """A window of this size, in light or dark colours."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": touch}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


def requests(driver):
    """Addresses that the page itself asked for since the last call, files and data in the page left out."""
    events = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    addresses = [params["request"]["url"] for params in sent if params["documentURL"].startswith("file:")]
    return [address for address in addresses if not address.startswith(("file:", "data:"))]


def complaints(driver):
    """Messages of the console: errors and warnings, violations of the policy included."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
