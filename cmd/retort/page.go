package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"retort/internal/base/htmlpage"
	"retort/internal/core"
)

// writePage writes a page completely or not at all.
func (a *app) writePage(name string, p htmlpage.Page) error {
	file, err := besidePage(name)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(p.Write(file), file.Chmod(0o644), file.Close()); err != nil {
		return errPage(name, err)
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return errPage(name, err)
	}
	fmt.Fprintf(a.stderr, "wrote %s\n", name)
	return nil
}

// mayWritePage returns an error if the page cannot be written. It is called before a measurement, which takes long.
func mayWritePage(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return errPage(name, errors.New("it is a directory"))
	}
	file, err := besidePage(name)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

func besidePage(name string) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".retort-page-")
	if err != nil {
		return nil, errPage(name, err)
	}
	return file, nil
}

func errPage(name string, err error) error {
	return core.Errorf(core.KindInvalidArguments, "page", "%s cannot be written: %w", name, err)
}
