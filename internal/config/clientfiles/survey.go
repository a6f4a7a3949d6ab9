package clientfiles

import (
	"os"
	"os/exec"
	"path/filepath"
)

// SurveyedFile describes a client's file, and whether Retort is in it.
type SurveyedFile struct {
	Client  string
	Scope   FileScope
	File    string
	Retort  bool
	Missing string   // program with which the client would start Retort, if it does not exist
	Others  []string // names of the servers that the client starts itself
	Err     error    // why the file cannot be read
}

// SurveyClients reads the existing files of all clients and describes each. It does not change them.
func SurveyClients(e Environment) []SurveyedFile {
	var all []SurveyedFile
	for _, c := range AllClients() {
		for _, p := range c.places {
			for _, path := range e.existingPaths(p) {
				if s, ok := e.surveyFile(&c, p, path); ok {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// surveyFile reads and describes one client file. ok is false if the file lists no servers.
func (e Environment) surveyFile(c *Client, p filePlace, path string) (s SurveyedFile, ok bool) {
	s = SurveyedFile{Client: c.Name, Scope: p.scope, File: path}
	if !pathExists(path) {
		return s, false
	}
	list, err := e.readServers(c, p, path)
	s.Err = err
	for _, one := range list {
		switch {
		case !one.entry.startsRetort(one.Name):
			s.Others = append(s.Others, one.Name)
		case !one.Disabled:
			s.Retort = true
			if !canStart(one.entry.command) {
				s.Missing = one.entry.command
			}
		}
	}
	return s, err != nil || len(list) > 0
}

// canStart reports whether a command, given as a path or as a name in PATH, names an existing program.
func canStart(command string) bool {
	if filepath.IsAbs(command) {
		info, err := os.Stat(command)
		return err == nil && !info.IsDir()
	}
	_, err := exec.LookPath(command)
	return err == nil
}
