#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that tests can fail. Each tests/mutants/NUMBER-what.patch is a defect and names the test that must catch it.

  mutants.py --check [PATTERN...]       every patch applies to this tree and names a test (seconds)
  mutants.py [--share K/N] [PATTERN...] plants each defect beside a finished build and runs its test: killed or survived.
                                        PATTERN is a part of a patch's name ("09", "uvh5"); --share 1/2 takes every second.

The build (--build, build-check by default) must be up to date; it is not changed. Only files that hold or include the
changed text are compiled again. Their objects are linked before the libraries, where the linker takes the first definition
of a name. Where sources are compiled in groups, a function may have been inlined into its neighbours: a defect that
survives is planted once more with its whole group. Tests of the Python package run on a copy of it; where no C++ changes,
all tests run on a copy of the tree's files. Results are lines of OUT/results-K-of-N.txt."""

import argparse
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
LIMIT_S = 300
PACKAGE = "python/ryle"  # of the tree, and of the build that tests of Python import


def test_regex(patch):
    found = re.search(r"^# test-regex: (.+)$", patch.read_text(), re.MULTILINE)
    return found[1].strip() if found else ""


def check(patches):
    faults = 0
    for patch in patches:
        if subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, check=False).returncode:
            print(f"does not apply any more: {patch.name}")
            faults += 1
        if not test_regex(patch):
            print(f"names no test (# test-regex:): {patch.name}")
            faults += 1
    if faults == 0:
        print(f"mutants: {len(patches)} patches apply")
    return 1 if faults else 0


@functools.lru_cache(maxsize=None)
def included_by(path):
    """Files of this tree that a file includes, directly."""
    found = []
    for name in INCLUDE.findall(path.read_text(errors="replace")):
        for place in (ROOT / "src" / name, ROOT / name, path.parent / name):
            if place.exists():
                found.append(place.resolve())
                break
    return found


@functools.lru_cache(maxsize=None)
def closure(path):
    """The file and all that it includes."""
    seen, todo = set(), [path]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo += included_by(file)
    return seen


class Build:
    def __init__(self, folder):
        self.folder = folder
        listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, capture_output=True, text=True, check=True)
        self.tests = json.loads(listing.stdout)["tests"]
        self.compile = {}
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            self.compile[words[words.index("-o") + 1]] = words
        self.links = {}

    def matching(self, regex):
        return [t for t in self.tests if re.search(regex, t["name"]) and t.get("command")]

    def link(self, target):
        """(command that links the target, objects of its own, objects of the libraries of this tree)"""
        if target not in self.links:
            lines = subprocess.run(["ninja", "-t", "commands", target], cwd=self.folder, capture_output=True, text=True,
                                   check=True).stdout.splitlines()
            linked = [line for line in lines if re.search(rf" -o (\S*/)?{re.escape(target)} ", line)][-1]
            words = shlex.split(linked)
            words = words[words.index("&&") + 1:]
            if "&&" in words:
                words = words[:words.index("&&")]
            archived = []
            for line in lines:
                if " qc " in line and any(word in words for word in shlex.split(line) if word.endswith(".a")):
                    archived += [w for w in shlex.split(line) if w.endswith(".o")]
            self.links[target] = words, [w for w in words if w.endswith(".o")], archived
        return self.links[target]

    def sources(self, obj):
        """Files an object is compiled of: one, or those of a group."""
        source = pathlib.Path(self.compile[obj][-1])
        if "Unity" in source.parts:
            return [pathlib.Path(name).resolve() for name in INCLUDE.findall(source.read_text())]
        return [source.resolve()]

    def target_of(self, test, regex):
        """The name of the program that a test is about."""
        text = json.dumps(test)
        own = pathlib.Path(test["command"][0])
        if own.is_relative_to(self.folder):
            return [own.name]
        if test["name"].startswith("python."):
            return [path.name for path in (self.folder / PACKAGE).glob("_ryle*.so")]
        names = re.findall(rf"{re.escape(str(self.folder))}/[\w/.-]+", text)
        programs = [pathlib.Path(n).name for n in names if os.access(n, os.X_OK) and os.path.isfile(n)]
        return sorted(set(programs))


class Failure(Exception):
    pass


def compile_object(build, obj, sources, overlay, out, whole):
    """Compiles the sources of an object once more, as one where `whole`; files in the overlay come first."""
    words = [w for w in build.compile[obj] if not w.startswith("-W")]
    while words[0].endswith("ccache"):
        words = words[1:]
    base = words[:words.index("-o")]
    for option in ("-MT", "-MF", "-include"):
        while option in base:
            at = base.index(option)
            del base[at:at + 2]
    base = [w for w in base if w != "-MD"]
    base[1:1] = [f"-I{overlay}/src", f"-I{overlay}"]

    def text_of(source):
        planted = overlay / source.relative_to(ROOT) if source.is_relative_to(ROOT) else source
        return planted if planted.exists() else source

    made = []
    for group in ([sources] if whole else [[s] for s in sources]):
        unit = out / f"unit{len(list(out.glob('unit*.cpp')))}.cpp"
        unit.write_text("".join(f'#include "{text_of(s)}"\n' for s in group))
        target = unit.with_suffix(".o")
        done = subprocess.run([*base, "-w", "-o", str(target), "-c", str(unit)], cwd=build.folder, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise Failure("does not build\n" + done.stderr[-3000:])
        made.append(str(target))
    return made


def plant(build, patch, target, overlay, changed, out, whole):
    """The program with the defect; None where nothing in it has the changed text."""
    words, own, archived = build.link(target)
    before, replaced = [], {}
    for obj in [*own, *archived]:
        if obj not in build.compile:
            continue
        sources = build.sources(obj)
        touched = [s for s in sources if closure(s) & changed]
        if not touched:
            continue
        if obj in own:  # of the program itself: in the place of the one that was
            replaced[obj] = compile_object(build, obj, sources, overlay, out, True)[0]
        else:
            all_of_it = whole or len(touched) > 6
            before += compile_object(build, obj, sources if all_of_it else touched, overlay, out, all_of_it)
    if not before and not replaced:
        return None
    program = out / target
    words = [replaced.get(w, w) for w in words]
    at = words.index("-o")
    words[at + 1] = str(program)
    words[1:1] = [*before, "-Wl,-z,muldefs"]
    done = subprocess.run(words, cwd=build.folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure("does not link\n" + done.stderr[-3000:])
    return program


def fails(tests, programs):
    """The first test that fails with these programs in the place of others: its name, or None."""
    def swapped(word):
        for old, new in programs.items():
            word = word.replace(old, str(new))
        return word

    for test in tests:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        env = {"RYLE_DATA": str(ROOT.parent / "shared/data"), **os.environ}
        for pair in properties.get("ENVIRONMENT", []):
            name, _, value = pair.partition("=")
            env[name] = swapped(value)
        try:
            done = subprocess.run([swapped(w) for w in test["command"]], cwd=properties.get("WORKING_DIRECTORY"), env=env,
                                  capture_output=True, text=True, timeout=LIMIT_S, errors="replace", check=False)
        except subprocess.TimeoutExpired:
            return test["name"] + f" (no end within {LIMIT_S} s)"
        output = done.stdout + done.stderr
        if done.returncode or any(re.search(r, output) for r in properties.get("FAIL_REGULAR_EXPRESSION", [])):
            return test["name"]
    return None


def copied(build, names, out):
    """Copies of the tree's files and of the Python package: {folder there: folder of the copy}."""
    package = out / PACKAGE
    shutil.copytree(build.folder / PACKAGE, package)
    folders = {str(build.folder / "python"): package.parent}
    if not any(name.endswith((".cpp", ".hpp", ".inl")) for name in names):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            (out / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, out / "tree" / name)
        folders[f"{ROOT}/tests"] = out / "tree/tests"
    return folders


def run(build, patch, out):
    regex = test_regex(patch)
    tests = build.matching(regex)
    if re.match(r"\^?(cuda|cuda_chain)\b", regex) and not shutil.which("nvidia-smi"):
        return "no GPU"
    if not tests:
        return f"BROKEN: no test {regex}"
    overlay, names = out / "overlay", re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)
    for name in names:
        (overlay / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, overlay / name)
    subprocess.run(["patch", "-sp1", "-d", str(overlay), "-i", str(patch)], check=True)
    changed = {(ROOT / name).resolve() for name in names}
    targets = sorted({t for test in tests for t in build.target_of(test, regex)})
    of_python = tests[0]["name"].startswith("python.")
    folders = copied(build, names, out) if of_python else {}
    no_code = f"{ROOT}/tests" in folders
    if no_code:  # a copy may lack what a test needs
        failed = fails(tests, folders)
        if failed:
            return f"BROKEN: {failed} fails in a copy without the defect"
    for name in names if of_python else []:
        for copy in (out / "tree" / name, out / name):
            if copy.exists():
                shutil.copy(overlay / name, copy)
    for whole in ((True,) if no_code else (False, True)):
        programs = dict(folders)
        try:
            for target in [] if no_code else targets:
                words, _, _ = build.link(target)
                program = plant(build, patch, target, overlay, changed, out, whole)
                if program and of_python:
                    shutil.move(program, out / PACKAGE / target)
                    programs[target] = target
                elif program:
                    programs[str(build.folder / words[words.index("-o") + 1])] = program
        except Failure as failure:
            return f"BROKEN: {failure}"
        if not programs or (of_python and len(programs) == len(folders) and not no_code):
            return "BROKEN: no program that a test runs has this text"
        failed = fails(tests, programs)
        if failed:
            return f"killed by {failed}"
    return f"SURVIVED {regex}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--share", default="1/1", metavar="K/N")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-check")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-mutants")
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    patches = [p for p in sorted((ROOT / "tests/mutants").glob("*.patch"))
               if not arguments.patterns or any(word in p.name for word in arguments.patterns)]
    if arguments.check:
        return check(patches)
    k, n = (int(word) for word in arguments.share.split("/"))
    patches = [p for at, p in enumerate(patches) if at % n == k % n]
    build, counts = Build(arguments.build.resolve()), {}
    arguments.out.mkdir(parents=True, exist_ok=True)
    out = arguments.out.resolve() / f"work-{k}-of-{n}"
    with open(arguments.out / f"results-{k}-of-{n}.txt", "w", buffering=1) as results:
        for patch in patches:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            result = run(build, patch, out)
            verdict = result.split()[0].rstrip(":")
            counts[verdict] = counts.get(verdict, 0) + 1
            print(f"{patch.stem}: {result}", file=results)
            print(f"{patch.stem}: {result.splitlines()[0]}", flush=True)
    print("mutants: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if counts.get("SURVIVED") or counts.get("BROKEN") else 0


if __name__ == "__main__":
    sys.exit(main())
