package guest

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// reseedScript is a script that replaces Math.random with another generator, xoshiro128++. The engine's own generator
// is seeded when the engine is created and cannot be reseeded.
const reseedScript = `(function () {
	'use strict';
	let a = %d, b = %d, c = %d, d = %d;
	function next() {
		let sum = a + d | 0;
		const value = (sum << 7 | sum >>> 25) + a | 0;
		const t = b << 9;
		c ^= a; d ^= b; b ^= c; a ^= d; c ^= t;
		d = d << 11 | d >>> 21;
		return value >>> 0;
	}
	const random = {random() { return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992 }}.random;
	Object.defineProperty(Math, 'random', {value: random, writable: true, enumerable: false, configurable: true});
})()`

// reseedRandom seeds Math.random, so that every copy of this guest has different random numbers.
func (g *guestProgram) reseedRandom() error {
	var seed [16]byte
	_, _ = rand.Read(seed[:]) // never fails
	seed[0] |= 1              // it must not be all zero
	var n [4]int32
	for i := range n {
		n[i] = int32(binary.LittleEndian.Uint32(seed[4*i:]))
	}
	_, ok, err := g.js.evaluateScript(fmt.Sprintf(reseedScript, n[0], n[1], n[2], n[3]), "reseed")
	g.reseeded = true
	if err == nil && !ok {
		err = fmt.Errorf("the guest's random numbers cannot be reseeded")
	}
	return err
}
