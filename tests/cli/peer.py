#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/peer.sh chooses the newest btrfs-progs that can be had and that the tests know, each choice falling back to
the next. apt-get, dpkg-deb and the programs are replaced by scripts here, so no network is needed.
Usage: peer.py PEER.SH"""
import os
import subprocess
import sys
import tempfile

APT = '''#!/bin/bash
list=$(printf '%s\\n' "$@" | sed -n 's/^Dir::Etc::sourcelist=//p')
suite=$(sed -n 's/^deb .* \\([a-z]*\\) main$/\\1/p' "$list" 2>/dev/null)
archives=$(printf '%s\\n' "$@" | sed -n 's/^Dir::Cache::archives=//p')
case " $* " in
*" indextargets "*) echo "Debian|Debian|http://mirror/" ;;
*" update "*) echo "$suite" >>"$LOG"; case " $OFFERED " in *" $suite="*) ;; *) exit 100 ;; esac ;;
*" install "*) echo "$suite" >"$archives/btrfs-progs.deb" ;;
esac
'''
DPKG = '''#!/bin/bash
version=$(printf '%s\\n' $OFFERED | sed -n "s/^$(cat "$2")=//p")
mkdir -p "$3/bin" "$3/lib"
printf '#!/bin/sh\\nshift 2\\nexec "$@"\\n' >"$3/lib/ld-linux-x86-64.so.2"
for name in btrfs mkfs.btrfs btrfstune; do
	printf '#!/bin/sh\\necho "btrfs-progs v%s"\\n' "$version" >"$3/bin/$name"
done
chmod +x "$3"/bin/* "$3"/lib/*
'''
ALL = {'unstable': '7.3', 'testing': '7.1', 'trixie': '6.14'}
checked = 0


def write(path, text):
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)
    os.chmod(path, 0o755)


def choose(script, offered, installed=None, choice=None, folder=None, given=None):
    """Return the status, the line that names the peer, what its btrfs says, and the suites that were asked."""
    with tempfile.TemporaryDirectory() as scratch:
        os.mkdir(f'{scratch}/bin')
        write(f'{scratch}/bin/apt-get', APT)
        write(f'{scratch}/bin/dpkg-deb', DPKG)
        keyring = f'{scratch}/keyring.gpg'
        write(keyring, '')
        with open(script, encoding='utf-8') as f:
            text = f.read().replace('/usr/share/keyrings/debian-archive-keyring.gpg', keyring)
        write(f'{scratch}/peer.sh', text.replace('PATH=$PATH:/usr/sbin:/sbin', ':'))
        for name in 'btrfs', 'mkfs.btrfs', 'btrfstune':
            # Those of this machine must not be found.
            said = f'echo "btrfs-progs v{installed}"\n' if installed else ''
            write(f'{scratch}/bin/{name}', '#!/bin/sh\n' + said)
        env = {'PATH': f'{scratch}/bin:/usr/bin:/bin', 'LOG': f'{scratch}/log',
               'OFFERED': ' '.join(f'{suite}={version}' for suite, version in offered.items()),
               **({'BTRKIT_PEER': choice} if choice else {}), **(given or {})}
        done = subprocess.run([f'{scratch}/peer.sh', folder or f'{scratch}/peer'], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, text=True)
        use = f'. {folder or scratch + "/peer"}/env && "$BTRFS" && "$MKFS" && "$BTRFSTUNE"'
        says = subprocess.run(['sh', '-c', use], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False, text=True).stdout
        asked = ''
        if os.path.exists(f'{scratch}/log'):
            with open(f'{scratch}/log', encoding='ascii') as f:
                asked = f.read().split()
        return done.returncode, done.stdout.strip(), says.splitlines(), list(asked)


def check(wanted, asked, *args, **kwargs):
    """@wanted: the line that names the peer, None if there is none"""
    global checked
    found = choose(sys.argv[1], *args, **kwargs)
    version = wanted and wanted.split(',')[0].split(' of ')[0]
    assert found == ((0, wanted, [version] * 3, asked) if wanted else (1, '', [], asked)), (args, kwargs, found)
    checked += 1


def main():
    check('btrfs-progs v7.3 of Debian unstable', ['unstable'], ALL)
    check('btrfs-progs v7.1 of Debian testing', ['unstable', 'testing'], {**ALL, 'unstable': '7.4'})
    check('btrfs-progs v7.3.1 of Debian unstable', ['unstable'], {**ALL, 'unstable': '7.3.1'})
    offered = dict(ALL)
    del offered['unstable']
    check('btrfs-progs v7.1 of Debian testing', ['unstable', 'testing'], offered)
    del offered['testing']
    check('btrfs-progs v6.14 of Debian trixie', ['unstable', 'testing', 'trixie'], offered)
    check('btrfs-progs v6.14 of Debian trixie', ['unstable', 'testing', 'trixie'], offered, '6.2')
    check('btrfs-progs v6.2, which is installed', ['unstable', 'testing', 'trixie'], {}, '6.2')
    check(None, ['unstable', 'testing', 'trixie'], {})
    check('btrfs-progs v7.3, which is installed', [], ALL, '7.3')
    check('btrfs-progs v7.3 of Debian unstable', ['unstable'], ALL, '6.19')
    check('btrfs-progs v7.3 of Debian unstable', ['unstable'], ALL, '7.4')
    for suite, version in ALL.items():
        check(f'btrfs-progs v{version} of Debian {suite}', [suite], ALL, '7.3', suite)
    check('btrfs-progs v7.4 of Debian unstable', ['unstable'], {'unstable': '7.4'}, choice='unstable')
    check('btrfs-progs v6.2, which is installed', [], ALL, '6.2', 'installed')
    check('btrfs-progs v6.14 of Debian trixie', ['testing', 'trixie'], offered, choice='testing trixie')
    check(None, [], ALL, '7.3', 'none')
    assert choose(sys.argv[1], ALL, choice='sid')[0] == 2
    # What was unpacked is used again, but does not keep newer ones away.
    with tempfile.TemporaryDirectory() as folder:
        check('btrfs-progs v6.14 of Debian trixie', ['unstable', 'testing', 'trixie'], offered, folder=folder)
        check('btrfs-progs v6.14 of Debian trixie', ['unstable', 'testing'], {}, folder=folder)
        check('btrfs-progs v7.3 of Debian unstable', ['unstable'], ALL, folder=folder)
        check('btrfs-progs v7.3 of Debian unstable', [], {}, folder=folder)
        check(None, [], {}, choice='none', folder=folder)
        program = f'{folder}/unstable/bin/btrfs'
        check('btrfs-progs v7.3, as given', [], {}, given=dict.fromkeys(('BTRFS', 'MKFS', 'BTRFSTUNE'), program))
    print(f'{checked} choices')
    return 0


if __name__ == '__main__':
    sys.exit(main())
