// SPDX-License-Identifier: LGPL-2.1-or-later
/* Initial state of the page. */
function describeFilesystem() {
	const label = input.label ? `Label ${escapeName(input.label)}, ` : '';
	at('which').append(element('span', { 'class': 'name' }, label),
		`UUID ${input.fsid}, generation ${input.generation}, ` +
		`${countText(choosable.length, 'subvolume', 'subvolumes')}, ` +
		`${countText(sets.n, 'set', 'different sets')} of subvolumes that share space`);
	if (input.damaged !== '0') {
		at('damage').textContent = `${countText(input.damaged, 'place', 'places')} could not be read or ` +
			'are inconsistent: what they refer to is not counted.';
		at('damage').hidden = false;
	}
	const alone = owners.reduce((sum, o) => ({ data: sum.data + o.exclusive.data,
		metadata: sum.metadata + o.exclusive.metadata }), { data: 0n, metadata: 0n });
	const used = less(total, unowned);
	for (const [name, bytes] of [['data', total.data], ['data, uncompressed', total.uncompressed],
		['metadata', total.metadata], ['exclusive', whole(alone)], ['shared', BigInt.asUintN(64,
			whole(used) - whole(alone))]])
		at('totals').append(element('div', {}, element('dt', {}, name), sized('dd', {}, bytes)));
}

function describeOthers() {
	const others = owners.filter(o => !o.choosable && whole(o.referenced))
		.map(o => [ownerName(o), whole(o.referenced)]);
	if (whole(unowned))
		others.push(['(unreachable)', whole(unowned)]);
	at('others').append(...others.map(([name, bytes]) => element('div', {}, element('dt', {}, name),
		sized('dd', {}, bytes))));
	at('others-part').hidden = !others.length;
}

describeFilesystem();
describeOthers();
startChoice();
startMap();
