"""Take docs/explore.png: python -m tests.teach.screenshot"""

from __future__ import annotations

import shutil
from io import BytesIO
from threading import Thread

from PIL import Image
from playwright.sync_api import sync_playwright

from bayesmeta.teach.server import Server
from tests.helpers import ROOT


def main() -> None:
    """The page as it opens, with draws of the posterior, in the middle of its task."""
    with Server() as server, sync_playwright() as driver:
        Thread(target=server.serve_forever, daemon=True).start()
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 1735})
        page.goto(server.address)
        page.evaluate("document.getElementById('step').value = 5")
        page.get_by_role("button", name="Draw the posterior").click()
        page.locator("#state", has_text="drawn").wait_for(timeout=0)
        page.evaluate("moved()")
        page.locator("body[data-waiting='0']").wait_for(timeout=0)
        shot = Image.open(BytesIO(page.screenshot()))
        browser.close()
        server.shutdown()
    shot.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE).save(
        ROOT / "docs" / "explore.png", optimize=True
    )


if __name__ == "__main__":
    main()
