// SPDX-License-Identifier: LGPL-2.1-or-later
/* The list of subvolumes, the selection, and the space that deleting it would free. */
const NEXT_SHOWN = 10;

const choice = {
	chosen: new Uint8Array(owners.length),	/* indexed by owner */
	rows: [],		/* { o, row, box, next, search } in display order */
	last: null,		/* row that was changed last, start of a range with Shift */
	next: null,		/* indexed by owner: additional space freed by adding it to the selection */
};

/* Number of bytes of a full-width bar. */
const widest = choosable.reduce((most, o) => whole(o.referenced) > most ? whole(o.referenced) : most, 0n);

function barPart(kind, bytes) {
	const part = element('span', { 'class': kind, title: sizeText(bytes) });
	part.style.width = `${widest ? Number(bytes) / Number(widest) * 100 : 0}%`;
	part.dataset.bytes = bytes;
	return part;
}

function barText(o) {
	return `data exclusive ${sizeText(o.exclusive.data)}, shared ${sizeText(o.shared.data)}, ` +
		`metadata ${sizeText(o.referenced.metadata)}`;
}

function ownerFacts(o) {
	const facts = [`number ${o.id}`, dateText(o.created)];
	if (o.read_only)
		facts.push('read-only');
	if (o.snapshot)
		facts.push('snapshot');
	if (o.orphans !== '0')
		facts.push(`files without a name: ${o.orphans}`);
	if (whole(o.log))
		facts.push(`${sizeText(whole(o.log))} more in its log`);
	return facts.filter(Boolean).join(' · ');
}

function makeRow(o) {
	const box = element('input', { type: 'checkbox', autocomplete: 'off' });
	const name = element('span', { 'class': 'name' }, ownerName(o), element('small', {}, ownerFacts(o)));
	const next = element('span', { 'class': 'number', role: 'cell', 'data-label': 'would free' });
	const bar = element('span', { 'class': 'bar', role: 'img', 'aria-label': barText(o) },
		barPart('exclusive', o.exclusive.data), barPart('shared', o.shared.data),
		barPart('metadata', o.referenced.metadata));
	const number = (label, bytes) => sized('span', { 'class': 'number', role: 'cell', 'data-label': label }, bytes);
	const row = element('div', { 'class': 'row', role: 'row', 'data-id': o.id },
		element('span', { role: 'cell' }, element('label', {}, box, name)),
		element('span', { role: 'cell' }, bar), number('exclusive', o.exclusive.data),
		number('shared', o.shared.data), number('metadata', o.referenced.metadata), next);
	return { o, row, box, next, search: `${o.id} ${ownerName(o)} ${o.path || ''}`.toLowerCase() };
}

/* Select or deselect owners, and update the page. */
function choose(those, on) {
	for (const o of those)
		choice.chosen[o.number] = on ? 1 : 0;
	showChoice();
}

function chosenOwners() {
	return choosable.filter(o => choice.chosen[o.number]);
}

function showHeld() {
	at('held').replaceChildren(...holds(choice.chosen).map(([o, why, other]) =>
		element('li', { 'data-id': o.id, 'data-hold': why }, 'Linux does not delete ',
			element('span', { 'class': 'name' }, owned(o)), `: ${HOLDS[why](other)}`)));
}

function showNext() {
	const open = choosable.filter(o => !choice.chosen[o.number]);
	const most = open.map(o => ({ o, ...choice.next[o.number], bytes: whole(choice.next[o.number]) }))
		.filter(one => one.bytes).sort((a, b) => descending(a.bytes, b.bytes) || a.o.number - b.o.number);
	at('next').replaceChildren(...most.slice(0, NEXT_SHOWN).map(({ o, data, metadata, bytes }) => {
		const button = element('button', { type: 'button', 'data-id': o.id,
			title: `data ${exactText(data)}, metadata ${exactText(metadata)}` },
		element('span', { 'class': 'name' }, owned(o)), sized('span', { 'class': 'number' }, bytes));
		button.addEventListener('click', () => {
			choose([o], true);
			at('next').querySelector('button')?.focus();
		});
		return element('li', {}, button);
	}));
	if (!most.length)
		at('next').append(element('li', {}, open.length ? 'No other subvolume alone would free anything.' :
			'All are selected.'));
}

function showChoice() {
	const { freed, next } = deletion(choice.chosen);
	const those = chosenOwners();
	choice.next = next;
	at('freed-of').textContent = !those.length ? 'Nothing is selected' :
		`Deleting ${countText(those.length, 'subvolume', 'subvolumes')} frees`;
	showSize(at('freed-both'), whole(freed));
	at('freed-parts').replaceChildren(...[['data', freed.data], ['uncompressed', freed.uncompressed],
		['metadata', freed.metadata]].flatMap(([name, bytes]) => [element('dt', {}, name),
		sized('dd', { id: `freed-${name}` }, bytes)]),
	...[['extents', freed.extents], ['blocks', freed.blocks]].flatMap(([name, n]) => [
		element('dt', {}, name === 'blocks' ? 'tree blocks' : name),
		element('dd', { id: `freed-${name}`, 'data-bytes': n }, String(n))]));
	showHeld();
	showNext();
	at('command').textContent = those.length ? `btrkit du --freed-by ${those.map(o => o.id).join(',')}` : '';
	for (const { o, row, box, next: cell } of choice.rows) {
		const on = Boolean(choice.chosen[o.number]);
		box.checked = on;
		row.classList.toggle('chosen', on);
		const bytes = whole(next[o.number]);
		cell.textContent = on ? '' : sizeText(bytes);
		cell.title = on ? '' : exactText(bytes);
	}
}

const ORDERS = {
	number: (a, b) => a.o.number - b.o.number,
	path: (a, b) => ownerName(a.o) < ownerName(b.o) ? -1 : ownerName(a.o) > ownerName(b.o) ? 1 : 0,
	created: (a, b) => (a.o.created || 0) - (b.o.created || 0),
	exclusive: (a, b) => descending(a.o.exclusive.data, b.o.exclusive.data),
	shared: (a, b) => descending(a.o.shared.data, b.o.shared.data),
	metadata: (a, b) => descending(a.o.referenced.metadata, b.o.referenced.metadata),
	next: (a, b) => descending(whole(choice.next[a.o.number]), whole(choice.next[b.o.number])),
};

function sortRows() {
	const order = ORDERS[at('sort').value];
	choice.rows.sort((a, b) => order(a, b) || a.o.number - b.o.number);
	at('rows-body').replaceChildren(...choice.rows.map(({ row }) => row));
}

function filterRows() {
	const words = at('search').value.toLowerCase().split(/\s+/).filter(Boolean);
	let shown = 0;
	for (const { row, search } of choice.rows) {
		row.hidden = !words.every(word => search.includes(word));
		shown += row.hidden ? 0 : 1;
	}
	at('shown').textContent = `${shown} of ${countText(choice.rows.length, 'subvolume', 'subvolumes')} shown.`;
}

/* Select the displayed rows from the last changed one to this one. */
function chooseRange(to, on) {
	const shown = choice.rows.filter(({ row }) => !row.hidden);
	const from = shown.indexOf(choice.last), end = shown.indexOf(to);
	if (from < 0)
		choose([to.o], on);
	else
		choose(shown.slice(Math.min(from, end), Math.max(from, end) + 1).map(({ o }) => o), on);
}

function rowEvents(one) {
	let shift = false;
	/* Click events generated by the keyboard do not have shiftKey set. */
	one.box.addEventListener('keydown', event => { shift = event.shiftKey; });
	one.box.addEventListener('keyup', () => setTimeout(() => { shift = false; }));
	one.row.querySelector('label').addEventListener('mousedown', event => {
		shift = event.shiftKey;
		/* Do not select text. */
		if (shift)
			event.preventDefault();
	});
	one.box.addEventListener('change', () => {
		if (shift)
			chooseRange(one, one.box.checked);
		else
			choose([one.o], one.box.checked);
		choice.last = one;
		shift = false;
	});
}

function startChoice() {
	choice.rows = choosable.map(makeRow);
	choice.rows.forEach(rowEvents);
	at('sort').value = 'number';
	at('search').value = '';
	sortRows();
	filterRows();
	showChoice();
	at('sort').addEventListener('change', sortRows);
	at('search').addEventListener('input', filterRows);
	at('all').addEventListener('click', () => choose(choice.rows.filter(({ row }) => !row.hidden).map(({ o }) => o),
		true));
	at('none').addEventListener('click', () => choose(choosable, false));
}
