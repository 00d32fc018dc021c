#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the page from its parts, and generates C with its two halves, between which the data goes. The page has a
policy with the digests of its style and scripts, so that the browser runs no others, whatever the data contains.

Usage: embed.py OUTPUT PAGE.html PAGE.css SCRIPT.js..."""
import base64
import hashlib
import pathlib
import sys


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def array(name, text):
    data = text.encode()
    lines = [''.join(f'{byte},' for byte in data[i:i + 32]) for i in range(0, len(data), 32)]
    return f'const uint8_t {name}[] = {{\n' + '\n'.join(lines) + f'\n}};\nconst size_t {name}_size = sizeof({name});\n'


def put(page, place, text):
    assert page.count(place) == 1, place
    return page.replace(place, text)


def main(output, page, style, *scripts):
    page, style, *scripts = (pathlib.Path(path).read_text(encoding='utf-8') for path in (page, style, *scripts))
    script = "'use strict';\n(() => {\n" + ''.join(scripts) + '})();\n'
    assert '</' not in style + script, 'the end of an element'
    style = '\n' + style
    for place, text in (('@STYLE_HASH@', digest(style)), ('@SCRIPT_HASH@', digest(script)), ('@STYLE@', style),
                        ('@SCRIPT@', script)):
        page = put(page, place, text)
    head, tail = page.split('@DATA@')
    pathlib.Path(output).write_text('/* SPDX-License-Identifier: LGPL-2.1-or-later */\n/* Made by embed.py. */\n'
                                    '#include "lib/print/usage_html.h"\n\n' +
                                    array('usage_html_head', head) + array('usage_html_tail', tail), encoding='ascii')


main(*sys.argv[1:])
