#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the documentation site into a folder of static pages, without a network: every page of docs/, the API of the
Python package and (where doxygen is installed) of the C++ library, and the tutorials, which are run for what they print
and draw.

    scripts/python_env.sh                  # once: an environment with docs/requirements.txt
    .venv/bin/python scripts/make_site.py  # build-check/site/index.html

The package is the one that is installed, or the one in build-check/python. Warnings are errors."""

import argparse
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import check_links  # noqa: E402

ROOT = check_links.ROOT
# Pages in the order in which a visitor wants them; those that are not named follow under "More".
SECTIONS = {
    "For observers": ["docs/observer", "docs/python", "docs/imaging", "docs/stations", "docs/calibration", "docs/sky-models",
                      "docs/flagging", "docs/search", "docs/beams", "docs/gridding", "docs/data"],
    "For operators": ["docs/operator", "docs/bring_up", "docs/live-beams", "docs/voltages", "docs/formats", "docs/transports",
                      "docs/configuration", "docs/exit-codes"],
    "For programmers": ["docs/library", "docs/developer", "docs/tour", "docs/conventions"],
}
# In the folder of a site: it is this script's to replace. Other tools make folders that look alike.
MARKER = ".ryle_site"
# Folders of many pages: title and what they hold.
LISTS = {"docs/decisions/": ("Decisions", "What was decided, tried and measured, in the order in which it was."),
         "docs/design/": ("Design", "The equations and layouts that the code cites.")}
# What is installed of the library, cmake/RyleInstall.cmake; the tags of its comments.
DOXYGEN = """
PROJECT_NAME = Ryle
PROJECT_BRIEF = "the C++ library"
INPUT = MAINPAGE core device math telescope engine
RECURSIVE = YES
FILE_PATTERNS = *.hpp *.dox
EXCLUDE_PATTERNS = */cpu/* */cuda/* *.inc.hpp
EXTRACT_ALL = YES
BUILTIN_STL_SUPPORT = YES
ALIASES = "eq=\\par Equation:^^" "shape=\\par Shape:^^" "unit=\\par Unit:^^" "range=\\par Range:^^"
GENERATE_LATEX = NO
HAVE_DOT = NO
HTML_OUTPUT = OUTPUT
HTML_TIMESTAMP = NO
SEARCHENGINE = YES
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_IF_INCOMPLETE_DOC = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
"""
TUTORIALS = ["sun_from_voltages", "correlator_in_ten_lines", "burst_from_a_filterbank", "m33_single_dish", "your_own_array", "calibration"]


def cells(text):
    """(kind, body) of each cell of a notebook in percent format; kind is "markdown" or "code"."""
    for part in re.split(r"^# %%", text, flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            yield "markdown", re.sub(r"^# ?", "", body, flags=re.M).strip()
        elif body.strip():
            yield "code", body.strip()


def run_cells(file, pictures):
    """Markdown of a tutorial with what its cells print and draw; pictures go beside it as STEM_N.png."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    with contextlib.suppress(ImportError):
        from astropy.utils import iers
        iers.conf.auto_download = False
        iers.conf.auto_max_age = None
    drawn = []

    def show(*_, **__):
        for number in plt.get_fignums():
            drawn.append(f"{file.stem}_{len(drawn) + 1}.png")
            plt.figure(number).savefig(pictures / drawn[-1], dpi=110)
        plt.close("all")

    plt.show = show
    space = {"__name__": "__main__"}
    page = []
    for kind, body in cells(file.read_text()):
        if kind == "markdown":
            page.append(body)
            continue
        page.append(f"```python\n{body}\n```")
        shown = len(drawn)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(body, str(file), "exec"), space)
        if printed.getvalue().strip():
            page.append(f"```text\n{printed.getvalue().rstrip()}\n```")
        page += [f"![]({name})" for name in drawn[shown:]]
    return page


def tutorial_page(file, run, directory, environment):
    """Writes the page of a tutorial; False if it could not be run, which the page then says."""
    target = directory / f"{file.stem}.md"
    if run:
        ended = subprocess.run([sys.executable, __file__, "--tutorial", file, directory], env=environment, capture_output=True, text=True)
        if ended.returncode == 0:
            return True
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"make_site: {file.name} is shown without results: {last}", file=sys.stderr)
    page = [body if kind == "markdown" else f"```python\n{body}\n```" for kind, body in cells(file.read_text())]
    page.insert(1, "*Shown without results: it was not run when this page was made.*")
    target.write_text("\n\n".join(page) + "\n")
    return not run


def linked(page, text):
    """Names of pages in backticks become links to them."""
    def link(match):
        target = ROOT / match.group(1)
        return f"[`{match.group(1)}`]({os.path.relpath(target, page.parent)})" if target.exists() and target != page else match.group(0)
    blocks = re.split(r"(^```.*?^```|^ {4}[^\n]*$|\[[^\]]*\]\([^)]*\))", text, flags=re.M | re.S)
    return "".join(part if k % 2 else re.sub(r"`(docs/[\w./-]+\.md)`", link, part) for k, part in enumerate(blocks))


def stage_pages(stage):
    """Copies the pages and what they show or link to, at the places that they have in the repository. Names without suffix."""
    pages = [page for page in check_links.pages() if page.relative_to(ROOT).parts[0] != "src"]
    for page in pages:
        name = page.relative_to(ROOT)
        text = page.read_text()
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        for pattern in (check_links.LINK, check_links.IMAGE):
            for target in pattern.findall(text):
                file = (page.parent / target.partition("#")[0]).resolve()
                if file.is_file() and file not in pages and file.is_relative_to(ROOT):
                    copy = stage / file.relative_to(ROOT)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, copy)
        # In the site a tutorial is a page, and a folder is the page about it.
        text = re.sub(r"\]\((\w+)\.py\)", r"](\1.md)", text) if page.parent.name == "tutorials" else text
        (stage / name).write_text(linked(page, text))
    for page in [*stage.rglob("README.md")]:
        if page.relative_to(stage).parts[0] == "src":  # linked from a page
            text = re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", page.read_text())
            page.write_text("---\norphan: true\n---\n" + text)
    return [str(page.relative_to(ROOT).with_suffix("")) for page in pages]


def api_page():
    """The page of the Python package: every public name, classes behind the functions that give them."""
    import ryle
    functions = [name for name in ryle.__all__ if not isinstance(getattr(ryle, name), type) and callable(getattr(ryle, name))]
    classes = [name for name in ryle.__all__ if isinstance(getattr(ryle, name), type)]
    lines = ["# Python: every name", "", "`import ryle`; what it is for is on [the page about it](../docs/python.md).", ""]
    for title, names, directive in (("Functions", functions, "autofunction"), ("Classes", classes, "autoclass")):
        lines += [f"## {title}", "", "```{eval-rst}"]
        for name in names:
            lines += [f".. {directive}:: ryle.{name}", ""]
        lines += ["```", ""]
    lines += ["## Types", "", "```{eval-rst}"]
    for name in ryle.__all__:
        if name not in functions + classes:
            lines += [f".. py:data:: ryle.{name}", f"   :value: {getattr(ryle, name)!r}", ""]
    lines += ["```", "", "## Recordings to try", "", "```{eval-rst}", ".. automodule:: ryle.data", "   :no-members:", "",
              ".. autofunction:: ryle.data.fetch", "", ".. autofunction:: ryle.data.path", "", ".. autofunction:: ryle.data.folder", "",
              "```", ""]
    return "\n".join(lines)


def cpp_pages(place, output):
    """Pages of the C++ library by doxygen, in output/cpp; the text of the page that leads to them."""
    page = "# C++: every name\n\nWhat the library is for, and what of it stays, is on [the page about it](../docs/library.md).\n\n"
    if not shutil.which("doxygen"):
        return page + "doxygen was not installed where this site was made, so the list of names is not here.\n"
    engines = "\n".join(f"- ryle::{name}: @ref ryle/engine/{name}/{name}.hpp" for name in
                        ("channelize", "correlate", "image", "beamform", "search", "grid"))
    (place / "main.dox").write_text(f"/** @mainpage The C++ library\n<a href=\"../docs/library.html\">What it is for</a>. The engines:\n\n"
                                    f"{engines}\n*/\n")
    settings = DOXYGEN.replace("= OUTPUT", f"= {output}/cpp").replace("MAINPAGE", str(place / "main.dox"))
    settings += f"OUTPUT_DIRECTORY = {place}\nSTRIP_FROM_PATH = {ROOT}/src\n"
    output.mkdir(parents=True, exist_ok=True)
    subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT / "src/ryle", check=True)
    return page + "<a href=\"../cpp/index.html\">All classes, functions and files of the library</a>, with a search of their own.\n"


def toctree(title, names):
    """A table of contents of the side bar, which the front page does not repeat."""
    return "\n".join(["```{toctree}", ":hidden:", ":maxdepth: 1", f":caption: {title}", "", *names, "```", ""])


def list_page(title, about, names):
    """A page that leads to many: one line of the side bar."""
    return "\n".join([f"# {title}", "", about, "", "```{toctree}", ":maxdepth: 1", "", *(f"../{name}" for name in names), "```", ""])


def index_page(names):
    """The front page: README.md, then the tables of contents."""
    listed = {name for group in SECTIONS.values() for name in group} | {"README", "docs/tutorials/README"}
    parts = ["```{include} README.md", "```", "",
             toctree("Tutorials", ["docs/tutorials/README", *(f"docs/tutorials/{name}" for name in TUTORIALS)])]
    for title, group in SECTIONS.items():
        group = [name for name in group if name in names]
        parts.append(toctree(title, group + (["api/python", "api/cpp"] if title == "For programmers" else [])))
    parts.append(toctree("More", [name for name in names if name not in listed and not name.startswith(tuple(LISTS))] +
                         [f"lists/{pathlib.Path(folder).name}" for folder in LISTS]))
    return "\n".join(parts)


def replace(output, made):
    """Puts the site `made` at `output`: whole, or the old one stays. Pages that are gone would be found by a reader's search,
    so nothing is copied over an old site."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as beside:
        new, old = pathlib.Path(beside) / "new", pathlib.Path(beside) / "old"
        shutil.copytree(made, new)
        if output.exists():
            output.rename(old)
        try:
            new.rename(output)
        except OSError:
            if old.exists():
                old.rename(output)
            raise


def build(output, run, package):
    environment = dict(os.environ)
    if package:
        environment["PYTHONPATH"] = f"{package}{os.pathsep}{environment.get('PYTHONPATH', '')}"
        sys.path.insert(0, str(package))
    shared = ROOT.parent / "shared" / "data"
    if "RYLE_DATA" not in environment and shared.is_dir():
        environment["RYLE_DATA"] = str(shared)
    if output.exists() and any(output.iterdir()) and not (output / MARKER).exists():
        print(f"make_site: {output} holds something else than an earlier site (no {MARKER}); give another folder with -o, or remove it", file=sys.stderr)
        return 73
    with tempfile.TemporaryDirectory(prefix="ryle_site_") as place:
        stage, made = pathlib.Path(place) / "source", pathlib.Path(place) / "site"
        stage.mkdir()
        names = stage_pages(stage)
        for name in TUTORIALS:
            tutorial_page(ROOT / f"docs/tutorials/{name}.py", run in ("all", name), stage / "docs/tutorials", environment)
        (stage / "lists").mkdir()
        for folder, (title, about) in LISTS.items():
            page = list_page(title, about, sorted(name for name in names if name.startswith(folder)))
            (stage / f"lists/{pathlib.Path(folder).name}.md").write_text(page)
        (stage / "api").mkdir()
        (stage / "api/python.md").write_text(api_page())
        try:
            (stage / "api/cpp.md").write_text(cpp_pages(pathlib.Path(place), made))
        except subprocess.CalledProcessError:
            return 1
        (stage / "index.md").write_text(index_page(names))
        ended = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", ROOT / "docs",
                                "-d", f"{place}/doctrees", stage, made], env=environment)
        if ended.returncode != 0:
            return ended.returncode
        (made / MARKER).write_text("Made by scripts/make_site.py, which replaces this folder.\n")
        try:
            replace(output, made)
        except OSError as cause:
            print(f"make_site: {output} stays as it was: {cause}", file=sys.stderr)
            return 73
    print(f"{output}/index.html")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "build-check/site")
    parser.add_argument("--package", type=pathlib.Path, help="folder with the package ryle (default build-check/python, if it is there)")
    parser.add_argument("--run", default="all", metavar="NAME", help="tutorials to run: all, none or the name of one")
    parser.add_argument("--tutorial", nargs=2, type=pathlib.Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.tutorial:
        file, directory = asked.tutorial
        page = run_cells(file, directory)
        (directory / f"{file.stem}.md").write_text("\n\n".join(page) + "\n")
        return 0
    if asked.run not in ("all", "none", *TUTORIALS):
        parser.error(f"--run {asked.run}: use all, none or one of {', '.join(TUTORIALS)}")
    package = asked.package or (ROOT / "build-check/python")
    if not (package / "ryle").is_dir():
        package = None
    return build(asked.output.resolve(), asked.run, package)


if __name__ == "__main__":
    sys.exit(main())
