package tsc

import (
	"container/list"
	"sync"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/bundled"
	"github.com/microsoft/typescript-go/internal/core"
	"github.com/microsoft/typescript-go/internal/parser"
)

// parseCache caches parsed files by name and content. The files that come with the compiler are never evicted. Of the
// others, the least recently used ones are evicted when their texts exceed limit bytes. A parsed file is bound once
// and is read-only from then on, so that several checks can share it.
type parseCache struct {
	limit int

	mu    sync.Mutex
	libs  map[string]*ast.SourceFile
	files map[fileKey]*list.Element
	order list.List // of *parsed, most recently used first
	bytes int
}

type fileKey struct {
	opts ast.SourceFileParseOptions
	text string
}

type parsed struct {
	key  fileKey
	file *ast.SourceFile
}

func newParseCache(limit int) *parseCache {
	return &parseCache{limit: limit, libs: map[string]*ast.SourceFile{}, files: map[fileKey]*list.Element{}}
}

func (c *parseCache) parse(opts ast.SourceFileParseOptions, text string) *ast.SourceFile {
	if file := c.lookup(opts, text); file != nil {
		return file
	}
	file := parser.ParseSourceFile(opts, text, core.GetScriptKindFromFileName(opts.FileName))
	c.keep(opts, text, file)
	return file
}

func (c *parseCache) lookup(opts ast.SourceFileParseOptions, text string) *ast.SourceFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bundled.IsBundled(opts.FileName) {
		return c.libs[opts.FileName]
	}
	e, ok := c.files[fileKey{opts, text}]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*parsed).file
}

func (c *parseCache) keep(opts ast.SourceFileParseOptions, text string, file *ast.SourceFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bundled.IsBundled(opts.FileName) {
		c.libs[opts.FileName] = file
		return
	}
	key := fileKey{opts, text}
	if _, ok := c.files[key]; ok || len(text) > c.limit/4 {
		return
	}
	c.files[key] = c.order.PushFront(&parsed{key, file})
	c.bytes += len(text)
	for c.bytes > c.limit {
		oldest := c.order.Remove(c.order.Back()).(*parsed)
		delete(c.files, oldest.key)
		c.bytes -= len(oldest.key.text)
	}
}
