// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The tree that the map draws. A node has
 *	name		shown, escaped
 *	kind		'exclusive', 'shared', 'own', 'other': its colour; 'group': drawn as its children
 *	data, metadata	bytes
 *	sharers		of shared space: number of owners
 *	path()		of a directory: its full path
 *	owners()	its owners, or null
 *	children()	nodes that add up to it, largest first, or null
 */
const FOLD = 400;	/* maximum children drawn of a node; the rest is drawn as one node, which can be entered */

function bothOf(node) {
	return BigInt.asUintN(64, node.data + node.metadata);
}

function descending(a, b) {
	return a < b ? 1 : a > b ? -1 : 0;
}

function sum(nodes) {
	let data = 0n, metadata = 0n;
	for (const node of nodes) {
		data += node.data;
		metadata += node.metadata;
	}
	return { data: BigInt.asUintN(64, data), metadata: BigInt.asUintN(64, metadata) };
}

function fold(nodes) {
	const sorted = nodes.filter(node => bothOf(node)).sort((a, b) => descending(bothOf(a), bothOf(b)));
	if (sorted.length <= FOLD + 1)
		return sorted;
	const rest = sorted.slice(FOLD);
	const folded = group(`${rest.length} smaller ones`, rest);
	return [...sorted.slice(0, FOLD), { ...folded, kind: rest[0].kind, sharers: rest[0].sharers }];
}

function group(name, nodes, more) {
	let folded = null;
	return {
		name, kind: 'group', ...sum(nodes), owners: () => null, ...more,
		children: () => {
			folded ??= fold(nodes);
			return folded;
		},
	};
}

function exclusiveNode(o) {
	return {
		name: ownerName(o), kind: o.choosable ? 'exclusive' : 'other', data: o.exclusive.data,
		metadata: o.exclusive.metadata, owners: () => [o], children: () => null,
	};
}

function setName(i) {
	const named = setOwners(i, 3).map(ownerName).join(', ');
	return sets.sizes[i] > 3 ? `${named} and ${sets.sizes[i] - 3} more` : named;
}

function setNode(i) {
	return {
		get name() { return setName(i); }, kind: 'shared', sharers: sets.sizes[i],
		data: fromHalves(sets.low[DATA][i], sets.high[DATA][i]),
		metadata: fromHalves(sets.low[METADATA][i], sets.high[METADATA][i]),
		owners: () => setOwners(i, Infinity), children: () => null,
	};
}

/* Groups of owners that share space, directly or indirectly. Groups without common space are separate in the map. */
function families() {
	const n = owners.length;
	const above = Uint32Array.from({ length: n }, (_, i) => i);
	const find = i => {
		while (above[i] !== i) {
			above[i] = above[above[i]];
			i = above[i];
		}
		return i;
	};
	const covered = new Int32Array(n + 1);
	for (let i = 0; i < sets.n; i++)
		for (let run = sets.firstRun[i]; run < sets.firstRun[i + 1]; run++) {
			covered[sets.starts[run]]++;
			covered[sets.ends[run] - 1]--;
			above[find(sets.starts[run])] = find(sets.starts[sets.firstRun[i]]);
		}
	for (let place = 0, depth = 0; place + 1 < n; place++) {
		depth += covered[place];
		if (depth)
			above[find(place + 1)] = find(place);
	}
	const found = new Map();
	for (let place = 0; place < n; place++) {
		const family = find(place);
		if (!found.has(family))
			found.set(family, { owners: [], bySharers: new Map() });
		found.get(family).owners.push(owners[ownerAt[place]]);
	}
	for (let i = 0; i < sets.n; i++) {
		if (sets.sizes[i] < 2)
			continue;
		const { bySharers } = found.get(find(sets.starts[sets.firstRun[i]]));
		if (!bySharers.has(sets.sizes[i]))
			bySharers.set(sets.sizes[i], []);
		bySharers.get(sets.sizes[i]).push(i);
	}
	return [...found.values()];
}

function familyNodes(family) {
	const alone = family.owners.map(exclusiveNode);
	if (!family.bySharers.size)
		return alone;
	const shared = [...family.bySharers].map(([sharers, numbers]) => {
		const nodes = numbers.map(setNode);
		return nodes.length === 1 ? nodes[0] : group(`shared by ${sharers}`, nodes, { sharers });
	});
	return [group('exclusive', alone), ...shared];
}

function buildTree() {
	const found = families();
	const sharing = found.filter(family => family.bySharers.size);
	const nodes = found.flatMap(family => {
		const own = familyNodes(family);
		if (sharing.length < 2 || !family.bySharers.size)
			return own;
		const first = family.owners.reduce((a, b) => a.number < b.number ? a : b);
		return [group(`${ownerName(first)} and ${family.owners.length - 1} that share with it`, own)];
	});
	if (unowned.data || unowned.metadata)
		nodes.push({
			name: '(unreachable)', kind: 'other', data: unowned.data, metadata: unowned.metadata,
			owners: () => null, children: () => null,
		});
	return group('whole filesystem', nodes);
}

const PATH_SHOWN = 4000;	/* characters; longer paths are cut off at the beginning */

function directoryPath(directory) {
	const names = [];
	let length = 0;
	for (let one = directory; one && length < PATH_SHOWN; one = one.parent) {
		names.unshift(one.name);
		length += one.name.length + 1;
	}
	return (length < PATH_SHOWN ? '' : '…') + names.join('/').replace(/^\/\//, '/');
}

/*
 * The size of a directory is the data that deleting it would free. The part not in any subdirectory consists of its own
 * files, and of data that they share with subdirectories, or subdirectories with each other.
 */
function directoryNode(directory) {
	const { name, subvolume, frees, below } = directory;
	const top = byId.get(subvolume);
	const leaf = { data: frees, metadata: 0n, owners: () => null, children: () => null };
	const path = () => directoryPath(directory);
	if (!below.length)
		return { ...leaf, name, path, kind: 'exclusive', owners: () => top ? [top] : null };
	const own = {
		...leaf, name: 'its own files, and data shared within it', kind: 'own', data: frees - sum(below).data,
		path: () => `${path()}: its own files, and data shared within it`,
	};
	return group(name, [...below, own], { data: frees, path });
}

function buildDirectories() {
	const all = [], above = [];
	for (const [depth, name, sizes, subvolume] of input.directories) {
		const top = byId.get(subvolume);
		const directory = {
			name: depth ? escapeName(name) : top ? ownerName(top) : `(subvolume ${subvolume})`, subvolume,
			frees: BigInt(sizes.split(' ')[0]), parent: depth ? above[depth - 1] : null, below: [],
		};
		all.push(directory);
		above.length = depth;
		above.push(directory);
	}
	/* Children come after their parents. No recursion, because the nesting may be deeper than the stack allows. */
	const nodes = [];
	for (const directory of all.reverse())
		(directory.parent ? directory.parent.below : nodes).push(directoryNode(directory));
	const rest = total.data - sum(nodes).data;
	nodes.push({
		name: '(what deleting no directory frees)', kind: 'other', data: rest > 0n ? rest : 0n, metadata: 0n,
		owners: () => null, children: () => null,
	});
	return group('all data', nodes);
}
