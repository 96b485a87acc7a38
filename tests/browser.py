"""Headless Chromium (Debian's packages ``chromium`` and ``chromium-driver``), with a record of what it does."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = "chromium", "chromedriver"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
)


def installed() -> bool:
    """Whether both programs are there."""
    return shutil.which(CHROMIUM) is not None and shutil.which(DRIVER) is not None


@contextmanager
def chromium(profile: Path, *, width: int = 1280, height: int = 900) -> Iterator[Chrome]:
    """A browser with an empty profile, which ends with the block."""
    options = Options()
    options.binary_location = str(shutil.which(CHROMIUM))
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(executable_path=str(shutil.which(DRIVER))))
    try:
        yield driver
    finally:
        driver.quit()


def requests(driver: Chrome) -> list[str]:
    """The addresses of all requests since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("data:", "blob:"))]


def complaints(driver: Chrome) -> list[str]:
    """What the console holds since the last call."""
    return [str(entry["message"]) for entry in driver.get_log("browser")]


def resize(driver: Chrome, width: int, height: int, *, scale: float = 1, mobile: bool = False) -> None:
    """A screen of exactly this many CSS pixels."""
    screen: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def scheme(driver: Chrome, name: str) -> None:
    """Prefer ``light`` or ``dark``, and no motion, so that nothing moves under a click."""
    wanted = {"prefers-color-scheme": name, "prefers-reduced-motion": "reduce"}
    features = [{"name": feature, "value": value} for feature, value in wanted.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def whole_page(driver: Chrome, path: Path) -> None:
    """A screenshot of the page from top to bottom."""
    found = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(found["data"]))
