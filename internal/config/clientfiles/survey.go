package clientfiles

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Surveyed describes a client's file, and whether Retort is in it.
type Surveyed struct {
	Client  string
	Scope   Scope
	File    string
	Retort  bool
	Missing string   // the program that it would start Retort with, if that is not there
	Others  []string // names of the servers that it starts itself
	Err     error    // it cannot be read
}

// Survey reads the existing files of all clients. It changes none.
func Survey(e Environment) []Surveyed {
	var all []Surveyed
	for _, c := range Table() {
		for _, p := range c.places {
			for _, path := range e.paths(p) {
				if s, ok := e.survey(&c, p, path); ok {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// survey describes one file. ok is false if the file has no servers.
func (e Environment) survey(c *Client, p place, path string) (s Surveyed, ok bool) {
	s = Surveyed{Client: c.Name, Scope: p.scope, File: path}
	if !there(path) {
		return s, false
	}
	list, err := e.servers(c, p, path)
	s.Err = err
	for _, one := range list {
		switch {
		case !one.entry.ourselves(one.Name):
			s.Others = append(s.Others, one.Name)
		case !one.Disabled:
			s.Retort = true
			if !starts(one.entry.command) {
				s.Missing = one.entry.command
			}
		}
	}
	return s, err != nil || len(list) > 0
}

// starts reports whether there is a program of this path or name.
func starts(command string) bool {
	if filepath.IsAbs(command) {
		info, err := os.Stat(command)
		return err == nil && !info.IsDir()
	}
	_, err := exec.LookPath(command)
	return err == nil
}
