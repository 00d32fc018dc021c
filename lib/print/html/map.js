// SPDX-License-Identifier: LGPL-2.1-or-later
/* The map: rectangles with areas in proportion to sizes. Children are drawn inside a node if there is room. */
const HEAD = 20;		/* height of a group's title */
const LEVELS = 3;		/* drawn at a time */
const LEVELS_DIRECTORIES = 6;
const AREA_LEAST = 6;		/* minimum area in square pixels; smaller rectangles are left blank */
const CELLS_MOST = 3000;

const map = {
	path: [],		/* from the whole filesystem to the displayed node */
	measure: 'both',
	levels: LEVELS,
	cells: [],		/* drawn rectangles: { node, parent, x, y, width, height, button } */
	current: 0,		/* index of the cell that Tab moves to */
	width: 0, height: 0,	/* size when the cells were drawn */
};

function measured(node) {
	return map.measure === 'both' ? bothOf(node) : node[map.measure];
}

/*
 * Divide a rectangle in proportion to values, which are in descending order. Rows are filled along the shorter side; a
 * row ends where another value would make its rectangles less square. @return [x, y, width, height] for each value
 */
function squarify(values, x, y, width, height) {
	const placed = [];
	let left = values.reduce((all, value) => all + value, 0);
	if (!(left > 0))
		return placed;
	const scale = width * height / left;
	let i = 0;
	while (i < values.length) {
		const side = Math.min(width, height);
		let row = values[i] * scale, end = i + 1, worst = Math.max(side * side / row, row / (side * side));
		while (end < values.length) {
			const wider = row + values[end] * scale;
			const ratio = Math.max(side * side * values[i] * scale / (wider * wider),
				wider * wider / (side * side * values[end] * scale));
			if (ratio > worst)
				break;
			worst = ratio;
			row = wider;
			end++;
		}
		const thick = row / side;
		for (let along = 0; i < end; i++) {
			const length = values[i] * scale / thick;
			placed.push(width >= height ? [x, y + along, thick, length] : [x + along, y, length, thick]);
			along += length;
		}
		if (width >= height) {
			x += thick;
			width = Math.max(width - thick, 0);
		} else {
			y += thick;
			height = Math.max(height - thick, 0);
		}
	}
	return placed;
}

/* Children with a size, largest first; null if there are no children. */
function largestFirst(children) {
	return children && children.filter(measured).sort((a, b) => descending(measured(a), measured(b)));
}

/* All cells for a node, parents before their children. */
function layOut(node, width, height) {
	const cells = [];
	const queue = [{ node, parent: null, x: 0, y: 0, width, height, level: 0 }];
	for (let at = 0; at < queue.length && cells.length < CELLS_MOST; at++) {
		const box = queue[at];
		const children = largestFirst(box.node.children());
		const head = box.level ? HEAD : 0, edge = box.level ? 3 : 0;
		const inner = [box.x + edge, box.y + head, box.width - 2 * edge, box.height - head - edge];
		if (box.level)
			cells.push(box);
		box.opened = Boolean(children?.length) && box.level < map.levels && inner[2] > 40 && inner[3] > 24;
		if (!box.opened)
			continue;
		squarify(children.map(child => Number(measured(child))), ...inner).forEach(([x, y, w, h], i) => {
			const cell = { node: children[i], parent: box, level: box.level + 1 };
			if (w * h >= AREA_LEAST)
				queue.push({ ...cell, x, y, width: w, height: h });
		});
	}
	return cells;
}

function colour(node) {
	if (node.kind === 'group' && node.sharers === undefined)
		return 'group';
	if (node.sharers === undefined)
		return node.kind;
	return node.sharers <= 2 ? 'shared' : node.sharers <= 8 ? 'shared more' : 'shared most';
}

function describe(node) {
	const alone = node.kind === 'exclusive' && !node.path;
	const how = alone ? ', exclusive' : node.sharers ? `, shared by ${node.sharers}` : '';
	return `${node.path ? node.path() : node.name}${how}, ${sizeText(measured(node))}`;
}

function cellButton(cell) {
	const { node, width, height, opened } = cell;
	const tiny = width < 34 || height < 16;
	const button = element('button', {
		'class': `cell ${opened ? 'group' : colour(node)}${tiny ? ' tiny' : ''}`, type: 'button', tabIndex: -1,
		'aria-label': describe(node), title: `${describe(node)} (${exactText(measured(node))})`,
	});
	if (!tiny)
		button.append(element('span', { 'class': 'name' }, node.name));
	if (!tiny && width > 70 && (opened || height > 34))
		button.append(element('span', { 'class': 'size' }, sizeText(measured(node))));
	button.style.left = `${cell.x}px`;
	button.style.top = `${cell.y}px`;
	button.style.width = `${width}px`;
	button.style.height = `${height}px`;
	button.dataset.bytes = measured(node);
	button.dataset.level = cell.level;
	button.addEventListener('click', () => enter(cell));
	button.addEventListener('focus', () => setCurrent(map.cells.indexOf(cell)));
	return button;
}

function drawMap() {
	const area = at('map');
	const node = map.path[map.path.length - 1];
	const focused = area.contains(document.activeElement) ? map.cells[map.current]?.node : null;
	map.width = area.clientWidth;
	map.height = area.clientHeight;
	map.cells = layOut(node, map.width, map.height);
	for (const cell of map.cells)
		cell.button = cellButton(cell);
	area.replaceChildren(...map.cells.map(cell => cell.button));
	area.setAttribute('aria-label', `Map of the space: ${describe(node)}`);
	setCurrent(Math.max(map.cells.findIndex(cell => cell.node === focused), 0));
	if (focused)
		map.cells[map.current]?.button.focus({ preventScroll: true });
}

function setCurrent(i) {
	if (map.cells[map.current])
		map.cells[map.current].button.tabIndex = -1;
	map.current = i;
	if (map.cells[i])
		map.cells[i].button.tabIndex = 0;
}

function drawCrumbs() {
	at('crumbs').replaceChildren(...map.path.map((node, i) => {
		const button = element('button', { type: 'button', 'class': 'name', title: node.name },
			`${i ? '› ' : ''}${node.name}`);
		if (i + 1 === map.path.length)
			button.setAttribute('aria-current', 'location');
		button.addEventListener('click', () => zoom(map.path.slice(0, i + 1)));
		return button;
	}));
}

const LISTED = 100;

function drawList() {
	const items = largestFirst(map.path[map.path.length - 1].children()) || [];
	at('map-list').querySelector('ol').replaceChildren(...items.slice(0, LISTED).map(node => {
		const item = element('li', {}, element('span', { 'class': 'name' }, describe(node)), ' ');
		if (node.children()?.length) {
			const label = { 'aria-label': `zoom into ${node.name}` };
			const button = element('button', { type: 'button', ...label }, 'zoom in');
			button.addEventListener('click', () => zoom([...map.path, node]));
			item.append(button);
		}
		return item;
	}));
	if (items.length > LISTED)
		at('map-list').querySelector('ol').append(element('li', {},
			`and ${items.length - LISTED} smaller ones`));
}

function zoom(path) {
	map.path = path;
	at('detail').replaceChildren();
	drawCrumbs();
	drawMap();
	drawList();
}

/* Display the node of a cell, or, if it has no children, details about it. */
function enter(cell) {
	const path = [];
	for (let one = cell; one.parent; one = one.parent)
		path.unshift(one.node);
	if (cell.node.children()?.length) {
		zoom([...map.path, ...path]);
		return;
	}
	const node = cell.node;
	const line = element('p', {}, element('span', { 'class': 'name' }, describe(node)),
		`: data ${sizeText(node.data)}, metadata ${sizeText(node.metadata)}. `);
	const those = (node.owners() || []).filter(o => o.choosable);
	if (those.length) {
		const button = element('button', { type: 'button' },
			those.length > 1 ? `Select these ${those.length}` : 'Select it');
		button.addEventListener('click', () => choose(those, true));
		line.append(button);
	}
	at('detail').replaceChildren(line);
	if (those.length > 1) {
		const names = those.slice(0, LISTED).map(owned).join(', ');
		const more = those.length > LISTED ? ` and ${those.length - LISTED} more` : '';
		at('detail').append(element('p', { 'class': 'name help' }, names + more));
	}
}

const ARROWS = {
	ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
};

/* The nearest cell in a direction; sideways distance has more weight. */
function neighbour(from, [dx, dy]) {
	const middle = cell => [cell.x + cell.width / 2, cell.y + (cell.opened ? HEAD / 2 : cell.height / 2)];
	const [x, y] = middle(from);
	let best = null, least = Infinity;
	for (const cell of map.cells) {
		const [cx, cy] = middle(cell);
		const along = (cx - x) * dx + (cy - y) * dy, aside = Math.abs((cx - x) * dy) + Math.abs((cy - y) * dx);
		if (cell !== from && along > .5 && along + 2 * aside < least) {
			least = along + 2 * aside;
			best = cell;
		}
	}
	return best;
}

function mapKey(event) {
	const cell = map.cells[map.current];
	if (ARROWS[event.key] && cell) {
		neighbour(cell, ARROWS[event.key])?.button.focus();
		event.preventDefault();
	} else if ((event.key === 'Escape' || event.key === 'Backspace') && map.path.length > 1) {
		zoom(map.path.slice(0, -1));
		event.preventDefault();
	}
}

/* View by sharing, or by directory. The sizes of directories include data only. */
function showView() {
	const directories = at('view').value === 'directories';
	map.levels = directories ? LEVELS_DIRECTORIES : LEVELS;
	map.measure = directories ? 'data' : at('measure').value;
	at('measure').parentElement.hidden = directories;
	at('legend-sharing').hidden = directories;
	at('legend-directories').hidden = !directories;
	zoom([directories ? buildDirectories() : buildTree()]);
}

function startMap() {
	at('view').value = 'sharing';
	at('measure').value = 'both';
	at('view-part').hidden = !input.directories;
	showView();
	at('view').addEventListener('change', showView);
	at('map').addEventListener('keydown', mapKey);
	at('measure').addEventListener('change', event => {
		map.measure = event.target.value;
		drawMap();
		drawList();
	});
	let asked = false;
	new ResizeObserver(() => {
		if (asked || (map.width === at('map').clientWidth && map.height === at('map').clientHeight))
			return;
		asked = true;
		requestAnimationFrame(() => {
			asked = false;
			drawMap();
		});
	}).observe(at('map'));
}
