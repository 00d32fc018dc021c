#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pages libbtrkit(3) and btrkit-format(5) must have exactly what is generated from the headers and the schemas.
Usage: pages.py ROOT [--write]; --write generates these parts of the pages again."""
import json
import pathlib
import re
import sys

import common

LIBRARY = "libbtrkit.3", r"(?<=\n# FUNCTIONS\n\n).*?(?=# EXAMPLE\n)"
FORMAT = "btrkit-format.5", r"(?<=\n# SCHEMAS\n\n).*?(?=# SEE ALSO\n)"
NUMBERS = {"u64": "number", "s64": "signed number"}


def escaped(text):
    return re.sub(r"([_*\\#])", r"\\\1", text.replace("`", ""))


def first_sentence(comment):
    """Return the first sentence of a comment in one line, up to the first full stop or colon."""
    text = " ".join(line.strip().removeprefix("*").strip() for line in comment.strip().split("\n"))
    text = re.sub(r"@(?:p|c|ref) |#(?=BTRKIT)", "", re.split(r" (?:@param|@return|Since:) ?", text)[0])
    text = re.split(r"[.:](?: |$)", text, maxsplit=1)[0]
    if text.count("(") > text.count(")"):
        text = text[:text.rindex(" (")]
    return text + "."


def headers(root):
    """Yield a section for each header, with a paragraph for each function."""
    by_header = {}
    for f in common.functions(root):
        by_header.setdefault(f.header, []).append(f)
    for header, functions in sorted(by_header.items()):
        text = (pathlib.Path(root) / header).read_text()
        about = first_sentence(re.search(r"/\*\*\n \* @file\n(.*?)\*/", text, flags=re.S).group(1))
        yield f"## btrkit/{pathlib.Path(header).name}\n\n{escaped(about)}\n\n"
        for f in functions:
            yield f"*{escaped(f.name)}*()\n\t{escaped(first_sentence(f.comment))}\n\n"


def resolve(schema, part):
    """Return a part merged with the definition that it refers to, which it may override, and the name of that."""
    name = None
    while "$ref" in part:
        where, rest = part["$ref"].split("/")[1:], {k: v for k, v in part.items() if k != "$ref"}
        found = schema
        for step in where:
            found = found[step]
        name, part = where[-1], {**found, **rest}
    return part, name


def kind_of(part, name):
    if name in NUMBERS:
        return NUMBERS[name]
    if "const" in part:
        return f"\"{part['const']}\"" if isinstance(part["const"], str) else str(part["const"])
    if "enum" in part:
        return " or ".join(f'"{value}"' for value in part["enum"])
    return {"integer": "number", "array": "array", "object": "object", "boolean": "boolean",
            "string": "string"}.get(part.get("type"), "any")


def members(schema, part, path=""):
    """Yield (path, type, description) of all members below; an array is described by its elements."""
    part, _ = resolve(schema, part)
    if "items" in part:
        yield from members(schema, part["items"], path)
    for name, value in part.get("properties", {}).items():
        inner, ref = resolve(schema, value)
        optional = "" if name in part.get("required", ()) else ", optional"
        yield path + name, kind_of(inner, ref) + optional, inner.get("description")
        yield from members(schema, value, f"{path}{name}.")


def paragraphs(schema, part, path=""):
    """Yield a paragraph for each member; members without a description share one."""
    plain = []
    for name, kind, words in members(schema, part, path):
        if words:
            yield f"*{escaped(name)}* ({escaped(kind)})\n\t{escaped(words)}\n\n"
        else:
            plain.append(f"*{escaped(name)}* ({escaped(kind)})")
    if plain:
        yield ", ".join(plain) + "\n\n"


def schemas(root):
    """Yield a section for each schema, with the kinds of lines and their members."""
    for path, _ in common.files(root, "schema/*.json"):
        schema = json.loads(path.read_text())
        yield f"## {path.name.removesuffix('.schema.json')}\n\n"
        yield f"{escaped(schema['title'])}. {escaped(schema['description'])}\n\n"
        for name, line in schema["$defs"]["lines"].items():
            words = line.get("description")
            yield f"Kind _{escaped(name)}_{': ' + escaped(words) if words else ''}\n\n"
            yield from paragraphs(schema, line)
        for name, item in schema["$defs"].get("items", {}).items():
            found = "".join(paragraphs(schema, item, "item."))
            yield f"Member _item_ of items of type {escaped(name)}:\n\n{found}" if found else ""




def main(root, *how):
    problems, said = [], 0
    for (name, place), made in ((LIBRARY, "".join(headers(root))), (FORMAT, "".join(schemas(root)))):
        page = pathlib.Path(root) / f"man/{name}.scd"
        text = page.read_text() if page.exists() else ""
        if how == ("--write",):
            text = re.sub(place, lambda _, made=made: made, text, flags=re.S)
            page.write_text(text)
        said += made.count("\n\n")
        if re.findall(place, text, flags=re.S) != [made]:
            problems.append(f"man/{name}.scd: says something else than what it is made from: run this with --write")
    common.verdict("pages", said, "paragraphs", problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
