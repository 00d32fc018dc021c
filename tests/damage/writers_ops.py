# SPDX-License-Identifier: LGPL-2.1-or-later
"""The writers for writers.py: what each does, what it may change, and what must be read afterwards."""
import collections

# @words: of the command, or the lines of an edit script; @touched: paths below which anything may change; @after:
# function from {path: content} before to {path: content} after, where None means that the path is gone, and a str that
# it is a copy of that path.
Writer = collections.namedtuple('Writer', 'name words touched after')

# Placeholders in the words.
DEVICES, UNDO = '{devices}', '{undo}'


def spliced(old, at, new):
    return (old + bytes(max(0, at - len(old))))[:at] + new + old[at + len(new):]


def cut(old, size):
    return (old + bytes(max(0, size - len(old))))[:size]


class Writers:
    """All writers for one filesystem. @roles: its paths; @local: directory with files to put; @data: contents of
    existing files"""

    def __init__(self, roles, local, data):
        self.roles, self.local, self.data, self.all = roles, local, data, []
        self.contents()
        self.ranges()
        self.names()
        self.attributes()
        self.subvolumes()
        self.caches()

    def add(self, name, script, *touched, after=None):
        roles = {**self.roles, 'local': self.local}
        self.all.append(Writer(name, script.format(**roles) if isinstance(script, str) else script,
                               tuple(path.format(**roles) for path in touched),
                               lambda before: {path.format(**roles): content
                                               for path, content in (after(before) if after else {}).items()}))

    def of(self, role):
        return self.roles[role]

    def contents(self):
        data, page, r = self.data['data'], self.data['page'], self.roles
        self.add('put', 'put {local}/data t/new', 't/new', after=lambda b: {'t/new': data})
        self.add('put-packed', ['edit', '--compress', 'zstd:1', DEVICES, 'put', f'{self.local}/text', 't/new'], 't/new',
                 after=lambda b: {'t/new': self.data['text']})
        self.add('put-over', 'put -f {local}/data {file}', '{file}', after=lambda b: {'{file}': data})
        self.add('put-tree', 'put -r {local}/top/t/dir t/new', 't/new',
                 after=lambda b: {f't/new/{name}': content for name, content in self.data['dir'].items()})
        self.add('put-many', ''.join(f'put {{local}}/page t/n{i}\n' for i in range(60)),
                 *(f't/n{i}' for i in range(60)), after=lambda b: {f't/n{i}': page for i in range(60)})
        for role, at in (('file', 8192), ('kept', 4096), ('kept', 20480), ('nocow', 4096), ('nocow', 65536),
                         ('clone', 12288), ('packed', 4096), ('holes', 40960), ('small', 100)):
            self.add(f'write-{role}-{at >> 10}k', f'write {{{role}}} {at} {{local}}/page', f'{{{role}}}',
                     after=lambda b, path=r[role], at=at: {path: spliced(b[path], at, page)})
        self.add('write-end', 'write {file} 1m {local}/data', '{file}',
                 after=lambda b: {'{file}': spliced(b[r['file']], 1 << 20, data)})
        self.add('write-many', ''.join(f'write t/{name} {at}k {{local}}/page\n' for at in (0, 8, 28)
                                       for name in ('plain', 'kept', 'kept2', 'kept3', 'two', 'nocow')),
                 't/plain', 't/kept', 't/kept2', 't/kept3', 't/two', 't/nocow')

    def ranges(self):
        r = self.roles
        self.add('clone', 'clone {file} t/new', 't/new', after=lambda b: {'t/new': b[r['file']]})
        self.add('clone-kept', 'clone {kept} t/new', 't/new', after=lambda b: {'t/new': b[r['kept']]})
        self.add('clone-over', 'clone {holes} {packed}', '{packed}', after=lambda b: {'{packed}': b[r['holes']]})
        self.add('clone-range', 'clone t/two 4k 8k {file} 16k', '{file}',
                 after=lambda b: {'{file}': spliced(b[r['file']], 16384, b['t/two'][4096:12288])})
        self.add('truncate', 'truncate {file} 5000', '{file}', after=lambda b: {'{file}': cut(b[r['file']], 5000)})
        self.add('truncate-kept', 'truncate {kept} 18k', '{kept}',
                 after=lambda b: {'{kept}': cut(b[r['kept']], 18432)})
        self.add('extend', 'truncate {small} 20000', '{small}', after=lambda b: {'{small}': cut(b[r['small']], 20000)})
        self.add('punch', 'punch {file} 4000 9000', '{file}',
                 after=lambda b: {'{file}': spliced(b[r['file']], 4000, bytes(9000))})
        self.add('punch-packed', 'punch {packed} 4k 8k', '{packed}',
                 after=lambda b: {'{packed}': spliced(b[r['packed']], 4096, bytes(8192))})
        self.add('punch-kept', 'punch {kept} 4k 16k', '{kept}',
                 after=lambda b: {'{kept}': spliced(b[r['kept']], 4096, bytes(16384))})
        self.add('prealloc', 'prealloc {holes} 0 192k', '{holes}',
                 after=lambda b: {'{holes}': cut(b[r['holes']], max(196608, len(b[r['holes']])))})
        # More than the existing chunks have room for.
        self.add('prealloc-large', 'put /dev/null t/new\nprealloc -k t/new 0 40m\n', 't/new',
                 after=lambda b: {'t/new': b''})

    def names(self):
        r = self.roles
        self.add('mkdir', 'mkdir -p t/new/deeper', 't/new')
        self.add('mknod', 'mknod t/new b 7 8', 't/new')
        self.add('ln', 'ln {file} t/new', 't/new', after=lambda b: {'t/new': r['file']})
        self.add('ln-s', 'ln -s {file} t/new', 't/new')
        self.add('mv', 'mv {file} t/new', '{file}', 't/new', after=lambda b: {'{file}': None, 't/new': b[r['file']]})
        self.add('mv-over', 'mv t/two t/plain', 't/two', 't/plain',
                 after=lambda b: {'t/two': None, 't/plain': b['t/two']})
        self.add('mv-dir', 'mv {dir} t/new', '{dir}', 't/new', after=lambda b: {'{dir}': None, 't/new': r['dir']})
        self.add('mv-x', 'mv -x {file} {dir}', '{file}', '{dir}',
                 after=lambda b: {'{file}': r['dir'], '{dir}': r['file']})
        self.add('mv-sub', 'mv {sub} t/new', '{sub}', 't/new', after=lambda b: {'{sub}': None, 't/new': r['sub']})
        self.add('rm', 'rm {file}', '{file}', after=lambda b: {'{file}': None})
        self.add('rm-kept', 'rm {kept} {clone}', '{kept}', '{clone}', after=lambda b: {'{kept}': None, '{clone}': None})
        self.add('rm-r', 'rm -r {dir}', '{dir}', after=lambda b: {'{dir}': None})
        self.add('rm-r-all', 'rm -r t', 't', after=lambda b: {'t': None})
        self.add('rm-put', 'rm t/plain t/two t/packed\nput {local}/data t/new\nput {local}/page t/new2\n',
                 't/plain', 't/two', 't/packed', 't/new', 't/new2',
                 after=lambda b: {'t/plain': None, 't/new': self.data['data'], 't/new2': self.data['page']})

    def attributes(self):
        r = self.roles
        self.add('setxattr', 'setxattr user.new value t/attr', 't/attr')
        self.add('setxattr-large', f'setxattr user.one {"v" * 1500} t/attr', 't/attr')
        self.add('rmxattr', 'rmxattr user.one t/attr', 't/attr')
        self.add('setfacl', 'setfacl -m u:9:rw- {file}\nsetfacl -b t/acl t/attr\n', '{file}', 't/acl', 't/attr')
        self.add('chmod', 'chmod 4711 {file} {dir}\nchown 5:6 {file}\ntouch @1234 {file}\n', '{file}', '{dir}',
                 after=lambda b: {'{file}': b[r['file']]})
        self.add('chattr', 'chattr +Sd {file}\nproperty set {file} compression zstd\n', '{file}',
                 after=lambda b: {'{file}': b[r['file']]})

    def subvolumes(self):
        r = self.roles
        self.add('subvolume', 'subvolume create t/new\nput {local}/page t/new/page\n', 't/new',
                 after=lambda b: {'t/new/page': self.data['page']})
        self.add('snapshot', 'subvolume snapshot {sub} t/new', 't/new', after=lambda b: {'t/new': r['sub']})
        self.add('snapshot-r', 'subvolume snapshot -r {snap} t/new', 't/new', after=lambda b: {'t/new': r['snap']})
        self.add('snapshot-write', 'subvolume snapshot {sub} t/new\nput {local}/data t/new/more\nput {local}/page '
                 '{sub}/more\n', 't/new', '{sub}/more', after=lambda b: {'t/new/more': self.data['data']})
        self.add('delete', 'subvolume delete {sub}', '{sub}', after=lambda b: {'{sub}': None})
        self.add('delete-put', 'subvolume delete {snap} t/ro\nput {local}/data t/new\n', '{snap}', 't/ro', 't/new',
                 after=lambda b: {'{snap}': None, 't/ro': None, 't/new': self.data['data']})
        self.add('default', 'subvolume set-default t/sub')
        self.add('sync', 'subvolume sync')
        self.add('read-only', 'property set {sub} ro true')
        self.add('writable', 'property set t/ro ro false\nput {local}/page t/ro/new\n', 't/ro/new',
                 after=lambda b: {'t/ro/new': self.data['page']})

    def caches(self):
        for to in ('v2', 'v1', 'none'):
            self.add(f'convert-{to}', ['space-cache', '--to', to, 'convert', DEVICES])
        self.add('clear-v2', ['space-cache', 'clear', 'v2', DEVICES])
        self.add('clear-v1', ['space-cache', 'clear', 'v1', DEVICES])
        # writers.py undoes these afterwards.
        self.add('undo', ['edit', '--undo', UNDO, DEVICES, 'put', f'{self.local}/data', 't/new'], 't/new')
        self.add('undo-convert', ['space-cache', '--undo', UNDO, '--to', 'none', 'convert', DEVICES])
