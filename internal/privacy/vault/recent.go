package vault

import "sync/atomic"

// recentTokens caches tokens of one type whose values were requested more than once. The cache is worthwhile because
// a few values make up most of what servers return. It is safe for concurrent use.
type recentTokens struct {
	told   [1 << recentBits]atomic.Pointer[cachedToken]
	missed [1 << recentBits]atomic.Uint32 // hash of the last value missed in each slot
}

// cachedToken holds the token of a value and the servers that the value came from.
type cachedToken struct {
	value, token string
	from         []string
}

const recentBits = 8

// findToken returns the cached token of the value, whose hash is h, or nil.
func (r *recentTokens) findToken(h uint64, value string) *cachedToken {
	if t := r.told[h%(1<<recentBits)].Load(); t != nil && t.value == value {
		return t
	}
	return nil
}

// rememberToken caches a token as soon as its value was requested twice, with no request for another value of the
// same cache slot in between. Caching every value at its first request would only create garbage when there are many
// values.
func (r *recentTokens) rememberToken(h uint64, known *frameRecord, token string) {
	i := h % (1 << recentBits)
	if tag := uint32(h >> 32); r.missed[i].Swap(tag) == tag {
		r.told[i].Store(&cachedToken{value: string(known.value), token: token, from: known.from})
	}
}
