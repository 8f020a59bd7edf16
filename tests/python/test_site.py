# SPDX-License-Identifier: BSD-3-Clause
"""Links of the pages lead somewhere, and the site is built from them without a warning or a network."""

import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import pytest
from helpers import ROOT

import ryle

SCRIPTS = ROOT / "scripts"


def test_every_link_of_the_pages_leads_somewhere():
    ended = subprocess.run([sys.executable, str(SCRIPTS / "check_links.py")], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout


def test_links_that_lead_nowhere_are_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import check_links
    monkeypatch.setattr(check_links, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/b.md").write_text("# Two words\n")
    (tmp_path / "README.md").write_text("[a](docs/b.md#two-words) [b](docs/c.md) [c](docs/b.md#three) `docs/d.md` ![](e.png) <img src=\"f.png\">\n"
                                        "[g](https://example.org/h) `[i](docs/j.md)` docs/b.md scripts/NAME.py\n\n    [k](l.md)\n\n"
                                        "```\n[m](n.md)\n```\n[o](p.md)\n")
    found = [fault.partition(": ") for fault in check_links.faults_of(tmp_path / "README.md")]
    assert sorted(re.search(r"(?:to|names) ([^ ,]+)", what).group(1) for _, _, what in found) == [
        "docs/b.md#three", "docs/c.md", "docs/d.md", "e.png", "f.png", "p.md"]
    assert {where for where, _, what in found if "p.md" in what} == {"README.md:9"}


class Links(html.parser.HTMLParser):
    """Addresses and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.targets.add(value)
            elif name == "id":
                self.anchors.add(value)


def make_site(folder, tutorial, package):
    return subprocess.run([sys.executable, str(SCRIPTS / "make_site.py"), "-o", str(folder), "--run", tutorial, "--package", str(package)],
                          capture_output=True, text=True, timeout=280)


@pytest.mark.parametrize("name", ["thesis.tex", "searchindex.js"])
def test_a_folder_with_other_files_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("years")
    ended = make_site(tmp_path, "none", tmp_path)
    assert ended.returncode == 73 and "-o" in ended.stderr and [p.name for p in tmp_path.iterdir()] == [name]


def test_the_old_site_stays_where_the_new_one_cannot_be_copied(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import make_site as module
    old, made = tmp_path / "site", tmp_path / "made"
    for folder, text in ((old, "old"), (made, "new")):
        folder.mkdir()
        (folder / "index.html").write_text(text)

    def full(*_):
        raise OSError(28, "No space left on device")

    rename = pathlib.Path.rename
    for owner, call, fails in ((module.shutil, "copytree", full),
                               (pathlib.Path, "rename", lambda self, to: full() if self.name == "new" else rename(self, to))):
        with monkeypatch.context() as failing, pytest.raises(OSError, match="No space"):
            failing.setattr(owner, call, fails)
            module.replace(old, made)
        assert (old / "index.html").read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == ["made", "site"]
    module.replace(old, made)
    assert (old / "index.html").read_text() == "new" and sorted(p.name for p in tmp_path.iterdir()) == ["made", "site"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for module in ("sphinx", "myst_parser", "matplotlib", "astropy"):
        pytest.importorskip(module, reason=f"skipped: no {module} (docs/requirements.txt)")
    folder = tmp_path_factory.mktemp("made") / "site"
    (folder / "docs").mkdir(parents=True)
    for name in (".ryle_site", "docs/gone.html"):
        (folder / name).write_text("of an earlier site")
    ended = make_site(folder, "calibration", pathlib.Path(ryle.__file__).parents[1])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "WARNING" not in ended.stderr, ended.stderr
    return folder


def test_nothing_of_an_earlier_site_stays(site):
    assert not (site / "docs/gone.html").exists() and (site / "docs/python.html").exists()


def test_the_links_of_the_site_resolve(site):
    pages = {page: Links(page.read_text()) for page in site.rglob("*.html") if page.parent.name != "cpp"}
    assert len(pages) > 50 and (site / "searchindex.js").stat().st_size > 100_000
    broken = []
    for page, links in pages.items():
        for target in links.targets:
            address = urllib.parse.urlsplit(target)
            if address.scheme or address.netloc:
                continue
            file = (page.parent / urllib.parse.unquote(address.path)).resolve() if address.path else page
            if not file.exists() or address.fragment and file in pages and urllib.parse.unquote(address.fragment) not in pages[file].anchors:
                broken.append(f"{page.relative_to(site)}: {target}")
    assert not broken, broken[:20]


def test_every_name_of_the_package_is_in_the_site(site):
    api = (site / "api/python.html").read_text()
    for name in ryle.__all__:
        assert f'id="ryle.{name}"' in api, name


def test_tutorials_are_shown_with_what_they_draw(site):
    tutorial = (site / "docs/tutorials/calibration.html").read_text()
    assert "gains are right to" in tutorial and "calibration_1.png" in tutorial and (site / "_images/calibration_1.png").exists()
    assert "was not run" in (site / "docs/tutorials/m33_single_dish.html").read_text()


def test_the_library_is_in_the_site(site):
    if not shutil.which("doxygen"):
        pytest.skip("skipped: no doxygen")
    assert "cpp/index.html" in (site / "api/cpp.html").read_text()
    main = (site / "cpp/index.html").read_text()
    assert "correlate_8hpp.html" in main and (site / "docs/library.html").exists()
    assert "make_correlator" in (site / "cpp/namespaceryle_1_1correlate.html").read_text()
