# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare a page of `btrkit du --html`, as a browser shows it, with the output of `btrkit du`."""
import itertools
import json
import re

from tool import run

AMOUNTS = ('data', 'uncompressed', 'metadata', 'extents', 'blocks')
DATA = re.compile(r'(<script id="data" type="application/json">)(.*?)(</script>)', re.S)
counts = dict.fromkeys(('subsets', 'cells', 'bars', 'directories', 'checks'), 0)


def check(condition, *what):
    assert condition, what
    counts['checks'] += 1


def make_page(path, page, *args):
    code, out, err = run('du', '--noscan', '--html', page, *args, path)
    check(code == 0 and not out and not err, code, out, err)
    return page


# Contents of the page

CHOOSE = '''ids => {
    document.getElementById('none').click();
    for (const id of ids)
        document.querySelector(`.row[data-id="${id}"] input`).click();
    const bytes = id => document.getElementById(id).dataset.bytes;
    return {
        both: bytes('freed-both'), text: document.getElementById('freed-both').textContent,
        space: ['data', 'uncompressed', 'metadata', 'extents', 'blocks'].map(name => bytes(`freed-${name}`)),
        held: [...document.querySelectorAll('#held li')].map(li => [li.dataset.id, li.dataset.hold]),
        next: [...document.querySelectorAll('#next button')].map(b => [b.dataset.id,
            b.querySelector('.number').dataset.bytes]),
    };
}'''
ROWS = '''[...document.querySelectorAll('.row')].map(row => ({
    id: row.dataset.id, name: row.querySelector('.name').firstChild.textContent, shown: row.offsetHeight > 0,
    bytes: [...row.querySelectorAll('.number[data-bytes]')].map(cell => cell.dataset.bytes),
    bar: [...row.querySelectorAll('.bar span')].map(part => [part.dataset.bytes, part.getBoundingClientRect().width]),
    width: row.querySelector('.bar').getBoundingClientRect().width, checked: row.querySelector('input').checked }))'''
CELLS = '''[...document.querySelectorAll('#map .cell')].map(cell => ({
    bytes: cell.dataset.bytes, level: Number(cell.dataset.level), label: cell.getAttribute('aria-label'),
    x: parseFloat(cell.style.left), y: parseFloat(cell.style.top), width: parseFloat(cell.style.width),
    height: parseFloat(cell.style.height), tab: cell.tabIndex, kind: cell.className }))'''


def choose(page, ids):
    return page.run(f'({CHOOSE})({json.dumps([str(i) for i in ids])})')


def rows(page):
    """Return the rows of the list. All of them are laid out first, including those that are out of sight."""
    page.run("for (const row of document.querySelectorAll('.row')) row.style.contentVisibility = 'visible'; 0")
    return page.run(ROWS)


def check_bars(page):
    found = rows(page)
    most = max(sum(int(bytes_) for bytes_, _ in row['bar']) for row in found)
    for row in found:
        check([bytes_ for bytes_, _ in row['bar']] == row['bytes'], row)
        for bytes_, width in row['bar']:
            check(abs(width - row['width'] * int(bytes_) / (most or 1)) < 0.2, row)
            counts['bars'] += 1
    return found


def check_map(page):
    """The areas of cells with the same parent are in proportion to bytes; the cells lie inside it without overlap."""
    cells = page.run(CELLS)
    check(cells and [cell['tab'] for cell in cells].count(0) == 1, cells)
    around = {}
    for i, cell in enumerate(cells):
        holders = [j for j, other in enumerate(cells) if other['level'] == cell['level'] - 1 and
                   all(other[at] <= cell[at] + 0.02 and cell[at] + cell[size] <= other[at] + other[size] + 0.02
                       for at, size in (('x', 'width'), ('y', 'height')))]
        check(len(holders) == (cell['level'] > 1), cell, holders)
        around.setdefault(tuple(holders), []).append(i)
    for holders, inner in around.items():
        check(not holders or sum(int(cells[i]['bytes']) for i in inner) <= int(cells[holders[0]]['bytes']), holders)
        first = cells[inner[0]]
        unit = first['width'] * first['height'] / int(first['bytes'])
        for i in inner:
            cell = cells[i]
            area = cell['width'] * cell['height']
            check(abs(area - unit * int(cell['bytes'])) <= 2e-3 * area + 0.1, cell, first)
            counts['cells'] += 1
        for a, b in itertools.islice(itertools.combinations(inner, 2), 2000):
            a, b = cells[a], cells[b]
            check(min(a['x'] + a['width'], b['x'] + b['width']) - max(a['x'], b['x']) < 0.02 or
                  min(a['y'] + a['height'], b['y'] + b['height']) - max(a['y'], b['y']) < 0.02, a, b)
    return cells


def whole_of_map(page, total):
    """The first-level cells cover the whole filesystem, except what is too small to be drawn."""
    cells = [cell for cell in page.run(CELLS) if cell['level'] == 1]
    area = page.run("document.getElementById('map').clientWidth * document.getElementById('map').clientHeight")
    drawn = sum(int(cell['bytes']) for cell in cells)
    check(drawn <= total and sum(cell['width'] * cell['height'] for cell in cells) >= area * 0.99 * drawn / total)
    check(drawn > total * 0.98, drawn, total)


def verify_clean(page, *what):
    check(page.complaints() == [], what, page.complaints())


# Expected values

def du(path, *args):
    code, out, err = run('du', '--noscan', '--format=json', *args, path)
    check(code == 0, err)
    return [json.loads(line) for line in out.splitlines()[1:]]


def check_subset(page, subset, answer, alone):
    said = choose(page, subset)
    check(said['space'] == [str(answer[f'freed_{name}']) for name in AMOUNTS], subset, said, answer)
    check(said['both'] == str(answer['freed_data'] + answer['freed_metadata']), said)
    check(said['held'] == [[str(held['id']), held['hold']] for held in answer['held']], subset, said, answer)
    check(len(said['next']) == min(len(alone), 10) and said['next'] == alone[:10], subset, said['next'], alone)
    counts['subsets'] += 1


def freed(path, subsets):
    """Run the command several times, because the length of a command line is limited."""
    answers = []
    for at in range(0, len(subsets), 500):
        answers += du(path, *(f'--freed-by={",".join(map(str, subset))}' for subset in subsets[at:at + 500]))
    return {frozenset(subset): answer for subset, answer in zip(subsets, answers)}


def both(answer):
    return answer['freed_data'] + answer['freed_metadata']


def check_subsets(page, path, ids, subsets):
    """For each subset: what it frees, and how much each further subvolume would add, which is the difference to the
    larger subset."""
    subsets = [sorted(subset) for subset in subsets]
    larger = [sorted({*subset, one}) for subset in subsets for one in ids if one not in subset]
    answers = freed(path, [list(one) for one in {tuple(subset) for subset in subsets + larger if subset}])
    for subset in subsets:
        if not subset:
            continue
        base = both(answers[frozenset(subset)])
        alone = [(both(answers[frozenset({*subset, one})]) - base, one) for one in ids if one not in subset]
        alone = sorted((one for one in alone if one[0]), key=lambda one: (-one[0], ids.index(one[1])))
        check_subset(page, subset, answers[frozenset(subset)], [[str(one), str(more)] for more, one in alone])


def verify_image(page, path, rng, subsets=15):
    """Compare the page of an image."""
    found = du(path)
    owners = {row['id']: row for row in found if row.get('owner') in ('subvolume', 'dying')}
    # Subvolumes that are being deleted come last.
    ids = sorted(owners, key=lambda number: (owners[number]['owner'] == 'dying', number))
    shown = check_bars(page)
    check({int(row['id']) for row in shown} == set(ids) and len(shown) == len(ids), shown, ids)
    for row in shown:
        owner = owners[int(row['id'])]
        check(row['bytes'] == [str(owner['exclusive']['data']), str(owner['shared']['data']),
                               str(owner['referenced']['metadata'])], row, owner)
    total, = (row['total']['referenced'] for row in found if 'total' in row)
    whole_of_map(page, total['data'] + total['metadata'])
    check_map(page)
    if len(ids) < 6:
        chosen = [s for n in range(1, len(ids) + 1) for s in itertools.combinations(ids, n)]
    else:
        chosen = [rng.sample(ids, rng.randint(1, len(ids))) for _ in range(subsets)]
    check_subsets(page, path, ids, chosen)
    return ids


def check_directories(page, path, file):
    """The directories of `--paths` that free something; on the map each contains its subdirectories and the rest."""
    with open(file, encoding='utf-8') as f:
        data = json.loads(DATA.search(f.read()).group(2))
    above, said, inner = [], [], {}
    for depth, name, sizes, *subvolume in data['directories']:
        del above[depth:]
        above.append('' if not depth else f'{above[-1]}/{name}')
        frees, total, unshared = map(int, sizes.split())
        said.append((above[-1] or '/', frees, total, unshared))
        check(bool(subvolume) == (not depth or f'{above[-1]}' in [o.get('path') for o in data['owners']]), above[-1])
        inner[above[-1] or '/'] = [frees, []]
        if depth:
            inner[above[-2] or '/'][1].append(frees)
    check(said == [(row['path'], row['frees'], row['total'], row['unshared']) for row in du(path, '--paths')
                   if row['frees']], said)
    page.run("document.getElementById('view').value = 'directories'; "
             "document.getElementById('view').dispatchEvent(new Event('change'))")
    entries = [('all data', [int(data['total'].split()[0]), [frees for name, frees, *_ in said if name == '/']])]
    seen = 0
    while entries and seen < 12:
        name, (frees, below) = entries.pop(0)
        seen += 1
        wanted = sorted((size for size in (*below, frees - sum(below)) if size), reverse=True)
        cells = sorted((int(cell['bytes']) for cell in check_map(page) if cell['level'] == 1), reverse=True)
        check(cells == wanted[:len(cells)] and sum(cells) * 1.02 >= sum(wanted), name, cells, wanted)
        counts['directories'] += 1
        button = page.run("document.querySelector('#map-list button')?.getAttribute('aria-label')")
        if button:
            page.run("document.querySelector('#map-list button').click()")
            below = button.removeprefix('zoom into ')
            name = '/' if name == 'all data' else below if name == '/' else f'{name}/{below}'
            name = name if name.startswith('/') else f'/{name}'
            check(name in inner or '\\' in name, name)
            if name in inner:
                entries.append((name, inner[name]))
