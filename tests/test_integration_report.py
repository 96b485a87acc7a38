"""The report in headless Chromium: filters, case view, keyboard, phone, dark mode, and 2,000 problems of 16 chains.

Debian's packages ``chromium`` and ``chromium-driver`` have to be there. ``MAGICORE_SHOTS`` names a folder for
screenshots.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium")
pytest.importorskip("jinja2")

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from browser import chromium, complaints, installed, requests, resize, scheme, whole_page
from magicore.report.html import report_data, write_report
from report_runs import scripted_run, synthetic_run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not installed(), reason="chromium and chromium-driver are not installed"),
]
ISSUES = """
const light = (part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
const numbers = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const ground = (node) => {
  for (let up = node; up; up = up.parentElement) {
    const colour = numbers(getComputedStyle(up).backgroundColor);
    if (colour.length === 3 || colour[3] > 0.99) return colour;
  }
  return [255, 255, 255];
};
const hasText = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
const found = [];
for (const node of document.querySelectorAll("main *, header *, footer")) {
  if (node.closest("svg") || !hasText(node) || !node.checkVisibility()) continue;
  if (node.closest(":disabled") || node.querySelector("input:disabled")) continue;
  const [a, b] = [luminance(numbers(getComputedStyle(node).color)), luminance(ground(node))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) found.push(`${node.tagName}.${node.className} ${ratio.toFixed(2)} ${node.textContent.slice(0, 30)}`);
}
return found;
"""
"""Texts whose contrast with what is behind them is below WCAG AA's 4.5."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        driver.get("about:blank")
        requests(driver)
        complaints(driver)
        yield driver


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs over 60 problems of 16 chains."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    runs = [
        synthetic_run(folder / "a" / "first", 60, 16, failed=2),
        synthetic_run(folder / "b" / "second", 60, 16, seed=1, skill=0.65),
    ]
    return write_report(report_data(runs), folder / "report.html")


@pytest.fixture
def opened(browser: Chrome, small: Path) -> Iterator[Chrome]:
    """The report of two runs on a wide, light screen; afterwards there were no requests and no complaints."""
    yield from _opened(browser, small)


def _opened(browser: Chrome, page: Path) -> Iterator[Chrome]:
    scheme(browser, "light")
    resize(browser, 1280, 900)
    browser.get(page.as_uri())
    wait(browser, lambda: len(rows(browser)) > 0 and shown(browser) != "")
    yield browser
    assert complaints(browser) == []
    assert requests(browser) == [page.as_uri()]


def note(text: str) -> None:
    """A line for whoever runs the tests with ``-s``."""
    sys.stdout.write(f"{text}\n")


def wait(browser: Chrome, condition: Callable[[], bool]) -> None:
    """Until it holds, at most 20 s."""
    WebDriverWait(browser, 20, poll_frequency=0.02).until(lambda _: condition())


def rows(browser: Chrome) -> list[str]:
    """Ids of the rows that are drawn."""
    found: list[str] = browser.execute_script(
        "return [...document.querySelectorAll('.row .id')].map((node) => node.textContent)"
    )
    return found


def count(browser: Chrome) -> str:
    return browser.find_element(By.ID, "case-count").text


def shown(browser: Chrome) -> str:
    """The problem that is open."""
    return str(browser.execute_script("return (document.querySelector('#case h3') || {}).textContent || ''"))


def focused(browser: Chrome) -> str:
    return str(browser.switch_to.active_element.get_attribute("id"))


def press(browser: Chrome, *keys: str) -> None:
    """Keys to whatever has the focus."""
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def choose(browser: Chrome, name: str, value: str) -> None:
    """One of a group of filters, by mouse."""
    browser.execute_script("document.getElementById('cases').scrollIntoView({behavior: 'instant'})")
    browser.find_element(By.XPATH, f"//label[input[@name='{name}' and @value='{value}']]").click()


def shot(browser: Chrome, name: str, *, page: bool = False) -> None:
    folder = os.environ.get("MAGICORE_SHOTS")
    if folder:
        path = Path(folder) / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if page:
            whole_page(browser, path)
        else:
            browser.save_screenshot(str(path))


def cases(browser: Chrome, run: int = 0) -> dict[str, list[Any]]:
    """The embedded rows of a run."""
    script = f"return JSON.parse(document.getElementById('report-data').textContent).runs[{run}].cases"
    found: dict[str, list[Any]] = browser.execute_script(script)
    return found


def test_filters_by_mouse(opened: Chrome) -> None:
    known = cases(opened)
    for name, value, expected in (
        ("routing", "hard", [i for i, easy in zip(known["id"], known["easy"], strict=True) if easy == 0]),
        ("change", "fixed", [i for i, change in zip(known["id"], known["change"], strict=True) if change == "fixed"]),
        ("change", "broken", [i for i, change in zip(known["id"], known["change"], strict=True) if change == "broken"]),
        ("outcome", "failed", ["p58", "p59"]),
    ):
        choose(opened, name, value)
        wait(opened, lambda expected=expected: count(opened) == f"{len(expected)} of 60 problems")
        assert expected and rows(opened) == expected[: len(rows(opened))]
        wait(opened, lambda expected=expected: shown(opened) in expected)
        choose(opened, name, "all")
    assert count(opened) == "60 of 60 problems"


def test_search_and_search_in_texts(opened: Chrome) -> None:
    press_into = opened.find_element(By.ID, "search")
    press_into.send_keys("PROBLEM 41:")
    wait(opened, lambda: count(opened) == "1 of 60 problems" and shown(opened) == "p41")
    press_into.clear()
    press_into.send_keys("forgets to carry")
    wait(opened, lambda: count(opened) == "0 of 60 problems")
    assert "No problem fits" in opened.find_element(By.ID, "case-list").text
    opened.find_element(By.ID, "deep").click()
    hard = sum(easy == 0 for easy in cases(opened)["easy"])
    wait(opened, lambda: count(opened) == f"{hard} of 60 problems")


def test_everything_by_keyboard(opened: Chrome) -> None:
    opened.execute_script("document.getElementById('case-list').focus()")
    press(opened, "j", Keys.ARROW_DOWN, "j", "k")
    wait(opened, lambda: shown(opened) == "p2")
    active = opened.find_element(By.ID, "case-list").get_attribute("aria-activedescendant")
    assert opened.find_element(By.ID, str(active)).get_attribute("aria-selected") == "true"
    ring = opened.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid"
    press(opened, Keys.END)
    wait(opened, lambda: shown(opened) == "p59")
    press(opened, Keys.HOME, Keys.PAGE_DOWN, Keys.ENTER)
    wait(opened, lambda: focused(opened) == "case" and shown(opened) != "p59")
    at = int(shown(opened)[1:])
    assert at > 3
    press(opened, "j")
    wait(opened, lambda: shown(opened) == f"p{at + 1}")
    press(opened, Keys.ESCAPE)
    assert focused(opened) == "case-list"
    press(opened, "/")
    assert focused(opened) == "search"
    press(opened, "p33")
    wait(opened, lambda: count(opened) == "1 of 60 problems")
    press(opened, Keys.ESCAPE)
    assert focused(opened) == "case-list"
    # The filters come before the search, as radio groups that the arrow keys change.
    opened.find_element(By.ID, "search").send_keys(Keys.SHIFT, Keys.TAB)
    assert opened.switch_to.active_element.get_attribute("name") == "outcome"


def test_the_case_view(opened: Chrome) -> None:
    known = cases(opened)
    at = known["change"].index("fixed")
    choose(opened, "change", "fixed")
    wait(opened, lambda: shown(opened) == known["id"][at])
    case = opened.find_element(By.ID, "case")
    text = case.text
    for part in (
        "fixed by the rounds",
        "Condition 1",
        "fails: mean z of the majority",
        "Votes",
        "First chains",
        "Round 1",
    ):
        assert part in text, part
    assert len(case.find_elements(By.CSS_SELECTOR, ".chain")) == 32
    chips = [chip.text for chip in case.find_elements(By.CSS_SELECTOR, ".chain .chip:not(.none)")]
    assert len(chips) == 32 * 4 - 2 and all(0 <= float(chip) <= 1 for chip in chips)
    assert "unscored: no_equation" in text
    review = case.find_element(By.CSS_SELECTOR, "details.review")
    review.find_element(By.TAG_NAME, "summary").click()
    assert "</script><script>alert(1)</script><img src=x" in review.text and "{{ 7 * 7 }}" in review.text
    opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", review)
    shot(opened, "case-light")
    scheme(opened, "dark")
    shot(opened, "case-dark")


def test_two_runs_side_by_side(opened: Chrome) -> None:
    for panel in ("routing", "flow", "calibration", "tokens", "troubles"):
        figures = opened.find_elements(By.CSS_SELECTOR, f"[data-panel={panel}] .figure")
        assert [figure.find_element(By.TAG_NAME, "h3").text for figure in figures] == ["first", "second"]
    assert opened.find_elements(By.CSS_SELECTOR, "[data-panel=frontier] svg.chart polygon")
    axis = opened.find_element(By.ID, "frontier-axis")
    axis.send_keys("calls")
    wait(opened, lambda: "calls a problem" in opened.find_element(By.CSS_SELECTOR, "[data-panel=frontier]").text)
    assert len(opened.find_elements(By.CSS_SELECTOR, "[data-panel=frontier] svg.chart polygon")) == 2
    link = opened.find_element(By.XPATH, "//article[@id='case']//button[text()='second']")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", link)
    link.click()
    wait(opened, lambda: opened.find_element(By.ID, "run-choice").get_attribute("value") == "1")
    first, second = cases(opened), cases(opened, 1)
    gained = sum(now == 1 and before == 0 for before, now in zip(first["right"], second["right"], strict=True))
    choose(opened, "against", "gained")
    wait(opened, lambda: count(opened) == f"{gained} of 60 problems")
    name = opened.find_element(By.XPATH, "//div[@data-panel='troubles']//summary")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", name)
    name.click()
    opened.find_element(By.XPATH, "//div[@data-panel='troubles']//button[text()='p58']").click()
    wait(opened, lambda: shown(opened) == "p58" and focused(opened) == "case")
    assert "Failed: ConnectionFailed: nothing answered </script>" in opened.find_element(By.ID, "case").text


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_contrast(opened: Chrome, colours: str) -> None:
    scheme(opened, colours)
    opened.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    assert opened.execute_script(ISSUES) == []
    shot(opened, f"report-{colours}", page=True)


def test_a_phone(opened: Chrome) -> None:
    resize(opened, 360, 740, scale=2, mobile=True)
    wait(opened, lambda: opened.execute_script("return innerWidth") == 360)
    opened.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    wait(opened, lambda: opened.execute_script("return document.querySelector('svg.chart').clientWidth < 360"))
    assert opened.execute_script("return document.documentElement.scrollWidth") == 360
    shot(opened, "phone", page=True)
    opened.execute_script("document.getElementById('case-list').scrollIntoView({block: 'center', behavior: 'instant'})")
    opened.find_elements(By.CSS_SELECTOR, ".row")[2].click()
    wait(opened, lambda: shown(opened) == "p2" and focused(opened) == "case")
    assert opened.execute_script("return document.documentElement.scrollWidth") == 360
    back = opened.find_element(By.CSS_SELECTOR, "#case .back")
    wait(opened, lambda: 0 <= opened.execute_script("return arguments[0].getBoundingClientRect().top", back) < 740)
    shot(opened, "phone-case")
    back.click()
    assert focused(opened) == "case-list"


def test_a_real_run(browser: Chrome, tmp_path: Path) -> None:
    page = write_report(report_data([scripted_run(tmp_path, tmp_path / "run")]), tmp_path / "report.html")
    for opened in _opened(browser, page):
        assert opened.find_element(By.CSS_SELECTOR, ".big").text == "75.0 %"
        choose(opened, "change", "broken")
        wait(opened, lambda: count(browser) == "1 of 4 problems" and shown(browser) == "broken")
        assert "+2 fixed" in opened.find_element(By.CSS_SELECTOR, "[data-panel=flow]").text


def test_an_empty_run(browser: Chrome, tmp_path: Path) -> None:
    run = scripted_run(tmp_path, tmp_path / "run")
    for name in ("results.jsonl", "chains.jsonl", "summary.json", "reviews.jsonl"):
        (run / name).unlink()
    page = write_report(report_data([run]), tmp_path / "report.html")
    browser.get(page.as_uri())
    wait(browser, lambda: "no results yet" in browser.find_element(By.ID, "case-list").text)
    assert browser.find_element(By.CSS_SELECTOR, "[data-panel=flow]").text == "There are no results yet."
    assert complaints(browser) == [] and requests(browser) == [page.as_uri()]


def test_two_thousand_problems(browser: Chrome, tmp_path: Path) -> None:
    """Printed, not asserted: what the script takes for opening, filtering, moving and searching."""
    began = time.perf_counter()
    run = synthetic_run(tmp_path / "large", 2000, 16, failed=20)
    made = time.perf_counter()
    page = write_report(report_data([run]), tmp_path / "report.html")
    note(
        f"\nwritten in {time.perf_counter() - made:.1f} s (run made in {made - began:.1f} s): {page.stat().st_size:,} B"
    )
    for opened in _opened(browser, page):
        loaded = opened.execute_script("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        note(f"opened and drawn: {loaded:.0f} ms")
        assert count(opened) == "2,000 of 2,000 problems"
        assert len(rows(opened)) < 60, "the list is drawn where it is seen"
        script = """
            const done = arguments[arguments.length - 1], began = performance.now();
            const before = document.getElementById("case-count").textContent;
            document.querySelector("input[name=outcome][value=wrong]").click();
            const filtered = performance.now() - began;
            const list = document.getElementById("case-list"), times = [];
            const press = (left) => {
              const start = performance.now();
              list.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true, cancelable: true }));
              document.body.offsetHeight;
              times.push(performance.now() - start);
              if (left) requestAnimationFrame(() => press(left - 1));
              else done([filtered, times.reduce((a, b) => a + b) / times.length, Math.max(...times), before]);
            };
            press(40);
        """
        filtered, mean, worst, before = opened.execute_async_script(script)
        assert before == "2,000 of 2,000 problems"
        note(f"filter: {filtered:.0f} ms; moving to the next case: {mean:.1f} ms on average, {worst:.0f} ms at most")
        wrong = sum(
            r == 0 and s != "failed" for r, s in zip(cases(opened)["right"], cases(opened)["stop"], strict=True)
        )
        wait(opened, lambda wanted=f"{wrong:,} of": count(browser).startswith(wanted))
        began = time.perf_counter()
        press_into = opened.find_element(By.ID, "search")
        press_into.send_keys("problem 1999:")
        choose(opened, "outcome", "all")
        wait(opened, lambda: count(browser) == "1 of 2,000 problems" and shown(browser) == "p1999")
        note(f"search: {time.perf_counter() - began:.2f} s, typing included")
        began = time.perf_counter()
        press_into.clear()
        press_into.send_keys("forgets to carry")
        opened.find_element(By.ID, "deep").click()
        wait(opened, lambda: count(browser).endswith("of 2,000 problems") and not count(browser).startswith("0 "))
        note(f"search through every chain and review: {time.perf_counter() - began:.2f} s")
        shot(opened, "large")
