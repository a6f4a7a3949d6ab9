package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"retort/internal/base/htmlpage"
	"retort/internal/base/seal"
	"retort/internal/core"
)

// writePage writes an HTML page to the file name, completely or not at all.
func (a *app) writePage(name string, p htmlpage.Page) error {
	if err := seal.ReplaceWith(name, seal.ReplaceOptions{Temporary: pageTemporary, Mode: 0o644}, p.Write); err != nil {
		return errPage(name, err)
	}
	fmt.Fprintf(a.stderr, "wrote %s\n", name)
	return nil
}

// mayWritePage returns an error if the page cannot be written. Call it before a long measurement, so that the user
// learns of the problem early.
func mayWritePage(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return errPage(name, errors.New("it is a directory"))
	}
	file, err := os.CreateTemp(filepath.Dir(name), pageTemporary)
	if err != nil {
		return errPage(name, err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// pageTemporary is the name pattern of the temporary file to which a page is written before it is renamed.
const pageTemporary = ".retort-page-*"

func errPage(name string, err error) error {
	return core.Errorf(core.KindInvalidArguments, "page", "%s cannot be written: %w", name, err)
}
