// Hosts of URLs: names in Punycode, IPv4 and IPv6 addresses.
'use strict';
const fail = (host) => { throw new TypeError(`Invalid URL: the host "${host}" is not valid`); };

// adapt and encodeLabel are RFC 3492.
function adapt(delta, points, first) {
	delta = first ? Math.floor(delta / 700) : delta >> 1;
	delta += Math.floor(delta / points);
	let k = 0;
	for (; delta > 455; k += 36) {
		delta = Math.floor(delta / 35);
	}
	return k + Math.floor(36 * delta / (delta + 38));
}

function encodeLabel(label) {
	const points = Array.from(label, (c) => c.codePointAt(0));
	const basic = points.filter((p) => p < 128);
	let out = String.fromCodePoint(...basic) + (basic.length > 0 ? '-' : '');
	let n = 128, delta = 0, bias = 72;
	const digit = (d) => String.fromCharCode(d < 26 ? d + 97 : d + 22);
	for (let done = basic.length; done < points.length; delta++, n++) {
		const next = Math.min(...points.filter((p) => p >= n));
		delta += (next - n) * (done + 1);
		n = next;
		for (const p of points) {
			if (p < n) {
				delta++;
			}
			if (p !== n) {
				continue;
			}
			let q = delta;
			for (let k = 36; ; k += 36) {
				const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
				if (q < t) {
					break;
				}
				out += digit(t + (q - t) % (36 - t));
				q = Math.floor((q - t) / (36 - t));
			}
			out += digit(q);
			bias = adapt(delta, done + 1, done === basic.length);
			delta = 0;
			done++;
		}
	}
	return `xn--${out}`;
}

function parseIPv4(host) {
	const parts = host.replace(/\.$/, '').split('.');
	if (!/^(?:\d+|0x[0-9a-f]*)$/i.test(parts.at(-1))) {
		return undefined;
	}
	const numbers = parts.map((p) => {
		if (/^0x[0-9a-f]*$/i.test(p)) {
			return parseInt(p.slice(2) || '0', 16);
		}
		if (!/^\d+$/.test(p)) {
			fail(host);
		}
		return /^0\d/.test(p) ? (/[89]/.test(p) ? fail(host) : parseInt(p, 8)) : parseInt(p, 10);
	});
	const last = numbers.pop();
	if (numbers.length > 3 || numbers.some((n) => n > 255) || last >= 256 ** (4 - numbers.length)) {
		fail(host);
	}
	const address = numbers.reduce((sum, n, i) => sum + n * 256 ** (3 - i), last);
	return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}

function parseIPv6(host) {
	let text = host.slice(1, -1);
	const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
	if (dotted !== null) {
		const [a, b, c, d] = dotted[2].split('.').map(Number);
		if ([a, b, c, d].some((n) => n > 255)) {
			fail(host);
		}
		text = `${dotted[1]}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
	}
	const halves = text.split('::');
	const groups = (part) => (part === '' ? [] : part.split(':').map((g) => (/^[0-9a-f]{1,4}$/i.test(g) ? parseInt(g, 16) : fail(host))));
	const [head, tail] = [groups(halves[0]), halves.length === 2 ? groups(halves[1]) : []];
	const missing = 8 - head.length - tail.length;
	if (halves.length > 2 || (halves.length === 2 ? missing < 1 : missing !== 0)) {
		fail(host);
	}
	const all = [...head, ...new Array(missing).fill(0), ...tail].map((g) => g.toString(16));
	const zeros = [...all.join(':').matchAll(/\b0(?::0\b)+/g)].sort((a, b) => b[0].length - a[0].length)[0];
	if (zeros === undefined) {
		return `[${all.join(':')}]`;
	}
	const joined = all.join(':');
	const before = joined.slice(0, zeros.index).replace(/:$/, ''), after = joined.slice(zeros.index + zeros[0].length).replace(/^:/, '');
	return `[${before}::${after}]`;
}

// parseHost gives the host of a URL with a special scheme as it is written.
exports.parseHost = function parseHost(raw) {
	if (raw.startsWith('[')) {
		return raw.endsWith(']') ? parseIPv6(raw) : fail(raw);
	}
	let host;
	try {
		host = decodeURIComponent(raw).normalize('NFKC').toLowerCase();
	} catch {
		fail(raw);
	}
	host = host.replace(/[\u3002\uff0e\uff61]/g, '.').replace(/[\u00ad\u200b\u2060\ufeff]/g, '');
	host = host.split('.').map((label) => (/[^\x00-\x7f]/.test(label) ? encodeLabel(label) : label)).join('.');
	if (host === '' || /[\x00-\x20"#%/:<>?@[\\\]^`{|}\x7f]/.test(host)) {
		fail(raw);
	}
	return parseIPv4(host) ?? host;
};
