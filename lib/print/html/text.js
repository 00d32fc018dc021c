// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Formatting. Names come from a disk and may contain anything, so they are only inserted as text, and characters that
 * are invisible or change the text direction are escaped.
 */
const LETTERS = { 7: 'a', 8: 'b', 9: 't', 10: 'n', 11: 'v', 12: 'f', 13: 'r', 27: 'e' };
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\\]|(?! )\p{Zs}/gu;

function escapeOne(character) {
	const code = character.codePointAt(0);
	if (character === '\\')
		return '\\\\';
	/* A byte that is not part of valid UTF-8. */
	if (code >= 0xdc80 && code <= 0xdcff)
		return '\\' + (code - 0xdc00).toString(8).padStart(3, '0');
	if (code < 0x20 || code === 0x7f)
		return '\\' + (LETTERS[code] || code.toString(8).padStart(3, '0'));
	return `\\u{${code.toString(16)}}`;
}

function escapeName(name) {
	return name.replace(UNSEEN, escapeOne);
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

function sizeText(bytes) {
	let unit = 0;
	for (let rest = bytes; rest >= 1024n; rest >>= 10n)
		unit++;
	if (!unit)
		return `${bytes} B`;
	const one = 1n << BigInt(10 * unit);
	const hundredths = (bytes * 100n + one / 2n) / one;
	return `${hundredths / 100n}.${(hundredths % 100n).toString().padStart(2, '0')} ${UNITS[unit]}`;
}

function exactText(bytes) {
	return `${bytes.toString().replace(/\B(?=(\d{3})+$)/g, '\u202f')} bytes`;
}

function countText(n, one, many) {
	return `${n} ${BigInt(n) === 1n ? one : many}`;
}

const KINDS = {
	'subvolume': o => o.path === undefined ? `(${o.id}, no path)` : escapeName(o.path),
	'dying': o => `(${o.id}, being deleted)`,
	'relocation': o => `(relocation of subvolume ${o.id})`,
	'data-relocation': () => '(relocation of data)',
	'filesystem': () => '(the filesystem itself)',
};

function ownerName(o) {
	o.shownName ??= KINDS[o.kind](o);
	return o.shownName;
}

function dateText(seconds) {
	const date = new Date(seconds * 1000);
	return seconds && !isNaN(date) ? date.toISOString().slice(0, 16).replace('T', ' ') : '';
}

const HOLDS = {
	'top-level': () => 'it is the top level',
	'default': () => 'it is the default subvolume',
	'in-read-only': other => `it is in a read-only subvolume, ${other}`,
	'nowhere': () => 'it is not in any directory',
	'holds': other => `it contains a subvolume that is not deleted, ${other}`,
};

function owned(o) {
	return o.id === undefined ? ownerName(o) : `${o.id} ${ownerName(o)}`;
}

/* Create an element with properties and contents. Strings in the contents become text, never markup. */
function element(name, properties, ...contents) {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(properties || {})) {
		if (key === 'class')
			made.className = value;
		else if (key.includes('-') || key === 'role')
			made.setAttribute(key, value);
		else
			made[key] = value;
	}
	made.append(...contents);
	return made;
}

/* Show a size in readable form, with the exact bytes as title. */
function showSize(target, bytes) {
	target.textContent = sizeText(bytes);
	target.title = exactText(bytes);
	target.dataset.bytes = bytes;
	return target;
}

function sized(name, properties, bytes) {
	return showSize(element(name, properties), bytes);
}

function at(id) {
	return document.getElementById(id);
}
