// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Input of the page, and data derived from it.
 *
 * Sizes have 64 bits and are never rounded: they are strings in the input, and BigInts here. To add many of them, each
 * is split into two halves of 32 bits, because sums of these are exact in a double.
 */
const AMOUNTS = ['data', 'uncompressed', 'metadata', 'extents', 'blocks'];
const DATA = 0, METADATA = 2;

const input = JSON.parse(document.getElementById('data').textContent);

function readSpace(text) {
	const numbers = text.split(' ');
	return Object.fromEntries(AMOUNTS.map((name, i) => [name, BigInt(numbers[i])]));
}

function whole(space) {
	return BigInt.asUintN(64, space.data + space.metadata);
}

function less(a, b) {
	return Object.fromEntries(AMOUNTS.map(name => [name, BigInt.asUintN(64, a[name] - b[name])]));
}

const total = readSpace(input.total);
const unowned = readSpace(input.unowned);

/* The owners. They are identified by their index everywhere. */
const owners = input.owners.map((o, number) => {
	const referenced = readSpace(o.referenced), exclusive = readSpace(o.exclusive);
	return {
		...o, number, referenced, exclusive, shared: less(referenced, exclusive), log: readSpace(o.log),
		choosable: o.kind === 'subvolume' || o.kind === 'dying',
	};
});
const byId = new Map(owners.filter(o => o.choosable).map(o => [o.id, o]));
const inside = new Map(owners.filter(o => o.parent !== undefined).map(o => [o.id, o.parent]));
const choosable = owners.filter(o => o.choosable);

/*
 * Sets of owners, as runs of places. Owners that share much data have neighbouring places. Run r covers the places from
 * starts[r] up to (not including) ends[r], and set i has the runs from firstRun[i] up to firstRun[i + 1].
 */
const ownerAt = Uint32Array.from(input.order);
const placeOf = new Uint32Array(ownerAt.length);
ownerAt.forEach((owner, place) => { placeOf[owner] = place; });

const sets = (() => {
	const n = input.sets.length;
	const numRuns = input.sets.reduce((sum, set) => sum + (set.length - 1) / 2, 0);
	const s = {
		n, firstRun: new Uint32Array(n + 1), starts: new Uint32Array(numRuns), ends: new Uint32Array(numRuns),
		sizes: new Uint32Array(n),
		low: AMOUNTS.map(() => new Float64Array(n)), high: AMOUNTS.map(() => new Float64Array(n)),
	};
	let run = 0;
	input.sets.forEach((set, i) => {
		const numbers = set[0].split(' ');
		for (let k = 0; k < AMOUNTS.length; k++) {
			const value = BigInt(numbers[k]);
			s.low[k][i] = Number(value & 0xffffffffn);
			s.high[k][i] = Number(value >> 32n);
		}
		let place = 0;
		for (let at = 1; at < set.length; at += 2) {
			place += set[at];
			s.starts[run] = place;
			place += set[at + 1];
			s.ends[run++] = place;
			s.sizes[i] += set[at + 1];
		}
		s.firstRun[i + 1] = run;
	});
	return s;
})();
input.sets = null;

function fromHalves(low, high) {
	return BigInt.asUintN(64, (BigInt(high) << 32n) + BigInt(low));
}

function setSpace(i) {
	return Object.fromEntries(AMOUNTS.map((name, k) => [name, fromHalves(sets.low[k][i], sets.high[k][i])]));
}

/* The first @max owners of a set. */
function setOwners(i, max) {
	const found = [];
	for (let run = sets.firstRun[i]; run < sets.firstRun[i + 1]; run++)
		for (let place = sets.starts[run]; place < sets.ends[run]; place++) {
			if (found.length >= max)
				return found;
			found.push(owners[ownerAt[place]]);
		}
	return found.sort((a, b) => a.number - b.number);
}

/* The only place in the run that is not chosen. */
function placeMissing(before, start, end) {
	while (end - start > 1) {
		const middle = (start + end) >>> 1;
		if (before[middle] - before[start] < middle - start)
			end = middle;
		else
			start = middle;
	}
	return start;
}

/*
 * Space freed by deleting the chosen owners: the sum of all sets without any other owner. Also, for each other owner,
 * the space freed by deleting it in addition: the sum of the sets in which it is the only one not chosen.
 */
function deletion(chosen) {
	const n = owners.length;
	const before = new Uint32Array(n + 1);
	for (let place = 0; place < n; place++)
		before[place + 1] = before[place] + (chosen[ownerAt[place]] ? 1 : 0);
	const low = AMOUNTS.map(() => 0), high = AMOUNTS.map(() => 0);
	const next = [DATA, METADATA].map(() => ({ low: new Float64Array(n), high: new Float64Array(n) }));
	for (let i = 0; i < sets.n; i++) {
		let missing = 0, place = -1;
		for (let run = sets.firstRun[i]; run < sets.firstRun[i + 1] && missing < 2; run++) {
			const start = sets.starts[run], end = sets.ends[run];
			const lacking = end - start - (before[end] - before[start]);
			missing += lacking;
			if (lacking === 1)
				place = placeMissing(before, start, end);
		}
		if (missing === 0) {
			for (let k = 0; k < AMOUNTS.length; k++) {
				low[k] += sets.low[k][i];
				high[k] += sets.high[k][i];
			}
		} else if (missing === 1) {
			[DATA, METADATA].forEach((k, at) => {
				next[at].low[ownerAt[place]] += sets.low[k][i];
				next[at].high[ownerAt[place]] += sets.high[k][i];
			});
		}
	}
	return {
		freed: Object.fromEntries(AMOUNTS.map((name, k) => [name, fromHalves(low[k], high[k])])),
		next: owners.map(o => ({
			data: fromHalves(next[0].low[o.number], next[0].high[o.number]),
			metadata: fromHalves(next[1].low[o.number], next[1].high[o.number]),
		})),
	};
}

/* The chosen subvolumes that Linux would not delete: an array of [owner, reason, other id]. */
function holds(chosen) {
	const asked = owners.filter(o => o.kind === 'subvolume' && chosen[o.number]);
	const held = new Map();
	const isAsked = id => byId.has(id) && byId.get(id).kind === 'subvolume' && chosen[byId.get(id).number];
	/* The first nested subvolume that stays. */
	const stays = new Map();
	for (const [id, parent] of inside)
		if (!isAsked(id) && !stays.has(parent))
			stays.set(parent, id);
	for (const o of asked) {
		if (o.hold === 'top-level' || o.hold === 'default')
			held.set(o.id, [o, o.hold]);
		else if (stays.has(o.id))
			held.set(o.id, [o, 'holds', stays.get(o.id)]);
		else if (o.hold)
			held.set(o.id, [o, o.hold, o.other]);
	}
	for (const o of asked) {
		let child = o.id;
		while (held.has(child)) {
			const above = inside.get(child);
			if (above === undefined || !isAsked(above) || held.has(above))
				break;
			held.set(above, [byId.get(above), 'holds', child]);
			child = above;
		}
	}
	return asked.filter(o => held.has(o.id)).map(o => held.get(o.id));
}
