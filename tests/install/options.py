#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds with each compiler, with each optional library disabled alone, with all enabled, and with all disabled;
warnings are errors. Disabled features must be refused by name, in one line, and enabled ones must work. Finally,
programs are linked statically.

Usage: options.py SOURCES    (takes long; much less with ccache)"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

# For each library: commands that need it, and the message without it. main() replaces IMAGE, TREE and so on.
NEEDS = {
    'isal': [('mkfs -f -q -d raid5 -m raid5 IMAGE IMAGE2 IMAGE3', r'RAID5 is not supported.*ISA-L')],
    'xxhash': [('mkfs -f -q --csum xxhash IMAGE', r'xxhash64 is not supported by this build')],
    'gcrypt': [('mkfs -f -q --csum sha256 IMAGE', r'sha256 is not supported by this build'),
               ('mkfs -f -q --csum blake2 IMAGE', r'blake2b is not supported by this build')],
    'blkid': [('dump-super PARTED?partition=1', r'partition= needs a build with libblkid')],
    # With fixed times and a given UUID, all other UUIDs are derived from it.
    'uuid': [('mkfs -f -q -U 1b4e28ba-2fa1-11d2-883f-0016d3cca427 --rootdir TREE IMAGE', r'libuuid')],
    'zlib': [('mkfs -f -q --compress zlib --rootdir TREE IMAGE', r'this build cannot compress with zlib'),
             ('cat COMPRESSED zlib-large', r'zlib')],
    'lzo': [('mkfs -f -q --compress lzo --rootdir TREE IMAGE', r'this build cannot compress with lzo'),
            ('cat COMPRESSED lzo-large', r'lzo')],
    'zstd': [('mkfs -f -q --compress zstd --rootdir TREE IMAGE', r'this build cannot compress with zstd'),
             ('cat COMPRESSED zstd-large', r'zstd')],
    'archive': [('mkfs -f -q --tar ARCHIVE IMAGE', r'without libarchive'),
                ('extract --tar NEW INNER', r'without libarchive')],
}
# Internal names of the library, which programs may use too.
CLASH = '''
#include <btrkit/btrkit.h>
#include <stdio.h>
int node_get(void);
int volume_read(void);
int node_get(void) { return 1; }
int volume_read(void) { return 2; }
int main(void) { return node_get() + volume_read() != 3 || puts(btrkit_version()) < 0; }
'''
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f'options: {what}')


def run(*args, **more):
    done = subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **more)
    return done.returncode, done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')


def must(*args, **more):
    status, out, err = run(*args, **more)
    check(not status, f'{" ".join(map(str, args))}: exit {status}: {out[-3000:]}{err}')
    return out


def build(sources, at, compiler, off, *more, target='cmd/btrkit'):
    """Build without the libraries in @off. Returns the path of the command."""
    ccache = ['ccache'] if shutil.which('ccache') else []
    options = [f'-D{name}={"disabled" if name in off else "enabled"}' for name in NEEDS]
    must('meson', 'setup', at, sources, '--buildtype=release', '-Dwerror=true', '-Dman=disabled', '-Dtests=disabled',
         *options, *more, env=dict(os.environ, CC=' '.join([*ccache, compiler])))
    must('ninja', '-C', at, *target.split())
    return at / 'cmd/btrkit'


def try_all(btrkit, off, words, what):
    version = must(btrkit, '--version')
    check(all(f'{"-" if name in off else "+"}{name}' in version.split() for name in NEEDS), f'{what}: {version}')
    for name, calls in NEEDS.items():
        for call, refusal in calls:
            for image in ('IMAGE', 'IMAGE2', 'IMAGE3'):
                pathlib.Path(words[image]).unlink(missing_ok=True)
                with open(words[image], 'wb') as f:
                    f.truncate(300 << 20)
            pathlib.Path(words['NEW']).unlink(missing_ok=True)
            args = [re.sub(r'^[A-Z]+\d?', lambda m: words.get(m.group(), m.group()), w) for w in call.split()]
            status, _, err = run(btrkit, *args, env=dict(os.environ, SOURCE_DATE_EPOCH='1600000000'))
            told = f'{what}: btrkit {" ".join(args)}: exit {status}: {err}'
            if name in off:
                check(status and err.count('\n') == 1 and re.search(refusal, err), told)
            else:
                check(not status, told)


def link_statically(sources, scratch):
    """Link programs statically. Debian has no static ISA-L, and not everything that its static libarchive needs."""
    at = scratch / 'static'
    build(sources, at, 'gcc', ('archive', 'isal'), '-Dstatic=true', target='all')
    must('meson', 'install', '-C', at, '--no-rebuild', '--destdir', scratch / 'top')
    pc = next((scratch / 'top').rglob('btrkit.pc'))
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=str(scratch / 'top'), PKG_CONFIG_PATH=str(pc.parent))
    # Libraries of this machine are not below the sysroot.
    env['PKG_CONFIG_SYSTEM_LIBRARY_PATH'] = '/usr/lib'
    flags = [f.replace(f'{scratch}/top/usr/lib', '/usr/lib') if 'btrkit' not in f and not f.startswith('-L') else f
             for f in must('pkg-config', '--static', '--cflags', '--libs', 'btrkit', env=env).split()]
    (scratch / 'clash.c').write_text(CLASH)
    for source in (*pathlib.Path(sources).glob('examples/*.c'), scratch / 'clash.c'):
        must('gcc', '-static', source, '-o', scratch / source.stem, *flags)
        check('NEEDED' not in must('readelf', '-d', scratch / source.stem), f'{source.stem} is not static')
    must(scratch / 'clash')
    must(scratch / 'make-filesystem', scratch / 'static.img', '300', 'static')
    listing = must('nm', '-g', '--defined-only', pc.parent.parent / 'libbtrkit.a')
    names = [line.split()[-1] for line in listing.splitlines() if len(line.split()) == 3]
    check(names and all(n.startswith('btrkit_') for n in names), f'libbtrkit.a gives away {names}')
    without = must('pkg-config', '--libs', 'btrkit', env=env)
    check('-lz' not in without, f'who links to the shared library gets {without}')


def main(sources):
    for program in ('gcc', 'clang', 'meson', 'ninja', 'pkg-config'):
        if not shutil.which(program):
            print(f'skipped: needs {program}')
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        must(sys.executable, f'{sources}/images/unpack.py', 'good-compressed', scratch)
        words = {name: str(scratch / name.lower())
                 for name in ('IMAGE', 'IMAGE2', 'IMAGE3', 'TREE', 'ARCHIVE', 'NEW', 'INNER', 'PARTED')}
        words['COMPRESSED'] = str(scratch / 'good-compressed.img')
        (scratch / 'tree').mkdir()
        (scratch / 'tree/file').write_text('contents\n' * 100000)
        with tarfile.open(words['ARCHIVE'], 'w') as archive:
            archive.add(scratch / 'tree', '.')
        builds = [(), *((name,) for name in NEEDS), tuple(NEEDS)]
        for compiler in ('gcc', 'clang'):
            for off in builds:
                what = f'{compiler} without {", ".join(off) or "nothing"}'
                at = scratch / 'build'
                btrkit = build(sources, at, compiler, off)
                part(btrkit, words)
                try_all(btrkit, off, words, what)
                shutil.rmtree(at)
                print(what, flush=True)
        link_statically(sources, scratch)
    print(f'compared {2 * len(builds) + 1} builds by {checks} checks')


def part(btrkit, words):
    """Make a disk image with one partition that has a filesystem."""
    if os.path.exists(words['PARTED']):
        return
    with open(words['INNER'], 'wb') as f:
        f.truncate(300 << 20)
    must(btrkit, 'mkfs', '-q', words['INNER'])
    with open(words['PARTED'], 'wb') as f:
        f.truncate(302 << 20)
    must('sfdisk', '-q', '--no-tell-kernel', words['PARTED'], input=b'label: gpt\nstart=2048, size=614400\n')
    must('dd', f'if={words["INNER"]}', f'of={words["PARTED"]}', 'bs=1M', 'seek=1', 'conv=notrunc,sparse')


if __name__ == '__main__':
    main(*sys.argv[1:])
