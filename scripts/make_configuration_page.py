#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/configuration.md from `ryle info --schema`, so that the page cannot disagree with the parser.

    scripts/make_configuration_page.py build/apps/ryle/ryle [--check]
"""

import json
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "configuration.md"


def allowed(key):
    if "enum" in key:
        return ", ".join(f"`{w}`" for w in key["enum"])
    if key["type"] == "array":
        return "list of " + ("text" if key["items"]["type"] == "string" else key["items"]["type"])
    if "minimum" in key:
        return f"{key['minimum']:g} .. {key['maximum']:g}"
    if isinstance(key["type"], list):
        return "number, or a ratio such as `\"78125/4\"`"
    return {"boolean": "`true`, `false`", "string": "text"}[key["type"]]


def default(key):
    return f"`{json.dumps(key['default'])}`" if "default" in key else ""


def table(properties):
    lines = ["| key | default | allowed | meaning |", "|---|---|---|---|"]
    for name, key in properties.items():
        if name in ("source", "packet"):
            continue
        option = f" `{key['x-option']}`" if "x-option" in key else ""
        lines.append(f"| `{name}`{option} | {default(key)} | {allowed(key)} | {key['description']} |")
    return "\n".join(lines)


def packet_tables(packet):
    text = ["### [source.packet]", "",
            "The layout of datagrams of `format = \"described\"`, see [bring_up.md](bring_up.md). `packet = \"FILE.toml\"` in "
            "`[source]` takes these keys from a file of their own.", ""]
    keys = packet["properties"]
    for title, properties in ((None, keys), ("header", keys["header"]["items"]["properties"]),
                              ("payload", keys["payload"]["properties"])):
        if title:
            text += [f"Keys of `{title}`:", ""]
        text += ["| key | allowed | meaning |", "|---|---|---|"]
        text += [f"| `{name}` | {key['x-allowed']} | {key['description']} |" for name, key in properties.items()]
        text += [""]
    return text


def page(schema):
    text = ["# The observation file", "",
            "TOML, strict: an unknown key, a wrong type or a value out of range is an error with file, line, column and the "
            "nearest key that exists. The unit is part of the key. Any key can be changed on the command line: "
            "`--set section.key=value`. `ryle run FILE --print-config` prints every key with its value. Keys of `[search]`, `[image]` "
            "and `[beams]` with an option beside them are that option of `ryle search`, `ryle image` and `ryle beamform`, with "
            "the same default; those of `[telescope]`, `[source]`, `[channelize]`, `[output]` and `[runtime]` are options of the "
            "commands that read recordings of voltages, those of `[correlate]` and how `[channelize]` requantizes of `ryle correlate`, those of "
            "`[calibrate]` of `ryle calibrate`: runs take none of them.", "",
            "This page is made by `scripts/make_configuration_page.py` from the parser's own list of keys.", ""]
    for name, section in schema["properties"].items():
        if "properties" not in section:
            continue
        text += [f"## [{name}]", "", table(section["properties"]), ""]
        if "packet" in section["properties"]:
            text += packet_tables(section["properties"]["packet"])
        source = section["properties"].get("source")
        if isinstance(source, dict) and source.get("type") == "array":
            text += ["### [[simulator.source]]", "", table(source["items"]["properties"]), ""]
    return "\n".join(text)


def main():
    schema = json.loads(subprocess.run([sys.argv[1], "info", "--schema"], check=True, capture_output=True).stdout)
    new = page(schema)
    if "--check" in sys.argv:
        if PAGE.read_text() != new:
            sys.exit("docs/configuration.md is out of date: run scripts/make_configuration_page.py build/apps/ryle/ryle")
        return
    PAGE.write_text(new)


if __name__ == "__main__":
    main()
