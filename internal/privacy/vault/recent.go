package vault

import "sync/atomic"

// recent represents some of the tokens of a type that were asked for more than once: few values make most of what
// servers answer. It may be used concurrently.
type recent struct {
	told   [1 << recentBits]atomic.Pointer[told]
	missed [1 << recentBits]atomic.Uint32 // hashes of what was asked for last, and was not there
}

// told represents the token of a value, which comes from these servers.
type told struct {
	value, token string
	from         []string
}

const recentBits = 8

// find returns what was told of a value with a hash; nil if nothing is known of that.
func (r *recent) find(h uint64, value string) *told {
	if t := r.told[h%(1<<recentBits)].Load(); t != nil && t.value == value {
		return t
	}
	return nil
}

// tell remembers what is told the second time, unless something else came in between: where
// there are many values it would only make garbage.
func (r *recent) tell(h uint64, known *record, token string) {
	i := h % (1 << recentBits)
	if tag := uint32(h >> 32); r.missed[i].Swap(tag) == tag {
		r.told[i].Store(&told{value: string(known.value), token: token, from: known.from})
	}
}
