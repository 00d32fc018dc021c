#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each lint must pass on a clean tree, and fail on each planted fault. Usage: selftest.py CC..."""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
C = "// SPDX-License-Identifier: LGPL-2.1-or-later\n"
H = "/* SPDX-License-Identifier: LGPL-2.1-or-later */\n"
SYMBOLS = "V {\nglobal:\n\tbtrkit_a;\nlocal:\n\t*;\n};\n"

CLEAN = {
    "include/btrkit/a.h": H + "#include <stdint.h>\n#define BTRKIT_A(x) \\\n\tbad(x)\n"
                              "typedef int (*btrkit_fn)(void *);\n/** A. @param a b @return 0. Since: 0.1 */\n"
                              "int btrkit_a(uint32_t a);\n/** S. Since: 0.1 */\nstruct btrkit_s {\n\tint a[2];\n};\n",
    "tests/lint/abi.txt": "struct btrkit_s 8\n\ta 0 8\n",
    "lib/libbtrkit.sym": SYMBOLS,
    "lib/README.md": "### lib/io: it\n\n- `*.c`: all\n",
    "lib/base/b.h": H + "#include <stdint.h>\nstatic inline uint32_t b(void)\n{\n\treturn 1;\n}\n",
    "lib/io/c.c": C + '#include <btrkit/a.h>\n#include <fcntl.h>\n\n#include "config.h"\n#include "lib/base/b.h"\n'
                      "int btrkit_a(uint32_t a)\n{\n\treturn ioctl(0, BLKGETSIZE64, &a);\n}\n",
    "cmd/d.c": C + '#include <btrkit/a.h>\n#include <stdio.h>\n\n#include "cmd/d.h"\n/* not an ioctl(fd, FIEMAP) */\n',
    "cmd/d.h": H,
    "config.h": "#define HAVE_X\n#define HAVE_Y\n",
}

# A source file with optional parts.
OPTIONAL = "=" + C + '#include "config.h"\nint a(int n)\n{\n\tint ret = 0;\n\t%s\n\treturn ret + n;\n}\n'

# Lint, file, text to append (or, after "=", to replace it with), part of the expected message; None: it must pass.
PLANTED = [
    ("layers", "lib/base/b.h", '#include "lib/io/c.h"\n', "lib/base lies below lib/io"),
    ("layers", "lib/base/b.h", "#include <unistd.h>\n", "does no I/O"),
    ("layers", "lib/base/b.h", "int above(int a,\n\t  int b) BTRKIT_PRINTF(1, 2);\n",
     "declares above(), which lib/base does not define"),
    ("layers", "lib/io/c.c", "int (within)(void)\n{\n\treturn 0;\n}\n", None),
    ("layers", "lib/io/c.c", '#include "c.h"\n', "written from the root"),
    ("layers", "lib/io/c.c", '#include "cmd/d.h"\n', "written from the root"),
    ("layers", "lib/io/c.c", "#  include <sys/mount.h>\n", "nothing here uses that"),
    ("layers", "lib/misc/e.c", "=" + C + "#include <stdio.h>\n", "lib/misc is no layer"),
    ("layers", "cmd/d.c", '#include "lib/base/b.h"\n', "cmd/ includes only"),
    ("layers", "cmd/d.c", '#include "config.h"\n', "cmd/ includes only"),
    ("layers", "cmd/d.c", '#include "lib/print/p.h"\n', None),
    ("layers", "lib/print/p.c", '#include "lib/io/c.h"\n', "lib/print includes only"),
    ("layers", "lib/print/p.h", '#include "lib/base/b.h"\n', None),
    ("layers", "include/btrkit/a.h", "#include <linux/btrfs.h>\n", "nothing here uses that"),
    ("layers", "include/btrkit/a.h", "#include <stdio.h>\n", "a public header includes only"),
    ("layers", "lib/base/f.c", "=" + C, "nothing of lib/base/f.c"),
    ("layers", "lib/README.md", "- `g.c`\n", "there is no g.c in lib/io"),
    ("words", "lib/io/c.c", "/* Return it. */\n", "in the third person"),
    ("words", "lib/io/c.c", "/*\n * Find it.\n */\n", "in the third person"),
    ("words", "lib/io/c.c", "/* Returns it. */\n/* Number of it. */\n", None),
    ("words", "lib/base/b.h", "/* The same for d. */\n", "say what it is like"),
    ("words", "lib/io/c.c", "static int file_judge;\n", "file_judge: say check"),
    ("words", "lib/io/c.c", "int op_begin_alone(void);\n", "say exclusive"),
    ("words", "lib/io/c.c", "int standalone, judgement_day;\n", None),
    ("homes", "lib/base/b.h", "int elsewhere(void);\n", None),
    ("homes", "lib/io/e.h", H + "int btrkit_a(uint32_t a);\n", "btrkit_a() is defined in c.c"),
    ("homes", "lib/io/e.h", H + "/* In c.c: */\nint btrkit_a(uint32_t a);\n", None),
    ("homes", "lib/io/e.h", H + "/* c.c: it. */\nint btrkit_a(uint32_t a);\n", None),
    ("homes", "lib/io/e.h", H + "/* c.c: it. */\n#define X 1\nint btrkit_a(uint32_t a);\n", "defined in c.c"),
    ("homes", "lib/io/c.h", H + "/* In d.c: */\nint btrkit_a(uint32_t a);\n", "defined in c.c"),
    ("homes", "lib/io/c.h", H + "int btrkit_a(uint32_t a);\n", None),
    ("sources", "lib/base/b.h", "#ifndef BTRKIT_BASE_OTHER_H\n", "BTRKIT_BASE_OTHER_H does not end with the name"),
    ("sources", "lib/base/b.h", "#ifndef BTRKIT_BASE_B_H\n", None),
    ("sources", "lib/io/c.c", "int x;\n" * 600, "more than 600 lines"),
    ("sources", "cmd/d.c", "int x;\n" * 300, "more than 300 lines"),
    ("sources", "lib/io/c.c", "void f(void)\n{\n" + "\tg();\n" * 99 + "}\n", "a function of 101 lines"),
    ("sources", "lib/io/c.c", "/* TO" "DO: more */\n", "later"),
    ("sources", "include/d.h", C + "/*\n" + "<" * 7 + " HEAD\n */\n", "the mark of a conflict"),
    ("sources", "lib/io/c.c", "\t" * 15 + "x\n", "more than 120 columns"),
    ("sources", "lib/io/c.c", "int x; \n", "white space"),
    ("sources", "lib/io/c.c", "int x;", "no newline"),
    ("sources", "lib/io/c.c", "=int x;\n", "the first line must be"),
    ("sources", "cmd/d.h", "=" + C, "the first line must be"),
    ("sources", "tests/x.py", "=pass\n", "no licence line"),
    ("sources", "lib/io/e.js", "=let x;\n", "no licence line"),
    ("sources", "lib/io/e.css", "=" + C + "a { b: c }\n" * 600, "more than 600 lines"),
    ("sources", "lib/io/e.html", "=" + C + "<p>" * 50 + "\n", "more than 120 columns"),
    ("sources", "lib/io/c.c", "int x = ioctl(\n\tfd, FIFREEZE, 0);\n", "ioctl FIFREEZE"),
    ("sources", "cmd/d.c", "int x = FS_IOC_FIEMAP;\n", "an ioctl of a filesystem"),
    ("optional", "lib/base/g.c", OPTIONAL % "\n#ifdef HAVE_X\n\tret = 1;\n#endif\n", None),
    ("optional", "lib/base/g.c", OPTIONAL % "\n#ifndef HAVE_X\n\tint left;\n#endif\n",
     "lib/base/g.c without HAVE_X: "),
    ("optional", "lib/base/g.c", OPTIONAL % "\n#if !defined(HAVE_X) && !defined(HAVE_Y)\n\tret = none;\n#endif\n",
     "lib/base/g.c without HAVE_X, HAVE_Y: "),
    ("headers", "include/btrkit/a.h", "size_t btrkit_b(void);\n", "does not compile alone as C11"),
    ("headers", "lib/base/b.h", "struct x c(bool y);\n", "does not compile alone as C"),
    ("headers", "include/btrkit/a.h", "struct btrkit_b { int a, b; };\n#define BTRKIT_B_INIT { .c = 0 }\n",
     "what the macros initialise does not compile as C99"),
    ("api", "include/btrkit/a.h", "int btrkit_b(void);\n", "btrkit_b has no comment"),
    ("api", "include/btrkit/a.h", "/** B. @return 0. */\nint btrkit_b(void);\n", "does not end with Since:"),
    ("api", "include/btrkit/a.h", "/** B. Since: 0.1 */\nint btrkit_b(void);\n", "has no @return"),
    ("api", "include/btrkit/a.h", "/** B. Since: 0.1 */\nvoid btrkit_b(int a, char *c);\n", "does not tell of c"),
    ("api", "include/btrkit/a.h", "/** As btrkit_a() @p c. Since: 0.1 */\nvoid btrkit_b(int a, char *c);\n", None),
    ("api", "include/btrkit/btrkit.h", "/**\n * - @c c, @c d: C.\n */\n/** B. Since: 0.1 */\nvoid btrkit_b(int d);\n",
     None),
    ("api", "include/btrkit/a.h", "/** B. @p t Since: 0.1 */\nvoid btrkit_b(struct btrkit_txn *t);\n",
     "does not begin with btrkit_txn_"),
    ("api", "include/btrkit/a.h", "/** B. Since: 0.1 */\nstruct btrkit_t {\n\tint a;\n};\n/** C. @p s Since: 0.1 */\n"
     "void btrkit_c(const struct btrkit_t *s);\n", "does not end with reserved members"),
    ("api", "tests/unit/u.c", "=" + C + "/* btrkit_a() */\n", None),
    ("api", "tests/unit/u.c", "=" + C + "int btrkit_ab;\n", "no test in tests/unit calls btrkit_a"),
    ("api", "include/btrkit/a.h", "/** B. */\nstruct btrkit_t {\n\tint a;\n};\n", "its comment has no Since:"),
    ("abi", "include/btrkit/a.h", "struct btrkit_t {\n\tint (*f)(int g, int h);\n\tchar *g, h[3];\n};\n",
     "+\th 16 3"),
    ("abi", "include/btrkit/a.h", "enum btrkit_e { BTRKIT_E };\n", "+BTRKIT_E 0"),
    ("abi", "include/btrkit/a.h", "#define BTRKIT_D 0x10\n", "+BTRKIT_D 16"),
    ("abi", "tests/lint/abi.txt", "=struct btrkit_s 8\n\ta 4 8\n", "-\ta 4 8"),
    ("names", "include/btrkit/a.h", "int btrkit_b(void);\n", "add the line '\tbtrkit_b;'"),
    ("names", "include/btrkit/a.h", "int other(void);\n", "does not begin with btrkit_"),
    ("names", "lib/libbtrkit.sym", "=" + SYMBOLS.replace("_a;", "_a;\n\tbtrkit_z;"),
     "btrkit_z is declared in no header"),
    ("names", "lib/libbtrkit.sym", "=" + SYMBOLS.replace("_a;", "_*;"), "add the line '\tbtrkit_a;'"),
]

BINARY = """#!/bin/sh
case $1$2 in
--help) echo "  ls   lists"; echo "  check   checks"; echo "      --help  help" ;;
check--list-codes) echo "BTR-A refused: what is A_B" ;;
ls*) echo "  -a, --all  all"; echo "      --one N  one" ;;
esac
"""
MANUAL = {
    "man/btrkit.8.scd": "*btrkit-ls*(8)\n*btrkit-check*(8)\n*--help*\n",
    "man/btrkit-check.8.scd": "\n# CODES\n\n*BTR-A* (refused)\n\tWhat is A\\_B.\n\n# EXIT STATUS\n",
    "man/btrkit-ls.8.scd": "*-a*, *--all*\n*--one* _N_\n",
    "man/meson.build": "'btrkit.8' 'btrkit-ls.8' 'btrkit-check.8'",
}

# A file of the manual, its new contents, part of the expected message; None: it must pass.
MISWRITTEN = [
    ("man/meson.build", MANUAL["man/meson.build"], None),
    ("man/btrkit-ls.8.scd", "*-a*, *--all*\n", "--one has no paragraph"),
    ("man/btrkit-ls.8.scd", MANUAL["man/btrkit-ls.8.scd"] + "*--two*\n", "--two is no option"),
    ("man/btrkit-rm.8.scd", "", "there is no such command"),
    ("man/btrkit.8.scd", "*btrkit-check*(8)\n*--help*\n", "does not list *btrkit-ls*(8)"),
    ("man/btrkit-check.8.scd", MANUAL["man/btrkit-check.8.scd"].replace("refused", "leftover"), "has other codes"),
    ("man/btrkit-check.8.scd", MANUAL["man/btrkit-check.8.scd"].replace("# CODES", "# CODE"), "has other codes"),
    ("man/meson.build", "'btrkit.8' 'btrkit-check.8'", "btrkit-ls.8 is not built"),
]

PAGES = {
    "include/btrkit/a.h": H + "/**\n * @file\n * All of it. And more.\n */\n" + CLEAN["include/btrkit/a.h"][len(H):],
    "schema/a.schema.json": '{"title": "T", "description": "D", "$defs": {"lines": {"l": {"properties": {"m": {}}}}}}',
    "man/libbtrkit.3.scd": "\n# FUNCTIONS\n\n# EXAMPLE\n",
    "man/btrkit-format.5.scd": "\n# SCHEMAS\n\n# SEE ALSO\n",
}

# A page or a file that it is generated from, text to append (or, after "=", to replace it with), expected message.
OUTDATED = [
    ("include/btrkit/a.h", "", None),
    ("include/btrkit/a.h", "/** B. */\nvoid btrkit_b(void);\n", "man/libbtrkit.3.scd: says something else"),
    ("schema/a.schema.json", "=" + PAGES["schema/a.schema.json"].replace('"m": {}', '"m": {}, "n": {}'),
     "man/btrkit-format.5.scd: says something else"),
    ("man/btrkit-format.5.scd", "=\n# SCHEMAS\n\n*m*\n\n# SEE ALSO\n", "man/btrkit-format.5.scd: says something else"),
]

# Lint, source of a library, part of the expected message; None: it must pass.
BUILT = [
    ("exports", "int btrkit_a(void) { return 0; }", None),
    ("exports", "int btrkit_a(void) { return 0; } int extra(void) { return 0; }", "exports extra, which no header"),
    ("exports", "int btrkit_b(void) { return 0; }", "btrkit_a is declared in include/btrkit/a.h and not exported"),
    ("imports library", "int memcmp(); int snprintf(); int a(void) { return memcmp() + snprintf(); }", None),
    ("imports library", "int puts(); int a(void) { return puts(); }", "imports puts"),
    ("imports library", "int __printf_chk(); int a(void) { return __printf_chk(); }", "imports __printf_chk"),
    ("imports library", "void abort(void); void a(void) { abort(); }", "imports abort"),
    ("imports library", "extern void *stderr; void *a(void) { return stderr; }", "imports stderr"),
    ("imports library", "#include <assert.h>\nvoid a(int x) { assert(x); }", "imports __assert_fail"),
    ("imports binary", "int puts(); int a(void) { return puts(); }", None),
    ("imports binary", "int execvp(); int a(void) { return execvp(); }", "imports execvp"),
    ("data", "static const char *const t[] = { \"a\" }; const char *a(int i) { return t[i]; }", None),
    ("data", "static int n; int a(void) { return n++; }", "n (4 bytes in .bss) is data that can change"),
    ("data", "static int n = 3; int a(void) { return n++; }", "n (4 bytes in .data)"),
    ("data", "static __thread int n; int a(void) { return n++; }", "n (4 bytes in .tbss)"),
    ("data", "int a(void) { static long calls; return calls++; }", "is data that can change"),
]


def plant(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith("="):
        file.write_text(text[1:])
    else:
        file.write_text((file.read_text() if file.exists() else "") + text)


def command(lint, root, compiler, library):
    name, *rest = lint.split()
    if name in ("layers", "sources", "words", "homes", "api", "pages"):
        arguments = [f"{name}.py", root]
    elif name == "man":
        arguments = ["man.py", root, root / "btrkit"]
    elif name == "optional":
        arguments = ["optional.py", root, root]
    elif name == "headers":
        arguments = ["headers.py", root, root, *compiler]
    elif name == "abi":
        arguments = ["abi.py", root, *compiler]
    else:
        arguments = ["symbols.py", name, *rest, *([] if name in ("imports", "data") else [root]), *library]
    return [sys.executable, str(HERE / arguments[0]), *map(str, arguments[1:])]


def check(what, lint, root, complaint, compiler, library=()):
    run = subprocess.run(command(lint, root, compiler, library), capture_output=True, text=True, check=False)
    good = run.returncode == 0 if complaint is None else run.returncode == 1 and complaint in run.stdout
    if not good:
        print(f"{lint}: {what}: wanted {complaint!r}, exit {run.returncode}:\n{run.stdout}{run.stderr}")
    return good


def main(compiler):
    results = []
    for lint, path, text, complaint in [(lint, "cmd/d.h", "", None) for lint in
                                        ("layers", "sources", "headers", "api", "abi", "names")] + PLANTED:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, content in CLEAN.items():
                plant(root, name, content)
            plant(root, path, text)
            plant(root, "compile_commands.json", json.dumps([{
                "directory": directory, "file": path,
                "command": shlex.join([*compiler, "-Wall", "-Wextra", "-MD", "-o", "x.o", "-c", path])}]))
            results.append(check(f"{path}: {text[:60]!r}", lint, root, complaint, compiler))
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, content in CLEAN.items():
            plant(root, name, content)
        for lint, source, complaint in BUILT:
            library = root / "lib.so"
            subprocess.run([*compiler, "-w", "-O1", "-fno-builtin", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
                           input=source + "\n", text=True, check=True)
            results.append(check(repr(source), lint, root, complaint, compiler, [library]))
    for path, text, complaint in MISWRITTEN:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, content in {**MANUAL, path: text, "btrkit": BINARY}.items():
                plant(root, name, "=" + content)
            (root / "btrkit").chmod(0o755)
            results.append(check(f"{path}: {text!r}", "man", root, complaint, compiler))
    for path, text, complaint in OUTDATED:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, content in PAGES.items():
                plant(root, name, "=" + content)
            subprocess.run([*command("pages", root, compiler, ()), "--write"], capture_output=True, check=True)
            plant(root, path, text)
            results.append(check(f"{path}: {text!r}", "pages", root, complaint, compiler))
    with tempfile.TemporaryDirectory() as directory:
        for lint in ("layers", "sources", "headers", "api"):
            good = subprocess.run(command(lint, directory, compiler, ()), capture_output=True, check=False).returncode
            results.append(good == 1)
    print(f"selftest: {results.count(True)} of {len(results)} as wanted")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
