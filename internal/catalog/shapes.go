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
	maxShapes    = 64 << 20 // size of a file in bytes
)

// shapesBody holds the learned result types of a server's tools, by tool name. It is stored in its own file, which
// has the same header as a file of definitions.
type shapesBody map[string]shapeEntry

type shapeEntry struct {
	Pin     string             `json:"pin"`
	Answers int                `json:"answers"`
	Steady  int                `json:"steady"`
	Shape   *infer.AnswerShape `json:"shape"`
}

// shapesName returns the name of the file with the learned types of a server.
func shapesName(server string) string {
	return strings.TrimSuffix(fileName(server), toolsSuffix) + shapesSuffix
}

// loadShapes reads the result types that were learned and stored for the tools of each server.
func (l *shapeLearner) loadShapes() {
	if l == nil {
		return
	}
	files, _ := filepath.Glob(filepath.Join(l.catalog.dir, "*"+shapesSuffix))
	for _, path := range files {
		server, body, err := readShapes(path)
		if err != nil {
			l.catalog.addProblem(CatalogProblem{File: path, Message: "it is ignored: " + err.Error()})
			continue
		}
		l.mu.Lock()
		l.mergeServer(server, body)
		l.mu.Unlock()
		l.catalog.mu.Lock()
		if s, ok := l.catalog.servers[server]; ok {
			l.dropOutdated(server, s.tools)
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
	var h fileHeader
	sum := sha256.Sum256(rest)
	switch {
	case !found || json.Unmarshal(first, &h) != nil:
		return "", nil, fmt.Errorf("it is not a catalog file, or it is incomplete")
	case h.Format != shapesFormat:
		return "", nil, fmt.Errorf("its format version is %d, but this Retort reads version %d", h.Format, shapesFormat)
	case hex.EncodeToString(sum[:]) != h.SHA256 || json.Unmarshal(rest, &body) != nil:
		return "", nil, fmt.Errorf("it is damaged")
	case shapesName(h.Server) != filepath.Base(path):
		return "", nil, fmt.Errorf("it belongs to another server, %q", h.Server)
	}
	return h.Server, body, nil
}

// mergeServer merges the stored types of a server into the known ones. The caller must hold mu.
func (l *shapeLearner) mergeServer(server string, body shapesBody) {
	for name, e := range body {
		k := l.servers[server][name]
		switch {
		case e.Shape == nil || e.Answers < 1:
		case k == nil && len(l.servers[server]) < maxLearned:
			k = &learnedTool{pin: e.Pin, count: e.Answers}
			k.joinShape(e.Shape)
			k.steady = e.Steady
			l.storeLearned(server, name, k)
			l.publishShape(k)
		case k != nil && k.pin == e.Pin:
			k.joinShape(e.Shape)
			k.count = e.Answers + k.fresh
			l.publishShape(k)
		}
	}
}

// saveShapes writes unsaved types to disk. It first merges the types in the file, because another engine may have
// written them.
func (l *shapeLearner) saveShapes() {
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
		if err := l.writeShapes(server); err != nil {
			l.catalog.addProblem(CatalogProblem{
				Server:  server,
				Message: "the result types learned from its tools' answers are not kept for the next start: " + err.Error(),
			})
		}
	}
}

func (l *shapeLearner) writeShapes(server string) error {
	unlock, err := seal.Lock(filepath.Join(l.catalog.dir, shapesLock), lockTimeout)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(l.catalog.dir, shapesName(server))
	_, kept, _ := readShapes(path) // damaged files are rewritten
	data, err := l.joinedFile(server, kept)
	if err != nil || hasContents(path, data) {
		return err
	}
	return writeFile(path, data)
}

// joinedFile returns the new content of the file with a server's learned types. It merges the learned types of the
// current tools with the argument kept, the types that the file contains now.
func (l *shapeLearner) joinedFile(server string, kept shapesBody) ([]byte, error) {
	pins := l.catalog.pinsOf(server)
	for name, e := range kept {
		if pin, listed := pins[name]; listed && pin != e.Pin {
			delete(kept, name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mergeServer(server, kept)
	body := shapesBody{}
	for name, k := range l.servers[server] {
		k.fresh = 0
		body[name] = shapeEntry{k.pin, k.count, k.steady, k.shape} // without a shared type
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	first, err := json.Marshal(fileHeader{shapesFormat, server, hex.EncodeToString(sum[:])})
	return append(append(first, '\n'), text...), err
}

// pinsOf returns the pins (definition hashes) of a server's tools, by name.
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
