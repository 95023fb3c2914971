"""The page of a report, by itself and in a browser."""

import base64
import hashlib
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from sklearn.datasets import make_friedman1
from tests.cases import PLAIN
from tests.refusals import refused

from hilboost import BoostingRegressor, OutputKernelBoostingRegressor
from hilboost.core.errors import InvalidType
from hilboost.losses import SquaredError
from hilboost.report import render, report
from hilboost.report.charts import WIDTH
from hilboost.report.table import number_text


class Wordy(SquaredError):
    """A loss with a long ``repr``."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def model():
    X, y = make_friedman1(200, n_features=5, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "<e>"])
    return BoostingRegressor(**PLAIN).fit(frame[:100], y[:100]), frame[100:], y[100:]


@pytest.fixture(scope="module")
def shown(model):
    fitted, X, y = model
    return fitted.report(X, y, title="Friedman's function")


def test_the_page_is_one_file(shown, tmp_path):
    html = shown.html
    assert shown.save(tmp_path / "report.html").path.read_text(encoding="utf-8") == html
    assert "Friedman&#39;s function" in html
    assert "http:" not in html
    assert "https:" not in html
    for address in re.findall(r'(?:src|href)="([^"]*)"', html):
        assert address.startswith(("data:", "#"))
    ids = re.findall(r' id="(\w+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#(\w+)"', html)) <= set(ids)
    svgs = re.findall(r"<svg [^>]*>", html)
    assert all("aria-label" in svg or "aria-hidden" in svg for svg in svgs)


def test_the_page_permits_its_own_script_only(shown):
    (script,) = re.findall(r"<script>(.*?)</script>", shown.html, re.DOTALL)
    (permitted,) = re.findall(r"script-src 'sha256-([^']+)'", shown.html)
    assert permitted == base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def test_charts_carry_their_values(model, shown):
    fitted, X, y = model
    svg = r'<svg [^>]*data-x="predicted" data-y="true" data-hover="([^"]*)"'
    (chart,) = re.findall(svg, shown.html)
    points = [line.split("\t") for line in chart.split("\n")]
    assert len(points) == len(y)
    for (left, _, predicted, true), a, b in zip(points, fitted.predict(X), y, strict=True):
        assert (predicted, true) == (number_text(a), number_text(b))
        assert 0 <= float(left) <= WIDTH


def test_reports_show_themselves_in_notebooks(shown):
    assert shown._repr_html_().startswith("<iframe")
    assert shown.path is None
    assert "Friedman's function" in repr(shown)


def test_a_failed_write_leaves_the_old_file(shown, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(self, *_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(path), "write_text", fail)
        refused(OSError, "No space", shown.save, path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def images():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 6))
    Y = X.reshape(60, 2, 3)[:, ::-1]
    fitted = OutputKernelBoostingRegressor("gaussian", n_estimators=5, random_state=0)
    return fitted.fit(X[:30], Y[:30]), X[30:], Y[30:]


def browse(page, folder, *options):
    """Open a page in a browser."""
    common = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        [
            BROWSER,
            *common,
            "--virtual-time-budget=3000",
            f"--user-data-dir={folder / 'profile'}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # The page forbids itself the network, so that a request would be a message here too.
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
def test_a_browser_sorts_tables(shown, tmp_path):
    page = tmp_path / "report.html"
    shown.save(page)
    document = browse(page, tmp_path, "--dump-dom").stdout
    assert '<th scope="col" class="n"><button>increase</button></th>' in document


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
def test_names_of_parameters_stay_whole_on_a_phone(model, tmp_path):
    """Beside a value that is longer than a phone is wide."""
    _, X, y = model
    loss = "a loss with a name that leaves its row little room, for many more words than one line"
    fitted = BoostingRegressor(Wordy(loss), **PLAIN).fit(X, y)
    page = tmp_path / "report.html"
    html = fitted.report(X, y).html.replace("<details>", "<details open>")
    html = re.sub(r"<meta http-equiv=[^>]*>", "", html)
    page.write_text(
        html.replace("<body", '<body style="width: 340px"')
        + "<script>for (const code of document.querySelectorAll('th code'))"
        "{ code.className = 'lines' + code.getClientRects().length; }</script>",
        encoding="utf-8",
    )
    lines = re.findall(r'class="lines(\d+)"', browse(page, tmp_path, "--dump-dom").stdout)
    assert len(lines) > 20
    assert set(lines) == {"1"}


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
@pytest.mark.parametrize("kind", ["trees", "images"])
def test_a_browser_shows_the_page_without_complaint(kind, model, tmp_path):
    fitted, X, y = model if kind == "trees" else images()
    page, shot = tmp_path / "report.html", tmp_path / "shot.png"
    fitted.report(X, y, page)
    done = browse(
        page, tmp_path, "--hide-scrollbars", "--window-size=800,2400", f"--screenshot={shot}"
    )
    assert shot.exists(), done.stderr
    picture = imread(shot)[..., :3]
    assert picture.shape[:2] == (2400, 800)
    drawn = (np.abs(picture - picture[0, 0]) > 0.1).any(axis=2)
    assert drawn.mean() > 0.02
    # From top to bottom, not only a title.
    assert all(band.any() for band in np.array_split(drawn, 8))


def test_other_things_than_facts(model):
    refused(InvalidType, r"render\(facts\(model, X, y\)\); got BoostingRegressor", render, model[0])
    with pytest.raises(InvalidType, match="hilboost estimator as the first .* got ndarray"):
        report(model[2], *model[1:])
