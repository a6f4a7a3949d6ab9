// Package home defines where Retort keeps its files. Each path in the data directory, and each path next to the
// user's keys, has a method here. No other package spells out these names.
package home

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Dir holds the path of a data directory. The directory belongs to a project or a user, or it is temporary and is
// removed when its engine ends. Methods only join names; they create nothing. With an empty Dir they return paths
// relative to the working directory, so callers that must not write files check for "" first.
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

// AuditFileName returns the name of the file with the given number in the directory that Audit returns. The numbers
// start at 1. There are several files if several processes wrote entries at the same time, because each process writes
// to its own file.
func AuditFileName(number int) string { return fmt.Sprintf("record-%d.db", number) }

// AuditArchives returns the directory of entries that were moved out of the audit log because they were too old or
// the log was too large.
func (d Dir) AuditArchives() string { return d.join("audit", "archive") }

// AuditCheckpoints returns the directory of the audit log's checkpoints for users without a home directory. Usually
// checkpoints are in User.Checkpoints instead, away from the audit log itself.
func (d Dir) AuditCheckpoints() string { return d.join("audit", "checkpoints") }

// Approvals returns the directory of the sockets through which engines accept decisions from the command line.
func (d Dir) Approvals() string { return d.join("approvals") }

// ApprovalRules returns the file of the approvals with scope "always".
func (d Dir) ApprovalRules() string { return d.join("approvals", "always.json") }

// Pending returns the directory of the journals of executions that wait for a person's approval.
func (d Dir) Pending() string { return d.join("pending") }

// AccessTokens returns the file of Retort's own access tokens for clients over HTTP.
func (d Dir) AccessTokens() string { return d.join("access", "tokens.json") }

// Cache returns the directory of cached tool results.
func (d Dir) Cache() string { return d.join("cache") }

// Catalog returns the directory of cached tool definitions and trusted definitions; without the trusted ones, all tools
// are blocked by default until you trust them again.
func (d Dir) Catalog() string { return d.join("catalog") }

// Vectors returns the directory of the embedding vectors for the tool search.
func (d Dir) Vectors() string { return d.join("catalog", "vectors") }

// Queue returns the directory of the jobs.
func (d Dir) Queue() string { return d.join("queue") }

// Registry returns the file of the most recently fetched list of servers of an MCP registry.
func (d Dir) Registry() string { return d.join("registry.json") }

// Skills returns the directory of the skills of a project.
func (d Dir) Skills() string { return d.join("skills") }

// Spool returns the directory of answers that are too large to keep in memory.
func (d Dir) Spool() string { return d.join("spool") }

// State returns the directory of values that programs keep from one execution to the next.
func (d Dir) State() string { return d.join("state") }

// Templates returns the directory of a project's own templates for prompts.
func (d Dir) Templates() string { return d.join("templates") }

// Vault returns the directory of the encrypted personal values that privacy tokens (placeholders in texts) stand for.
func (d Dir) Vault() string { return d.join("vault") }

// Workspace returns the directory of the files of all sessions.
func (d Dir) Workspace() string { return d.join("workspace") }

// RealValues returns the directory of copies of workspace files in which real values replace privacy tokens.
func (d Dir) RealValues() string { return d.join("realvalues") }

// Sandbox returns the directory of the files that a sandbox backend prepares.
func (d Dir) Sandbox(backend string) string { return d.join(backend) }

// Clients returns the directory of backup copies of client configuration files, made before an install changes them;
// they are always in `~/.local/share/retort`, unless `--home` is given. It also holds the lock for installs.
func (d Dir) Clients() string { return d.join("clients") }

// Machines returns the directory of kernels and saved virtual machines; they are here only if you have no cache
// directory. Otherwise they are in the user's cache directory. All engines of a user share them.
func (d Dir) Machines() string {
	if caches, err := os.UserCacheDir(); err == nil {
		return filepath.Join(caches, "retort", "machines")
	}
	return d.join("machines")
}

// User holds the path of a directory with a user's keys and other files that must not be in a project, where a
// project's servers could write to them. It is "" if the user has no home directory. All methods then return "".
type User string

// UserDir returns the directory that keys names or, if keys is "", the usual one in the user's home directory.
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

// ApprovalsKey returns the file of the key that protects a person's decisions against changes: approvals, trusted
// definitions and access tokens.
func (u User) ApprovalsKey() string { return u.join("approvals.key") }

// AuditKey returns the file of the key that protects the audit log against changes.
func (u User) AuditKey() string { return u.join("audit.key") }

// VaultKey returns the file of the master key, which encrypts the keys of personal values, audit log bodies, jobs and
// logins; it exists only if the key is not in the system's keyring, a variable or an age file.
func (u User) VaultKey() string { return u.join("vault.key") }

// Checkpoints returns the directory of the audit log's checkpoints.
func (u User) Checkpoints() string { return u.join("checkpoints") }

// Logins returns the directory of the stored logins at upstream servers.
func (u User) Logins() string { return u.join("logins") }

// Skills returns the directory of the user's own skills.
func (u User) Skills() string { return u.join("skills") }

// PinCounts returns the directory of write counters of the files with trusted definitions; they reveal that an older
// file was put back.
func (u User) PinCounts() string { return u.join("pinned") }

// TokenCounts returns the directory of write counters of the files with access tokens; they reveal that an older file
// was put back. It also holds the locks of these files.
func (u User) TokenCounts() string { return u.join("tokens") }

// JobMarks returns the directory of the files that mark jobs as begun. d must be an absolute data directory.
func (u User) JobMarks(d Dir) string {
	sum := sha256.Sum256([]byte(d))
	return u.join("begun", hex.EncodeToString(sum[:8]))
}
