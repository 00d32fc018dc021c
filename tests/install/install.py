#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Installs into a directory, checks what is there, builds the examples with pkg-config from the installed files only,
and runs them.

Usage: install.py ROOT BUILD CC... [--cxx CXX...]"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LISTED = ('good-clones', 'good-compressed', 'good-holes', 'good-default', 'good-generations')
COMPRESSED = '''\
sets:
5: 36864 bytes
files:
lzo-large: 307200 bytes
zlib-large: 385024 bytes
zstd-large: 385024 bytes
clone: 131072 bytes
freed: 36864 bytes
'''
USER = '''
#include <btrkit/btrkit.h>
#include <cstdio>
int main(int, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_options options = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_open_options how = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_dump_options what = BTRKIT_DUMP_OPTIONS_INIT;
	struct btrkit_io *io;
	struct btrkit_fs *fs;
	auto nothing = [](void *, const void *, size_t) { return 0; };
	(void)argv;
	if (btrkit_io_memory(128 << 20, &io, &err) || btrkit_mkfs(&io, 1, &options, nullptr, &err) ||
	    btrkit_fs_open(&io, 1, &how, &fs, &err) || btrkit_dump_tree(fs, &what, nothing, nullptr, &err))
		return 1;
	btrkit_fs_close(fs);
	return std::puts(btrkit_version()) < 0;
}
'''
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f'install: {what}')


def run(*args, env=None, wanted=0, cwd=None):
    done = subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, cwd=cwd,
                          env=dict(os.environ, **(env or {})))
    out, err = done.stdout.decode(), done.stderr.decode()
    check(done.returncode == wanted, f'{" ".join(map(str, args))}: exit {done.returncode}: {out}{err}')
    return out if not wanted else err


def only(folder, pattern):
    found = list(folder.rglob(pattern))
    check(len(found) == 1, f'{pattern} below {folder}: {found}')
    return found[0]


class Installed:
    def __init__(self, top, root):
        self.top, self.root = top, root
        self.pc = only(top, '*.pc')
        self.lib = only(top, 'libbtrkit.so').parent
        self.module = 'btrkit'
        self.env = {'PKG_CONFIG_SYSROOT_DIR': str(top), 'PKG_CONFIG_PATH': str(self.pc.parent),
                    'LD_LIBRARY_PATH': str(self.lib)}
        # With a static library, pkg-config also needs the files of the libraries that it depends on.
        self.static = (self.lib / 'libbtrkit.a').exists()
        if not self.static:
            self.env['PKG_CONFIG_LIBDIR'] = str(self.pc.parent)

    def flags(self):
        flags = run('pkg-config', '--cflags', '--libs', self.module, env=self.env).split()
        folders = [f[2:] for f in flags if f[:2] in ('-I', '-L')]
        check(len(folders) > 1 and '-lbtrkit' in flags and all(f.startswith(f'{self.top}/') for f in folders), flags)
        return flags

    def run(self, *args, wanted=0):
        return run(*args, env=self.env, wanted=wanted)

    def build(self, compiler, source, binary):
        run(*compiler, '-Wall', '-Wextra', '-Werror', source, '-o', binary, *self.flags(), env=self.env,
            cwd=pathlib.Path(binary).parent)
        needed = run('readelf', '-d', binary)
        check(re.search(r'NEEDED.*\[libbtrkit\.so\.1\]', needed), f'{binary} is not linked to libbtrkit.so.1: {needed}')
        check('LIBBTRKIT_1' in run('readelf', '-V', binary), f'{binary} does not ask for versions')
        return binary


def files(at, version):
    """Check the installed headers, library, commands, schemas and man pages: all must be there, and nothing else."""
    prefix = at.pc.parent.parent.parent
    while prefix.name.startswith('lib'):
        prefix = prefix.parent
    headers = {p.name for p in at.root.glob('include/btrkit/*.h')}
    check(headers and {p.name for p in (prefix / 'include/btrkit').iterdir()} == headers, 'headers')
    check(os.readlink(at.lib / 'libbtrkit.so') == 'libbtrkit.so.1', 'libbtrkit.so')
    check(os.readlink(at.lib / 'libbtrkit.so.1') == f'libbtrkit.so.{version}', 'libbtrkit.so.1')
    library = at.lib / f'libbtrkit.so.{version}'
    check(library.is_file() and not library.is_symlink(), library)
    check({p.name for p in at.lib.iterdir() if p.is_file()} == {
        'libbtrkit.so', 'libbtrkit.so.1', library.name, *(['libbtrkit.a'] if at.static else [])},
        f'more than the library in {at.lib}')
    check('SONAME' in (dynamic := run('readelf', '-d', library)) and '[libbtrkit.so.1]' in dynamic, 'soname')
    check('RUNPATH' not in dynamic and 'RPATH' not in dynamic, 'the library has a path of this machine')
    btrkit = prefix / 'bin/btrkit'
    check('PATH)' not in run('readelf', '-d', btrkit), 'btrkit has a path of this machine')
    check(at.run(btrkit, '--version').startswith(f'btrkit {version}'), 'btrkit --version')
    schemas = sorted(p.name for p in at.root.glob('schema/*.json'))
    check(schemas and sorted(p.name for p in (prefix / 'share/btrkit').iterdir()) == schemas, 'schemas')
    for name in schemas:
        check((prefix / 'share/btrkit' / name).read_bytes() == (at.root / 'schema' / name).read_bytes(), name)
    for completion in ('bash-completion/completions/btrkit', 'zsh/site-functions/_btrkit',
                       'fish/vendor_completions.d/btrkit.fish'):
        check((prefix / 'share' / completion).stat().st_size > 5000, completion)
    if shutil.which('scdoc'):
        pages = {p.name[:-4] for p in at.root.glob('man/*.scd')}
        found = {p.name for p in (prefix / 'share/man').glob('man[358]/*') if p.parent.name[-1] == p.name[-1]}
        check(pages and found == pages, f'man pages {found}')
        commands = re.findall(r'^  ([a-z][a-z-]*) ', at.run(btrkit, '--help'), re.M)
        check(not {f'btrkit-{c}.8' for c in commands} - pages, f'commands {commands} without a man page')
    return library, btrkit


def symbols(library, root):
    """Each function has the version node of the soname."""
    wanted = set(re.findall(r'\b(btrkit_\w+);', (root / 'lib/libbtrkit.sym').read_text()))
    found = {}
    for line in run('objdump', '-T', library).splitlines():
        fields = line.split()
        if len(fields) >= 6 and '*UND*' not in fields and fields[-1] != 'LIBBTRKIT_1':
            found[fields[-1]] = fields[-2]
    check(wanted and set(found) == wanted, f'symbols: {set(found) ^ wanted}')
    check(set(found.values()) == {'LIBBTRKIT_1'}, f'versions: {found}')


def make_filesystem(at, program, btrkit, scratch):
    image = f'{scratch}/new.img'
    out = at.run(program, image, 300, 'a label')
    made = re.fullmatch(r'([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}) 314572800 bytes\n', out)
    check(made, f'make-filesystem: {out!r}')
    text = at.run(btrkit, 'dump-super', image)
    check(re.search(rf'^fsid\s+{made.group(1)}$', text, re.M) and re.search(r'^label\s+a label$', text, re.M), text)
    check('free space tree key' in at.run(btrkit, 'dump-tree', image), 'dump-tree')
    before = os.stat(image)
    check('File exists' in at.run(program, image, 300, wanted=1), 'an old file is not left alone')
    check(os.stat(image).st_mtime_ns == before.st_mtime_ns, 'an old file was written to')
    small = f'{scratch}/small.img'
    check(re.fullmatch(rf'make-filesystem: {small}: too small.*\n', at.run(program, small, 20, wanted=1)), 'too small')
    check(not os.path.exists(small), 'a file without a filesystem is left')
    folder = pathlib.Path(scratch) / 'source'
    (folder / 'below').mkdir(parents=True)
    (folder / 'below/file').write_text('from a directory\n')
    filled = f'{scratch}/filled.img'
    at.run(program, filled, 300, 'filled', folder)
    check(at.run(btrkit, 'cat', filled, 'below/file') == 'from a directory\n', 'a filesystem with files')
    for args in ((), (image,), (image, 'x'), (image, 300, 'label', folder, 'more'), (image, 0)):
        check(at.run(program, *args, wanted=2).startswith('usage: '), args)
    return image


def expected(tsv):
    """Return the expected output of list-extents for files of the top level, from the listing made by Linux."""
    words = ((0x200, 'inline'), (0x8, 'compressed'), (0x800, 'unwritten'), (0x2000, 'shared'))
    listed = {}
    for line in tsv.read_text().splitlines():
        root, _, logical, physical, length, flags, path = line.split('\t')
        if root == '5':
            listed.setdefault(path, []).append(' '.join([f'    {logical}+{length} at {physical}', *(
                word for flag, word in words if int(flags, 16) & flag)]))
    return listed


def list_extents(at, program, new, scratch):
    check(at.run(program, new) == '', 'a new filesystem has files')
    compared = 0
    for name in LISTED:
        run(sys.executable, at.root / 'images/unpack.py', name, scratch)
        found = {}
        for line in at.run(program, f'{scratch}/{name}.img').splitlines():
            head = re.fullmatch(r'(\S.*) \d+ bytes', line)
            if head:
                rows = found.setdefault(head.group(1), [])
            else:
                rows.append(line)
        for path, rows_of in expected(at.root / f'images/{name}.tsv').items():
            check(found.get(path) == rows_of, f'{name}: {path}: {found.get(path)}, not {rows_of}')
            compared += len(rows_of)
    check(compared > 50, f'{compared} extents')
    garbage = f'{scratch}/garbage.img'
    with open(garbage, 'wb') as f:
        f.truncate(1 << 20)
    check(re.fullmatch(rf'list-extents: {garbage}: not a btrfs .*\n', at.run(program, garbage, wanted=1)), 'garbage')
    check('No such file' in at.run(program, f'{scratch}/none', wanted=1), 'no such file')
    return compared


def freed_by(at, program, scratch):
    """Check freed-by for single subvolumes and for all together; the images were unpacked by list_extents()."""
    image = f'{scratch}/good-generations.img'
    check(at.run(program, image, 's0', '257', '/s3') == (
        's0: 32768 bytes of data, 20480 of metadata\n257: 24576 bytes of data, 16384 of metadata\n'
        '/s3: 0 bytes of data, 16384 of metadata\nall: 90112 bytes of data, 61440 of metadata\n'), 'freed-by')
    check(re.fullmatch(rf'freed-by: {image}: no such file.*: none\n', at.run(program, image, 'none', wanted=1)), 'none')
    check('No such file' in at.run(program, f'{scratch}/none', 's0', wanted=1), 'no such file')
    check(at.run(program, image, wanted=2).startswith('usage: '), 'usage')


def alone(at, program, scratch):
    """Check alone; the expected sizes are those that du reports as exclusive."""
    image = f'{scratch}/good-generations.img'
    check(at.run(program, image, 's0') == (
        'sets:\n256: 32768 bytes\n256,258: 16384 bytes\n256,258,259: 12288 bytes\n256,257,258,259: 937984 bytes\n'
        'files:\nf1: 8192 bytes\nf10: 8192 bytes\nf19: 8192 bytes\nf28: 8192 bytes\nfreed: 32768 bytes\n'), 'alone')
    image = f'{scratch}/good-compressed.img'
    check(at.run(program, image, '5') == COMPRESSED, at.run(program, image, '5'))
    check(re.fullmatch(rf'alone: {image}: no such file.*: none\n', at.run(program, image, 'none', wanted=1)), 'none')
    check(at.run(program, wanted=2).startswith('usage: '), 'usage')


def copy_used(at, program, btrkit, scratch):
    """Check copy-used with a target full of garbage: space that is not used must not be copied, nor be needed."""
    image, copy = f'{scratch}/filled.img', f'{scratch}/copy.img'
    with open(copy, 'wb') as f:
        for _ in range(300):
            f.write(b'\xdb' * (1 << 20))
    copied = int(re.fullmatch(r'(\d+) bytes\n', at.run(program, image, copy)).group(1))
    check(100 << 10 < copied < 10 << 20, f'{copied} bytes were copied')
    at.run(btrkit, 'check', '--data', copy)
    check(at.run(btrkit, 'cat', copy, 'below/file') == 'from a directory\n', 'a file of the copy')
    with open(copy, 'rb') as f:
        check(f.read().count(b'\xdb') > 280 << 20, 'more was written than is used')
    check(re.fullmatch(r'copy-used: not a btrfs .*\n', at.run(program, f'{scratch}/garbage.img', copy, wanted=1)),
          'garbage')
    check(at.run(program, image, wanted=2).startswith('usage: '), 'usage')


def edit_image(at, program, btrkit, scratch):
    image = f'{scratch}/filled.img'
    at.run(program, image, 'new', 'some text')
    check(at.run(btrkit, 'cat', image, 'new') == 'some text', 'a new file')
    check('new' not in at.run(btrkit, 'ls', image, 'before'), 'a snapshot of before')
    check('exists' in at.run(program, image, 'new', 'another', wanted=1), 'a second snapshot of that name')
    check(at.run(btrkit, 'cat', image, 'new') == 'some text', 'a transaction that failed')
    at.run(btrkit, 'check', '--data', image)
    check(at.run(program, image, wanted=2).startswith('usage: '), 'usage')


def manual(at, cc, image, scratch):
    """Check that the example in libbtrkit(3) compiles and works."""
    page = (at.root / 'man/libbtrkit.3.scd').read_text()
    (scratch / 'manual.c').write_text(re.search(r'^```\n(.*?)^```', page, re.M | re.S).group(1))
    program = at.build(cc, 'manual.c', scratch / 'manual')
    check(re.search(r'^\d+ below$', at.run(program, image), re.M), 'the example of the page')
    check('not a btrfs' in at.run(program, f'{scratch}/garbage.img', wanted=1), 'the example of the page, of garbage')


def main(root, build, *compilers):
    cut = compilers.index('--cxx') if '--cxx' in compilers else len(compilers)
    cc, cxx = compilers[:cut], compilers[cut + 1:]
    for program in ('meson', 'pkg-config', 'readelf', 'objdump'):
        if not shutil.which(program):
            print(f'skipped: needs {program}')
            sys.exit(77)
    root = pathlib.Path(root)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        run('meson', 'install', '-C', build, '--no-rebuild', '--destdir', scratch / 'top')
        at = Installed(scratch / 'top', root)
        version = run('pkg-config', '--modversion', at.module, env=at.env).strip()
        library, btrkit = files(at, version)
        symbols(library, root)
        built = {}
        for source in root.glob('examples/*.c'):
            shutil.copy(source, scratch)
            built[source.stem] = at.build(cc, source.name, scratch / source.stem)
        image = make_filesystem(at, built['make-filesystem'], btrkit, scratch)
        compared = list_extents(at, built['list-extents'], image, scratch)
        freed_by(at, built['freed-by'], scratch)
        alone(at, built['alone'], scratch)
        manual(at, cc, scratch / 'filled.img', scratch)
        copy_used(at, built['copy-used'], btrkit, scratch)
        edit_image(at, built['edit-image'], btrkit, scratch)
        if cxx:
            (scratch / 'user.cpp').write_text(USER)
            user = at.build(cxx, 'user.cpp', scratch / 'user')
            check(at.run(user).strip() == version, 'a C++ program')
    print(f'compared {compared} extents; {len(built)} examples, {checks} checks')


if __name__ == '__main__':
    main(*sys.argv[1:])
