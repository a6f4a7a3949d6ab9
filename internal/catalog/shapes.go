package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"retort/internal/base/seal"
	"retort/internal/catalog/infer"
)

const (
	shapesFormat = 1
	shapesSuffix = ".shapes.json"
	shapesLock   = "shapes.lock"
	maxShapes    = 64 << 20 // bytes of a file
)

// shapesBody holds what was learned of a server's tools, by name. Its file has the same header as a file of
// definitions.
type shapesBody map[string]shapeEntry

type shapeEntry struct {
	Pin     string       `json:"pin"`
	Answers int          `json:"answers"`
	Steady  int          `json:"steady"`
	Shape   *infer.Shape `json:"shape"`
}

// shapesName returns the name of a server's file.
func shapesName(server string) string {
	return strings.TrimSuffix(fileName(server), suffix) + shapesSuffix
}

// load reads the stored shapes of all servers.
func (l *learner) load() {
	if l == nil {
		return
	}
	files, _ := filepath.Glob(filepath.Join(l.catalog.dir, "*"+shapesSuffix))
	for _, path := range files {
		server, body, err := readShapes(path)
		if err != nil {
			l.catalog.problem(Problem{File: path, Message: "it is ignored: " + err.Error()})
			continue
		}
		l.mu.Lock()
		l.merge(server, body)
		l.mu.Unlock()
		l.catalog.mu.Lock()
		if s, ok := l.catalog.servers[server]; ok {
			l.listed(server, s.tools)
		}
		l.catalog.mu.Unlock()
	}
}

func readShapes(path string) (server string, body shapesBody, err error) {
	data, err := seal.ReadFile(path, maxShapes)
	if err != nil {
		return "", nil, err
	}
	first, rest, found := bytes.Cut(data, []byte("\n"))
	var h header
	sum := sha256.Sum256(rest)
	switch {
	case !found || json.Unmarshal(first, &h) != nil:
		return "", nil, fmt.Errorf("it is not a catalog file, or it is incomplete")
	case h.Format != shapesFormat:
		return "", nil, fmt.Errorf("its format is %d, this version reads %d", h.Format, shapesFormat)
	case hex.EncodeToString(sum[:]) != h.SHA256 || json.Unmarshal(rest, &body) != nil:
		return "", nil, fmt.Errorf("it is damaged")
	case shapesName(h.Server) != filepath.Base(path):
		return "", nil, fmt.Errorf("it is the file of another server, %q", h.Server)
	}
	return h.Server, body, nil
}

// merge joins a server's stored shapes with the known ones. The caller holds mu.
func (l *learner) merge(server string, body shapesBody) {
	for name, e := range body {
		k := l.servers[server][name]
		switch {
		case e.Shape == nil || e.Answers < 1:
		case k == nil && len(l.servers[server]) < maxLearned:
			k = &learned{pin: e.Pin, count: e.Answers}
			k.take(e.Shape)
			k.steady = e.Steady
			l.put(server, name, k)
			l.tell(k)
		case k != nil && k.pin == e.Pin:
			k.take(e.Shape)
			k.count = e.Answers + k.fresh
			l.tell(k)
		}
	}
}

// save writes unsaved shapes. Another engine may have written in the meantime, so its shapes are joined first.
func (l *learner) save() {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	servers := l.unsaved
	l.unsaved = map[string]bool{}
	l.mu.Unlock()
	if l.catalog.dir == "" {
		return
	}
	for server := range servers {
		if err := l.write(server); err != nil {
			l.catalog.problem(Problem{Server: server, Message: "what was learned of its tools' answers is not kept for the next start: " + err.Error()})
		}
	}
}

func (l *learner) write(server string) error {
	unlock, err := seal.Lock(filepath.Join(l.catalog.dir, shapesLock), lockPatience)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(l.catalog.dir, shapesName(server))
	_, kept, _ := readShapes(path) // damaged files are rewritten
	data, err := l.joined(server, kept)
	if err != nil || same(path, data) {
		return err
	}
	return writeFile(path, data)
}

// joined returns the content of a server's file: what is known of its current tools.
func (l *learner) joined(server string, kept shapesBody) ([]byte, error) {
	pins := l.catalog.pinsOf(server)
	for name, e := range kept {
		if pin, listed := pins[name]; listed && pin != e.Pin {
			delete(kept, name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.merge(server, kept)
	body := shapesBody{}
	for name, k := range l.servers[server] {
		k.fresh = 0
		body[name] = shapeEntry{k.pin, k.count, k.steady, k.shape}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	first, err := json.Marshal(header{shapesFormat, server, hex.EncodeToString(sum[:])})
	return append(append(first, '\n'), text...), err
}

// pinsOf returns the pins of a server's tools, by name.
func (c *Catalog) pinsOf(server string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	pins := map[string]string{}
	if s, ok := c.servers[server]; ok {
		for _, t := range s.tools {
			pins[t.Name] = t.Pin
		}
	}
	return pins
}
