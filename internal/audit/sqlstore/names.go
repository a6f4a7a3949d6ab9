package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// maxNames bounds the number of names in the cache. The cache is emptied when it is full.
const maxNames = 1 << 16

// nameCache caches the numbers by which the database stores names. Strings that repeat, such as tool names, are
// stored once and referred to by number. A name keeps its number forever. It is safe for concurrent use.
type nameCache struct {
	mu   sync.RWMutex
	ids  map[string]int64
	text map[int64]string
}

func (n *nameCache) lookupID(name string) (id int64, ok bool) {
	if name == "" {
		return 0, true
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	id, ok = n.ids[name]
	return id, ok
}

func (n *nameCache) lookupName(id int64) (name string, ok bool) {
	if id == 0 {
		return "", true
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, ok = n.text[id]
	return name, ok
}

func (n *nameCache) addName(id int64, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ids == nil || len(n.ids) >= maxNames {
		n.ids, n.text = map[string]int64{}, map[int64]string{}
	}
	n.ids[name], n.text[id] = id, name
}

// nameOf returns the name for which the database stores the number id.
func (s *sqlStore) nameOf(ctx context.Context, id int64) (string, error) {
	if name, ok := s.names.lookupName(id); ok {
		return name, nil
	}
	var name []byte
	err := s.db.QueryRowContext(ctx, s.bindParameters("SELECT name FROM names WHERE id = ?"), id).Scan(&name)
	if err == nil {
		s.names.addName(id, string(name))
	}
	return string(name), err
}

// rowQuerier is implemented by connection pools, connections and transactions.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// findName returns the number of a name. ok is false if the database does not contain the name.
func (s *sqlStore) findName(ctx context.Context, q rowQuerier, name string) (id int64, ok bool, err error) {
	if id, ok := s.names.lookupID(name); ok {
		return id, true, nil
	}
	err = q.QueryRowContext(ctx, s.bindParameters("SELECT id FROM names WHERE name = ?"), []byte(name)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err == nil {
		s.names.addName(id, name)
	}
	return id, err == nil, err
}

// internName returns the number of a name, and adds the name if it is new. It runs outside of the transaction that
// writes entries, so that all writers see the new number at once.
func (s *sqlStore) internName(ctx context.Context, c *sql.Conn, name string) (int64, error) {
	id, ok, err := s.findName(ctx, c, name)
	if ok || err != nil {
		return id, err
	}
	if _, err := c.ExecContext(ctx, s.bindParameters("INSERT INTO names (name) VALUES (?) ON CONFLICT DO NOTHING"), []byte(name)); err != nil {
		return 0, err
	}
	id, ok, err = s.findName(ctx, c, name)
	if !ok && err == nil {
		err = errors.New("a name was not stored")
	}
	return id, err
}
