#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit du --html`: the page in a headless Chromium. The amounts that deleting frees equal those of `--freed-by` to
the byte, and so do the subvolumes that Linux would refuse to delete; sizes of bars and areas are in proportion to
bytes; the page makes no requests and no errors whatever the names are; it copes with many subvolumes and sets, and with
64-bit numbers.

BTRKIT is the program under test, CHROMIUM the browser."""
import html.parser
import json
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import time

import browser
from du_page import (AMOUNTS, CELLS, CHOOSE, DATA, check, choose, counts, check_bars, verify_clean, check_directories,
                     verify_image, check_map, make_page, rows)
from tool import BTRKIT, check_failure, digest, run, skip

IMAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'images')
import unpack

NAMES = ('default', 'generations', 'levels', 'half-dropped', 'log-tree', 'odd-names', 'orphan', 'keyed-references')
SETS = 50000 if '--deep' in sys.argv else 8000
SPACE, SHIFT = {'code': 'Space', 'windowsVirtualKeyCode': 32, 'text': ' '}, 8


# Pages with synthetic data

def filled(template, folder, name, data):
    """Put other data into a page, formatted as the library does it."""
    text = json.dumps(data, separators=(',', ':')).replace('<', '\\u003c')
    with open(template, encoding='utf-8', errors='surrogateescape') as f:
        made, n = DATA.subn(lambda found: found.group(1) + text + found.group(3), f.read())
    check(n == 1)
    path = os.path.join(folder, f'{name}.html')
    with open(path, 'w', encoding='utf-8', errors='surrogateescape') as f:
        f.write(made)
    return path


def synthetic(rng, num_owners, num_sets, largest):
    """Random owners, and sets of them with [AMOUNTS, members]."""
    members = {(i,) for i in range(num_owners)}
    while len(members) < num_sets:
        some = set()
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            first = rng.randrange(num_owners)
            some.update(range(first, min(first + rng.choice((1, 2, 3, 10, 200)), num_owners)))
        members.add(tuple(sorted(some)))
    return [([rng.randrange(largest) for _ in AMOUNTS], some) for some in sorted(members)]


def spaces(amounts):
    return ' '.join(str(sum(column) % (1 << 64)) for column in zip([0] * len(AMOUNTS), *amounts))


def as_data(rng, num_owners, made, names=None):
    order = list(range(num_owners))
    rng.shuffle(order)
    place = {owner: at for at, owner in enumerate(order)}
    referenced, exclusive = [[] for _ in order], [[] for _ in order]
    found = []
    for amounts, some in made:
        runs, end = [], 0
        for at in sorted(map(place.__getitem__, some)):
            if runs and at == end:
                runs[-1] += 1
            else:
                runs += [at - end, 1]
            end = at + 1
        found.append([spaces([amounts]), *runs])
        for owner in some:
            referenced[owner].append(amounts)
            if len(some) == 1:
                exclusive[owner].append(amounts)
    owners = [{'kind': 'subvolume', 'id': str(256 + i), 'path': names[i] if names else f'/snapshots/{i}', 'parent': '5',
               'created': 1700000000 + 3600 * i, 'read_only': True, 'snapshot': True, 'log': spaces([]), 'orphans': '0',
               'referenced': spaces(referenced[i]), 'exclusive': spaces(exclusive[i])} for i in range(num_owners)]
    return {'version': 1, 'fsid': '0' * 8 + '-0000-0000-0000-' + '0' * 12, 'label': 'made up', 'generation': '1',
            'total': spaces(amounts for amounts, _ in made), 'unowned': spaces([]), 'owners': owners, 'order': order,
            'sets': found, 'damaged': '0'}


def check_synthetic(page, rng, num_owners, made, subsets):
    for _ in range(subsets):
        some = set(rng.sample(range(num_owners), rng.randint(1, num_owners)))
        if rng.random() < 0.7:
            first = rng.randrange(num_owners)
            some = set(range(first, min(num_owners, first + 300)))
        gone, more = [], {}
        for amounts, members in made:
            left = set(members) - some
            if not left:
                gone.append(amounts)
            elif len(left) == 1:
                more.setdefault(left.pop(), []).append(amounts)
        said = choose(page, [256 + i for i in sorted(some)]) if len(some) < 20 else choose_many(page, some)
        wanted = [sum(column) % (1 << 64) for column in zip([0] * len(AMOUNTS), *gone)]
        check(said['space'] == list(map(str, wanted)), said, wanted)
        one = {o: (sum(a[0] for a in amounts) + sum(a[2] for a in amounts)) % (1 << 64) for o, amounts in more.items()}
        best = sorted((o for o in one if one[o]), key=lambda o: (-one[o], o))[:10]
        check(said['next'] == [[str(256 + o), str(one[o])] for o in best], said['next'])
        counts['subsets'] += 1


def choose_many(page, some):
    """Select many subvolumes by ranges, which is fast; only the last click needs to update the page."""
    ids = sorted(256 + i for i in some)
    runs = []
    for number in ids:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    page.run("document.getElementById('none').click()")
    for first, last in runs:
        box = f'document.querySelector(\'.row[data-id="%d"] input\')'
        page.run(f'{box % first}.click()')
        if last > first:
            page.run(f"{box % last}.dispatchEvent(new KeyboardEvent('keydown', {{ key: ' ', shiftKey: true }})); "
                     f'{box % last}.click()')
    return page.run(f"({CHOOSE.replace('''document.getElementById('none').click();''', '')})([])")


def large(chromium, template, folder):
    """2,000 subvolumes and 8,000 sets (50,000 in deep runs): opening, drawing and changing take no noticeable time."""
    rng = random.Random(1)
    made = synthetic(rng, 2000, SETS, 1 << 40)
    path = filled(template, folder, 'large', as_data(rng, 2000, made))
    began = time.monotonic()
    page = browser.Page(chromium, path)
    page.settle()
    opened = time.monotonic() - began
    check_synthetic(page, rng, 2000, made, 6)
    took = page.run('''(() => {
        const boxes = document.querySelectorAll('.row input'), began = performance.now();
        for (let i = 0; i < 20; i++)
            boxes[i * 50].click();
        document.body.offsetHeight;
        return (performance.now() - began) / 20; })()''')
    check_map(page)
    page.click('#sort')
    for order in ('next', 'path', 'created', 'exclusive', 'shared', 'metadata', 'number'):
        page.run(f"document.getElementById('sort').value = '{order}'; "
                 "document.getElementById('sort').dispatchEvent(new Event('change'))")
    verify_clean(page, 'large')
    page.close()
    return opened, took, os.path.getsize(path)


def numbers_of_64_bits(chromium, template, folder):
    """Sums beyond 2^53 are exact, and sums beyond 2^64 wrap as they do in the library."""
    rng = random.Random(2)
    for name, largest in (('wide', 1 << 58), ('wrapping', 1 << 64)):
        made = synthetic(rng, 9, 200, largest)
        page = browser.Page(chromium, filled(template, folder, name, as_data(rng, 9, made)))
        check_synthetic(page, rng, 9, made, 40)
        verify_clean(page, name)
        page.close()


class Parser(html.parser.HTMLParser):
    """Collect the elements of a page by an independent HTML parser."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attr) for attr in attrs]


HOSTILE = (b'</script><script>document.title = "run"</script>', b'<!--<script>', b'<img src=x onerror=alert(1)>',
           b'"quotes\' & &amp; `ticks` ${1}', b'no \xff\xfe UTF-8 \xed\xa0\x80', '\u202egnp.exe'.encode(),
           b'line\nline\r', b'tab\tescape\x1b[31m', b'back\\slash', '\u2028sep\u2029'.encode(),
           'e\u0301\U0001f600'.encode(),
           b'__proto__', b'constructor', b"javascript:alert(1)", b'%3Cscript%3E', b'\x7f\x01', b'n' * 255)
SHOWN = ('/</script><script>document.title = "run"</script>', '/<!--<script>', '/<img src=x onerror=alert(1)>',
         '/"quotes\' & &amp; `ticks` ${1}', '/no \\377\\376 UTF-8 \\355\\240\\200', '/\\u{202e}gnp.exe',
         '/line\\nline\\r', '/tab\\t' 'escape\\e[31m', '/back\\\\slash', '/\\u{2028}sep\\u{2029}',
         '/e\u0301\U0001f600', '/__proto__', '/constructor', '/javascript:alert(1)', '/%3Cscript%3E', '/\\177\\001',
         '/' + 'n' * 255)


def hostile(chromium, template, folder):
    """Names with special meaning in HTML, scripts or terminals are shown literally."""
    parts = [name.replace(b'/', b'|') for name in HOSTILE]  # names contain no slash
    root, path = os.path.join(folder, 'hostile').encode(), os.path.join(folder, 'hostile.img')
    for name in parts:
        os.makedirs(os.path.join(root, name))
        with open(os.path.join(root, name, b'file'), 'wb') as f:
            f.write(name * 3000)
    done = subprocess.run([BTRKIT, 'mkfs', '-q', '-L', '</script>&"\u202e', '--rootdir', root,
                           *(b'--subvol=rw:' + name for name in parts), path], stderr=subprocess.PIPE, check=False)
    check(done.returncode == 0, done.stderr)
    file = make_page(path, os.path.join(folder, 'hostile.html'))
    with open(file, 'rb') as f:
        text = f.read().decode()  # must be valid UTF-8
    data = DATA.search(text).group(2)
    check('<' not in data and 'script' in data and '\\udcff' in data)
    parser, plain = Parser(), Parser()
    parser.feed(text)
    with open(template, encoding='utf-8') as f:
        plain.feed(f.read())
    check(parser.tags == plain.tags and parser.attributes == plain.attributes and parser.tags.count('script') == 2)
    page = browser.Page(chromium, file)
    wanted = {'/', *('/' + name[1:].replace('/', '|') for name in SHOWN)}
    found = rows(page)
    check({row['name'] for row in found} == wanted, {row['name'] for row in found} ^ wanted)
    elements = page.run("document.querySelectorAll('*').length")
    check(page.run("document.querySelectorAll('img, iframe, object, a, script:not(#data)').length") == 1)
    for selector in ('.row input', '#map .cell', '#next button', '#map-list summary'):
        page.run(f"for (const e of [...document.querySelectorAll('{selector}')].slice(0, 40)) e.click(); 0")
    check(elements > 100 and page.run("document.querySelectorAll('img, script').length") == 2)
    check(page.run('document.title') == 'Space of a btrfs filesystem')
    check('Label </script>&"\\u{202e}, ' in page.run("document.getElementById('which').textContent"))
    shown = page.run('document.body.innerText')
    check(not re.search('[\u202e\u2028\u2029\x1b\x7f\x01\r]', shown))
    verify_clean(page, 'hostile')
    page.close()
    # The same names as labels of sets, in synthetic data without paths.
    names = [name.decode(errors='surrogateescape') for name in HOSTILE]
    rng = random.Random(3)
    made = synthetic(rng, len(names), 60, 1 << 30)
    page = browser.Page(chromium, filled(template, folder, 'made-up', as_data(rng, len(names), made, names)))
    check([row['name'] for row in rows(page)] == [name[1:] for name in SHOWN])
    verify_clean(page, 'made up')
    page.close()


def policy(chromium, template, folder):
    """If injected code got into the page nevertheless, it must not run or reach the network."""
    bad = ('<script>document.title = "run"</script><img src="http://127.0.0.1:9/x" onerror="document.title = 1">'
           '<link rel="stylesheet" href="http://127.0.0.1:9/x.css"><iframe src="http://127.0.0.1:9/"></iframe>'
           '<style>h1 { color: red }</style>')
    with open(template, encoding='utf-8') as f:
        text = f.read().replace('</header>', bad + '</header>')
    file = os.path.join(folder, 'policy.html')
    with open(file, 'w', encoding='utf-8') as f:
        f.write(text)
    page = browser.Page(chromium, file)
    page.settle()
    check(page.run('document.title') == 'Space of a btrfs filesystem')
    check(page.run("getComputedStyle(document.querySelector('h1')).color") != 'rgb(255, 0, 0)')
    said = str(page.complaints())
    check('Content Security Policy' in said and said.count('script-src') and said.count('style-src'), said)
    page.close()


FOCUSED = 'document.activeElement'


def keyboard(chromium, file):
    """Operate everything by keyboard."""
    page = browser.Page(chromium, file)
    page.run("document.querySelector('#map .cell[tabindex=\"0\"]').focus()")
    labels = page.run('[...document.querySelectorAll("#map .cell")].map(cell => cell.getAttribute("aria-label"))')
    seen = set()
    for key in ['ArrowRight'] * 4 + ['ArrowDown'] * 4 + ['ArrowLeft'] * 4 + ['ArrowUp'] * 4:
        page.key(key)
        seen.add(page.run(f'{FOCUSED}.getAttribute("aria-label")'))
    check(len(seen) > 3 and seen <= set(labels), seen)
    focused = page.run(f'{FOCUSED}.getAttribute("aria-label")')
    page.resize(1000, 700)
    page.settle()
    check(page.run(f'{FOCUSED}.getAttribute("aria-label")') == focused and focused in labels, focused)
    page.resize(1280, 900)
    page.settle()
    crumbs = "document.querySelectorAll('#crumbs button').length"
    page.run("[...document.querySelectorAll('#map .cell.group')].pop().focus()")
    name = page.run(f"{FOCUSED}.querySelector('.name').textContent")
    page.key('Enter', windowsVirtualKeyCode=13, text='\r')
    check(page.run(crumbs) > 1 and name in page.run("document.querySelector('#crumbs [aria-current]').textContent"))
    check(page.run(f"document.getElementById('map').contains({FOCUSED})"))
    deeper = check_map(page)
    for _ in range(page.run(crumbs) - 1):
        page.key('Escape')
    check(page.run(crumbs) == 1 and [cell['label'] for cell in page.run(CELLS)] == labels and len(deeper) < len(labels))
    # Select ranges by keyboard and by mouse, and filter the list.
    ids = page.run("[...document.querySelectorAll('.row')].map(row => row.dataset.id)")
    checked = "[...document.querySelectorAll('.row input:checked')].map(box => box.closest('.row').dataset.id)"
    page.run(f"document.querySelector('.row[data-id=\"{ids[1]}\"] input').focus()")
    page.key(' ', **SPACE)
    check(page.run(checked) == [ids[1]])
    page.run(f"document.querySelector('.row[data-id=\"{ids[3]}\"] input').focus()")
    page.key(' ', SHIFT, **SPACE)
    check(page.run(checked) == ids[1:4], page.run(checked))
    page.click('#none')
    check(page.run(checked) == [])
    page.click(f'.row[data-id="{ids[0]}"] input')
    page.click(f'.row[data-id="{ids[2]}"] label', SHIFT)
    check(page.run(checked) == ids[:3], page.run(checked))
    page.click(f'.row[data-id="{ids[0]}"] input')
    page.click(f'.row[data-id="{ids[1]}"] input', SHIFT)
    check(page.run(checked) == [ids[2]], page.run(checked))
    page.run("document.getElementById('none').click(); document.getElementById('search').focus()")
    page.call('Input.insertText', text='S1')
    check([row['id'] for row in rows(page) if row['shown']] == ['257'], rows(page))
    page.click('#all')
    check(page.run(checked) == ['257'] and page.run("document.getElementById('command').textContent") ==
          'btrkit du --freed-by 257')
    page.run("document.getElementById('search').value = ''; "
             "document.getElementById('search').dispatchEvent(new Event('input'))")
    page.click('#all')
    check(page.run(checked) == ids)
    # One click adds the subvolume that would free most next.
    page.click('#none')
    first = page.run("document.querySelector('#next button').dataset.id")
    page.click('#next button')
    check(page.run(checked) == [first])
    # Clicking a cell of the map selects the subvolumes that share it.
    page.click('#none')
    page.run("[...document.querySelectorAll('#map .cell.shared')].find(cell => /, shared by 2,/.test(cell.ariaLabel))"
             ".click(); document.querySelector('#detail button').click()")
    check(len(page.run(checked)) == 2, page.run(checked))
    verify_clean(page, 'keyboard')
    page.close()


def shapes(chromium, file):
    """With any window size and colour scheme, nothing overflows the page and the essential parts are visible."""
    for width, height, dark in ((1600, 900, False), (1000, 700, True), (360, 640, False), (360, 640, True)):
        page = browser.Page(chromium, file, width, height, dark)
        page.settle()
        check(page.run('document.documentElement.scrollWidth') <= width, width)
        back = page.run("getComputedStyle(document.body).backgroundColor")
        level = sum(map(int, re.findall(r'\d+', back)[:3])) / 3
        check(level < 60 if dark else level > 200, back)
        check_map(page)
        check_bars(page)
        for measure in ('data', 'metadata', 'both'):
            page.run(f"document.getElementById('measure').value = '{measure}'; "
                     "document.getElementById('measure').dispatchEvent(new Event('change'))")
            check_map(page)
        for selector in ('#freed-both', '#map', '#search'):
            check(page.run(f"(e => e.offsetWidth * e.offsetHeight)(document.querySelector('{selector}'))") > 0)
        unnamed = page.run('''[...document.querySelectorAll('button, input, select')].filter(e => !(e.ariaLabel ||
            (e.localName === 'button' && e.textContent.trim()) || (e.labels && [...e.labels].some(l =>
            [...l.childNodes].some(n => n !== e && n.textContent.trim()))))).map(e => e.outerHTML)''')
        check(unnamed == [], unnamed)
        verify_clean(page, width)
        page.close()


# The output file

def damage(chromium, folder):
    """Contents of a bad block are missing, the page says so, and the command fails."""
    path = unpack.unpack('bad-checksum', folder, quick=True)
    file = os.path.join(folder, 'damaged.html')
    code, out, err = run('du', '--noscan', '--html', file, path)
    check(code == 1 and not out and 'block 30932992' in err, err)
    page = browser.Page(chromium, file)
    check(page.run("document.getElementById('damage').textContent").startswith('1 place could not be read'))
    check(page.run("document.getElementById('damage').offsetHeight") > 0)
    verify_clean(page, 'damaged')
    page.close()


def files(path, folder):
    """The file is written completely, or left as it was."""
    place = os.path.join(folder, 'files')
    os.mkdir(place)
    file, link = os.path.join(place, 'page.html'), os.path.join(place, 'link')
    mask = os.umask(0o027)
    make_page(path, file)
    os.umask(mask)
    with open(file, 'rb') as f:
        page = f.read()
    check(stat.S_IMODE(os.stat(file).st_mode) == 0o640)
    code, out, err = run('du', '--noscan', '--html=-', path)
    check(code == 0 and out == page and not err, err)
    for threads in (1, 3):
        check(run('du', '--noscan', '--html=-', '--threads', threads, path)[1] == page)
    os.chmod(file, 0o604)
    with open(file, 'wb') as f:
        f.write(b'old')
    os.symlink('page.html', link)
    make_page(path, link)
    with open(file, 'rb') as f:
        check(f.read() == page and os.path.islink(link) and stat.S_IMODE(os.stat(file).st_mode) == 0o604)
    before = digest(path)
    os.symlink(path, os.path.join(place, 'image'))
    os.mkfifo(os.path.join(place, 'fifo'))
    os.symlink('none', os.path.join(place, 'nowhere'))
    for bad, device, says in (
            (path, path, 'is a device of the filesystem'),
            (os.path.join(place, 'image'), path, 'is a device of the filesystem'),
            (path, f'{path}?offset=0', 'is a device of the filesystem'), (place, path, 'is not a regular file'),
            (os.path.join(place, 'fifo'), path, 'is not a regular file'), ('/dev/full', path, 'is not a regular file'),
            (os.path.join(place, 'none', 'page'), path, 'No such file'),
            (os.path.join(place, 'nowhere'), path, 'No such file'), ('', path, 'No such file')):
        said = check_failure('du', device, run('du', '--noscan', '--html', bad, device))
        check(f'--html {bad}: ' in said and says in said, said)
    check(digest(path) == before)
    # A bad output file is reported before any work: otherwise the damage would be reported first.
    damaged = unpack.unpack('bad-checksum', folder, quick=True)
    for bad in ('', os.path.join(place, 'none', 'page'), damaged):
        check_failure('du', damaged, run('du', '--noscan', '--html', bad, damaged))
    with open(file, 'wb') as f:
        f.write(b'old')
    limit = 'ulimit -f 16; trap "" XFSZ; exec "$@"'
    done = subprocess.run(['sh', '-c', limit, 'sh', BTRKIT, 'du', '--noscan', '--html', file, path], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = check_failure('du', path, (done.returncode, done.stdout, done.stderr.decode()))
    check('File too large' in said, said)
    with open(file, 'rb') as f:
        check(f.read() == b'old')
    check(run('du', '--noscan', '--html', file, '/nowhere/image')[0] == 1)
    with open('/dev/full', 'wb') as full:
        done = subprocess.run([BTRKIT, 'du', '--noscan', '--html=-', path], stdout=full, stderr=subprocess.PIPE,
                              check=False)
    check(done.returncode == 1 and b'standard output: No space left' in done.stderr, done)
    for other in ('--matrix', '--types', '--extents', '--freed-by=5', '--raw', '--format=json', '--format=text'):
        check('--html' in check_failure('du', None, run('du', other, '--html', file, path), status=2))
    check(sorted(os.listdir(place)) == ['fifo', 'image', 'link', 'nowhere', 'page.html'], os.listdir(place))


def main():
    if not browser.CHROMIUM:
        skip('needs Chromium')
    rng = random.Random(4)
    with tempfile.TemporaryDirectory(prefix='btrkit-du-html-') as folder, browser.Browser() as chromium:
        pages = {}
        for name in NAMES:
            path = unpack.unpack(f'good-{name}', folder, quick=True)
            pages[name] = make_page(path, os.path.join(folder, f'{name}.html'))
            page = browser.Page(chromium, pages[name])
            verify_image(page, path, rng)
            check(page.run("document.getElementById('view').offsetHeight") == 0)
            verify_clean(page, name)
            page.close()
            file = make_page(path, os.path.join(folder, f'{name}-paths.html'), '--paths')
            page = browser.Page(chromium, file)
            check_directories(page, path, file)
            verify_clean(page, name)
            page.close()
        keyboard(chromium, pages['generations'])
        shapes(chromium, pages['generations'])
        hostile(chromium, pages['default'], folder)
        policy(chromium, pages['default'], folder)
        numbers_of_64_bits(chromium, pages['default'], folder)
        opened, took, size = large(chromium, pages['default'], folder)
        damage(chromium, folder)
        files(os.path.join(folder, 'good-default.img'), folder)
    print(', '.join(f'{n} {what}' for what, n in counts.items()))
    print(f'2,000 subvolumes, {SETS} sets: {size / 1e6:.1f} MB, opened in {opened:.2f} s, a change {took:.0f} ms')


if __name__ == '__main__':
    main()
