package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"retort/internal/base/seal"
)

const (
	countsFile       = "tokens.json"
	maxUnsavedCounts = 256 // number of counts that a crash may lose
)

// tokenCounts stores the token counts of definitions in a file, by pin (hash of the definition).
type tokenCounts struct {
	path string // "": the counts are not stored

	mu    sync.Mutex
	known map[string]int
	fresh int // number of counts set since the last save
}

type countsBody struct {
	Format int            `json:"format"`
	Tokens map[string]int `json:"tokens"`
}

func newCounts() *tokenCounts { return &tokenCounts{known: map[string]int{}} }

func (c *tokenCounts) loadFile() error {
	data, err := seal.ReadFile(c.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var b countsBody
	if err := json.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	if b.Format != fileFormat {
		return fmt.Errorf("its format version is %d, but this Retort reads version %d", b.Format, fileFormat)
	}
	for pin, n := range b.Tokens {
		if n >= 0 {
			c.known[pin] = n
		}
	}
	return nil
}

func (c *tokenCounts) tokenCount(pin string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.known[pin]
	return n, ok
}

// setCount stores a count. It returns true if the counts should be saved.
func (c *tokenCounts) setCount(pin string, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.known[pin]; pin == "" || n < 0 || ok && old == n {
		return false
	}
	c.known[pin] = n
	c.fresh++
	return c.fresh%maxUnsavedCounts == 0
}

// saveFile writes the counts of these pins to the file and forgets all others.
func (c *tokenCounts) saveFile(pins map[string]bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fresh == 0 {
		return nil
	}
	for pin := range c.known {
		if !pins[pin] {
			delete(c.known, pin)
		}
	}
	if c.path == "" {
		return nil
	}
	data, err := json.Marshal(countsBody{fileFormat, c.known})
	if err == nil {
		err = writeFile(c.path, data)
	}
	if err == nil {
		c.fresh = 0
	}
	return err
}
