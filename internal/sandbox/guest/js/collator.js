// Comparison of strings as people sort them: by letters, then by accents, then
// by case, small letters first. It is the order of English, and of most
// languages with Latin letters.
'use strict';
const ascii = /^[\x00-\x7f]*$/;
const marks = /\p{M}+/gu;
const letter = /\p{L}/u;

function bare(text) {
	return ascii.test(text) ? text : text.normalize('NFD').replace(marks, '');
}

// rank orders the kinds of characters: spaces and signs, digits, letters.
function rank(code) {
	if (code < 128) {
		return code >= 97 && code <= 122 || code >= 65 && code <= 90 ? 2 : code >= 48 && code <= 57 ? 1 : 0;
	}
	return letter.test(String.fromCharCode(code)) || code >= 0xd800 && code < 0xe000 ? 2 : 0;
}

const isDigit = (code) => code >= 48 && code <= 57;

function runOfDigits(text, from) {
	let end = from;
	while (end < text.length && isDigit(text.charCodeAt(end))) {
		end++;
	}
	return text.slice(from, end);
}

// byLetters compares texts in small letters without accents.
function byLetters(a, b, numeric) {
	let i = 0, j = 0;
	while (i < a.length && j < b.length) {
		const x = a.charCodeAt(i), y = b.charCodeAt(j);
		if (numeric && isDigit(x) && isDigit(y)) {
			const m = runOfDigits(a, i), n = runOfDigits(b, j);
			const difference = BigInt(m) - BigInt(n);
			if (difference !== 0n) {
				return difference < 0n ? -1 : 1;
			}
			i += m.length;
			j += n.length;
			continue;
		}
		if (x !== y) {
			return Math.sign(rank(x) - rank(y)) || (x < y ? -1 : 1);
		}
		i++;
		j++;
	}
	return Math.sign(a.length - i - (b.length - j));
}

function byCodes(a, b) {
	return a === b ? 0 : a < b ? -1 : 1;
}

function byCase(a, b, upperFirst) {
	for (let i = 0; i < a.length && i < b.length; i++) {
		if (a[i] !== b[i]) {
			const lower = a[i] === a[i].toLowerCase();
			return lower === (b[i] === b[i].toLowerCase()) ? byCodes(a[i], b[i]) : lower !== upperFirst ? -1 : 1;
		}
	}
	return Math.sign(a.length - b.length);
}

exports.compare = function compare(a, b, { numeric = false, sensitivity = 'variant', caseFirst = 'false', ignorePunctuation = false } = {}) {
	if (a === b) {
		return 0;
	}
	if (ignorePunctuation) {
		[a, b] = [a.replace(/[\p{P}\s]/gu, ''), b.replace(/[\p{P}\s]/gu, '')];
	}
	const x = bare(a), y = bare(b);
	const letters = byLetters(x.toLowerCase(), y.toLowerCase(), numeric);
	if (letters !== 0 || sensitivity === 'base') {
		return letters;
	}
	if (sensitivity !== 'case') {
		const accents = byCodes(a.normalize('NFD').toLowerCase(), b.normalize('NFD').toLowerCase());
		if (accents !== 0 || sensitivity === 'accent') {
			return accents;
		}
	}
	return byCase(x, y, caseFirst === 'upper');
};
