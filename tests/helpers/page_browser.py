"""Chromium without a screen: opens pages from disk, and says what they logged and asked for."""

import base64
import json
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
WIDE, PHONE = 1280, 390


class PageBrowser:
    """A browser for the tests of pages; files that pages download go to its folder."""

    def __init__(self, folder: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.downloads = folder / "downloads"
        self.downloads.mkdir()
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def close(self) -> None:
        """End the browser."""
        self.driver.quit()

    def call(self, command: str, **arguments: Any) -> Any:
        """Give a command of the DevTools."""
        return self.driver.execute_cdp_cmd(command, arguments)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page, and return what it returns; promises are waited for."""
        return self.driver.execute_script(script, *arguments)

    def open(self, page: Path, *, width: int = WIDE, theme: str = "light") -> None:
        """Open a page as wide as a screen, in light or in dark."""
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=width == PHONE)
        self.set_theme(theme)
        self.driver.get(page.as_uri())

    def set_theme(self, theme: str) -> None:
        """Prefer light or dark."""
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.call("Emulation.setEmulatedMedia", media="", features=[feature])

    def list_messages(self) -> list[str]:
        """Return what the console has logged since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def list_requests(self) -> list[str]:
        """Return what was asked for since the page was opened, the page itself included."""
        logged = (json.loads(x["message"])["message"] for x in self.driver.get_log("performance"))
        return [x["params"]["request"]["url"] for x in logged if x["method"].endswith("BeSent")]

    def press(self, *keys: str) -> None:
        """Press keys in what has the focus: names as in `Keys`, or letters."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        ActionChains(self.driver, duration=0).send_keys(
            *(getattr(Keys, key, key) for key in keys)
        ).perform()

    def print_page(self) -> bytes:
        """Return the page as PDF."""
        found = self.call("Page.printToPDF", printBackground=True)
        return base64.b64decode(found["data"])
