// Package home says where Retort keeps its files. Each path in the data directory, and each path next to the user's
// keys, has a method here, so that no other package contains such a name.
package home

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Dir represents a data directory: of a project, of a user, or a temporary one that is removed when its engine ends. Its
// methods only join names; they create nothing. The methods of an empty Dir return paths relative to the working
// directory, so callers that must not write files check for "" first.
type Dir string

func (d Dir) join(names ...string) string {
	return filepath.Join(append([]string{string(d)}, names...)...)
}

// Abs returns d as an absolute path.
func (d Dir) Abs() (Dir, error) {
	abs, err := filepath.Abs(string(d))
	return Dir(abs), err
}

// Audit returns the directory of the audit log.
func (d Dir) Audit() string { return d.join("audit") }

// AuditArchives returns the directory of the entries that were moved out of
// the audit log because of their age or its size.
func (d Dir) AuditArchives() string { return d.join("audit", "archive") }

// AuditCheckpoints returns the directory of the audit log's checkpoints for users without a User directory. Usually
// they are in User.Checkpoints instead, away from the audit log itself.
func (d Dir) AuditCheckpoints() string { return d.join("audit", "checkpoints") }

// Approvals returns the directory of the sockets at which engines accept decisions from the command line.
func (d Dir) Approvals() string { return d.join("approvals") }

// ApprovalRules returns the file of the approvals that were given for always.
func (d Dir) ApprovalRules() string { return d.join("approvals", "always.json") }

// Pending returns the directory of the journals of executions that wait for a person.
func (d Dir) Pending() string { return d.join("pending") }

// AccessTokens returns the file of Retort's own access tokens for clients over HTTP.
func (d Dir) AccessTokens() string { return d.join("access", "tokens.json") }

// Cache returns the directory of cached tool results.
func (d Dir) Cache() string { return d.join("cache") }

// Catalog returns the directory of the definitions of tools.
func (d Dir) Catalog() string { return d.join("catalog") }

// Vectors returns the directory of the vectors for searching tools.
func (d Dir) Vectors() string { return d.join("catalog", "vectors") }

// Queue returns the directory of the jobs.
func (d Dir) Queue() string { return d.join("queue") }

// Registry returns the path of the file that caches the list of servers of a registry.
func (d Dir) Registry() string { return d.join("registry.json") }

// Skills returns the directory of the skills of a project.
func (d Dir) Skills() string { return d.join("skills") }

// Spool returns the directory of the answers that are too large for memory.
func (d Dir) Spool() string { return d.join("spool") }

// State returns the directory of the values that programs store between executions.
func (d Dir) State() string { return d.join("state") }

// Templates returns the directory of a project's own templates for prompts.
func (d Dir) Templates() string { return d.join("templates") }

// Vault returns the directory of the values that privacy tokens stand for.
func (d Dir) Vault() string { return d.join("vault") }

// Workspace returns the directory of the files of all sessions.
func (d Dir) Workspace() string { return d.join("workspace") }

// RealValues returns the directory of copies of workspace files that have real values instead of tokens.
func (d Dir) RealValues() string { return d.join("realvalues") }

// Sandbox returns the directory of what a sandbox backend prepares.
func (d Dir) Sandbox(backend string) string { return d.join(backend) }

// Clients returns the directory of copies of clients' files from before an install. It also has the lock that
// installs hold.
func (d Dir) Clients() string { return d.join("clients") }

// Machines returns the directory of kernels and saved virtual machines. All engines of a user share it. It is in the
// user's cache directory, or in d if the user has no cache directory.
func (d Dir) Machines() string {
	if caches, err := os.UserCacheDir(); err == nil {
		return filepath.Join(caches, "retort", "machines")
	}
	return d.join("machines")
}

// User is the directory of a user's keys and of other files that must not be in a project, because servers for the
// project's files could write to them. It is "" if the user has no home directory. All methods then return "".
type User string

// UserDir returns the directory keys or, if that is "", the usual directory in the user's home directory.
func UserDir(keys string) User {
	if keys != "" {
		return User(filepath.Clean(keys))
	}
	userHome, err := os.UserHomeDir()
	if err != nil || userHome == "" {
		return ""
	}
	return User(filepath.Join(userHome, ".local", "share", "retort"))
}

func (u User) join(names ...string) string {
	if u == "" {
		return ""
	}
	return filepath.Join(append([]string{string(u)}, names...)...)
}

// ApprovalsKey returns the file of the key that seals a person's decisions: approvals, trusted definitions and access
// tokens.
func (u User) ApprovalsKey() string { return u.join("approvals.key") }

// AuditKey returns the file of the key that seals the audit log.
func (u User) AuditKey() string { return u.join("audit.key") }

// VaultKey returns the file of the master key, used if the key is neither in a keyring nor elsewhere according to the
// settings. The master key encrypts the keys of personal values, of audit log bodies, of jobs and of logins.
func (u User) VaultKey() string { return u.join("vault.key") }

// Checkpoints returns the directory of the audit log's checkpoints.
func (u User) Checkpoints() string { return u.join("checkpoints") }

// Logins returns the directory of the logins at servers.
func (u User) Logins() string { return u.join("logins") }

// Skills returns the directory of the user's own skills.
func (u User) Skills() string { return u.join("skills") }

// JobMarks returns the directory of the marks of jobs that have begun. d is the data directory, which must be
// absolute.
func (u User) JobMarks(d Dir) string {
	sum := sha256.Sum256([]byte(d))
	return u.join("begun", hex.EncodeToString(sum[:8]))
}
