package audit

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"

	"retort/internal/core"
)

// bodyKey holds a key that encrypts bodies. If the key is destroyed in the store while its execution is running, the
// engine still encrypts further bodies with it, and nobody can ever read these bodies.
type bodyKey struct {
	BodyKey
	aead cipher.AEAD
	read time.Time // when it was created or last seen in the store
	kept bool      // it needs no writing: it is stored or queued, or lost is set
	lost bool      // it was destroyed and must never be stored
}

// ringReadPause is how long a session's key is used before the log checks again that the store still has it.
const ringReadPause = time.Minute

// keyID returns the ID of the key for the body of a row. This is the key of the row's execution, if it has one,
// otherwise the key of its session, otherwise the key of the chain.
func keyID(r *LogRow) string {
	switch {
	case r.Execution != "":
		return r.Execution
	case r.Session == "" && r.Principal == "":
		return r.Chain
	}
	sum := sha256.Sum256(appendText(appendText(nil, r.Principal), r.Session))
	return r.Chain + ":" + encodeHex(sum[:12])
}

// keyOf returns the key that encrypts the body of a row, and creates it if necessary.
func (l *Log) keyOf(r *LogRow) (*bodyKey, error) {
	id := keyID(r)
	if k := l.cachedKey(id, r); k != nil {
		return k, nil
	}
	var made *bodyKey
	var err error
	if core.EventKind(r.Kind) == core.EventRequest {
		made, err = l.newKey(r, false)
	} else {
		made, err = l.readOrCreateKey(r)
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Chain != l.head.Chain {
		return made, nil // a new chain has begun meanwhile, and put encrypts the body again
	}
	if k := l.keys[id]; k != nil && (!k.kept || k.read.Equal(made.read) || k.read.After(made.read)) {
		return k, nil // somebody else was as quick
	}
	l.keys[id] = made
	l.sweepKeys()
	return made, nil
}

// cachedKey returns a key from memory. It returns nil if memory does not hold the key, or if the log must check again
// that the key still exists in the store.
func (l *Log) cachedKey(id string, r *LogRow) *bodyKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.keys[id]
	if k != nil && (r.Chain != l.head.Chain || r.Execution == "" && l.isStale(k)) {
		return nil
	}
	return k
}

// isStale reports whether a session's key was last seen in the store so long ago that the log must look for it there
// again.
func (l *Log) isStale(k *bodyKey) bool {
	return k.kept && l.failed == nil && l.o.Now().Sub(k.read) > ringReadPause
}

// sweepKeys removes stale session keys from memory if it holds many keys. The caller must hold l.mu.
func (l *Log) sweepKeys() {
	if len(l.keys) < 4096 {
		return
	}
	for id, k := range l.keys {
		if strings.HasPrefix(id, l.head.Chain+":") && l.isStale(k) {
			delete(l.keys, id)
		}
	}
}

func (l *Log) newKey(r *LogRow, lost bool) (*bodyKey, error) {
	k := &bodyKey{BodyKey: BodyKey{ID: keyID(r), Session: r.Session, Principal: r.Principal}, read: l.o.Now(), kept: lost, lost: lost}
	secret := make([]byte, keySize)
	_, _ = rand.Read(secret) // never fails
	k.Wrapped = sealText(l.wrap, secret, k.ID)
	var err error
	k.aead, err = newAEAD(secret)
	return k, err
}

// readOrCreateKey reads a key from the store, or returns a new one if the store does not have it. If the execution
// already has entries, its key must have been destroyed. In that case the new key is never stored.
func (l *Log) readOrCreateKey(r *LogRow) (*bodyKey, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	id := keyID(r)
	store, _ := l.currentStore()
	kept, err := store.Keys(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	if found, ok := kept[id]; ok {
		k := &bodyKey{BodyKey: found, read: l.o.Now(), kept: true}
		k.aead, err = unwrapKey(l.wrap, found)
		return k, err
	}
	lost := false
	if r.Execution != "" {
		for _, err := range store.Find(ctx, Filter{Executions: []string{r.Execution}, Limit: 1, Bare: true}) {
			if err != nil {
				return nil, err
			}
			lost = true
		}
	}
	return l.newKey(r, lost)
}

// unwrapKey decrypts the key of a body and returns a cipher that uses it.
func unwrapKey(wrap cipher.AEAD, k BodyKey) (cipher.AEAD, error) {
	secret, err := openText(wrap, k.Wrapped, k.ID)
	if err != nil {
		return nil, err
	}
	return newAEAD(secret)
}
