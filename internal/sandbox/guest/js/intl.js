// Intl: dates and numbers by package intl, and the rest of what programs use of
// it, in English.
'use strict';
const { compare } = require('collator');

delete globalThis.Intl;
native.registerIntl();
const { Intl } = globalThis;

class Service {
	#options;
	constructor(locales, options = {}) { this.#options = { ...options }; }
	get options() { return this.#options; }
	resolvedOptions() { return { locale: 'en-US', ...this.#options }; }
	static supportedLocalesOf(locales) { return Intl.getCanonicalLocales(locales).filter((l) => l.startsWith('en')); }
}

class Collator extends Service {
	#compare = (a, b) => compare(`${a}`, `${b}`, this.options);
	get compare() { return this.#compare; }
	resolvedOptions() { return { locale: 'en-US', usage: 'sort', sensitivity: 'variant', numeric: false, caseFirst: 'false', collation: 'default', ...this.options }; }
}

class PluralRules extends Service {
	select(n) {
		if (this.options.type !== 'ordinal') {
			return n === 1 ? 'one' : 'other';
		}
		const [ones, tens] = [n % 10, n % 100];
		return ones === 1 && tens !== 11 ? 'one' : ones === 2 && tens !== 12 ? 'two' : ones === 3 && tens !== 13 ? 'few' : 'other';
	}
}

class ListFormat extends Service {
	format(list) {
		const items = [...list].map((item) => `${item}`);
		const { type = 'conjunction', style = 'long' } = this.options;
		if (type === 'unit') {
			return items.join(style === 'narrow' ? ' ' : ', ');
		}
		const word = type === 'disjunction' ? 'or' : style === 'long' ? 'and' : '&';
		return items.length < 3 ? items.join(` ${word} `) : `${items.slice(0, -1).join(', ')}, ${word} ${items.at(-1)}`;
	}
}

const names = { '-1 day': 'yesterday', '0 day': 'today', '1 day': 'tomorrow', '0 second': 'now' };

class RelativeTimeFormat extends Service {
	format(value, unit) {
		unit = `${unit}`.replace(/s$/, '');
		if (this.options.numeric === 'auto') {
			const special = names[`${value} ${unit}`] ?? (Math.abs(value) <= 1 && unit !== 'second' && unit !== 'minute' && unit !== 'hour' && Number.isInteger(value) ? `${['last', 'this', 'next'][value + 1]} ${unit}` : undefined);
			if (special !== undefined) {
				return special;
			}
		}
		const amount = `${Math.abs(value).toLocaleString('en-US')} ${unit}${Math.abs(value) === 1 ? '' : 's'}`;
		return value < 0 || Object.is(value, -0) ? `${amount} ago` : `in ${amount}`;
	}
}

const graphemes = /\r\n|\p{RI}\p{RI}|\p{Extended_Pictographic}(?:\p{EMod}|\ufe0f)?(?:\u200d\p{Extended_Pictographic}(?:\p{EMod}|\ufe0f)?)*[\p{M}\ufe0f]*|[^\p{M}][\p{M}\u200d\ufe0f]*|[^]/gu;
const words = /[\p{L}\p{N}_]+(?:['’.][\p{L}\p{N}_]+)*|\s+|[^]/gu;
const sentences = /[^.!?]+[.!?]*\s*|[.!?]+\s*/gu;

class Segmenter extends Service {
	segment(input) {
		const text = `${input}`, granularity = this.options.granularity ?? 'grapheme';
		const pattern = { grapheme: graphemes, word: words, sentence: sentences }[granularity];
		return { *[Symbol.iterator]() {
			for (const match of text.matchAll(pattern)) {
				const segment = match[0];
				yield { segment, index: match.index, input: text, ...(granularity === 'word' && { isWordLike: /[\p{L}\p{N}]/u.test(segment) }) };
			}
		} };
	}
}

for (const type of [Collator, PluralRules, ListFormat, RelativeTimeFormat, Segmenter]) {
	Object.defineProperty(type.prototype, Symbol.toStringTag, { value: `Intl.${type.name}`, configurable: true });
	Object.defineProperty(Intl, type.name, { value: type, writable: true, configurable: true });
}
exports.Intl = Intl;
