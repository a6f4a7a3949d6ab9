package vault

import "sync/atomic"

// recentTokens represents some of the tokens of a type that were asked for more than once: few values make most of what
// servers answer. It may be used concurrently.
type recentTokens struct {
	told   [1 << recentBits]atomic.Pointer[cachedToken]
	missed [1 << recentBits]atomic.Uint32 // hashes of what was asked for last, and was not there
}

// cachedToken represents the token of a value, which comes from these servers.
type cachedToken struct {
	value, token string
	from         []string
}

const recentBits = 8

// findToken returns what was told of a value with a hash; nil if nothing is known of that.
func (r *recentTokens) findToken(h uint64, value string) *cachedToken {
	if t := r.told[h%(1<<recentBits)].Load(); t != nil && t.value == value {
		return t
	}
	return nil
}

// rememberToken remembers what is told the second time, unless something else came in between: where
// there are many values it would only make garbage.
func (r *recentTokens) rememberToken(h uint64, known *frameRecord, token string) {
	i := h % (1 << recentBits)
	if tag := uint32(h >> 32); r.missed[i].Swap(tag) == tag {
		r.told[i].Store(&cachedToken{value: string(known.value), token: token, from: known.from})
	}
}
