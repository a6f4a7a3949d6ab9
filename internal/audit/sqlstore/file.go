package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite"

	"retort/internal/audit"
	"retort/internal/base/seal"
	"retort/internal/core"
)

// sidecarSuffixes lists the suffixes of the files that SQLite keeps next to an open database: its write-ahead log and
// the index of that log.
var sidecarSuffixes = [2]string{"-wal", "-shm"}

// createFile creates the file if it is missing or empty. It returns an error for a file that is not an audit log.
func (e *sqliteEngine) createFile(ctx context.Context) error {
	fresh, err := e.inspectHeader()
	if err != nil {
		return err
	}
	if !fresh && e.fresh {
		return core.Errorf(core.KindInvalidArguments, "store.open", "an audit log already exists at %s: %w", e.path, ErrTaken).
			WithHint("choose another place for the new audit log")
	}
	if !fresh {
		return nil
	}
	if e.left {
		return core.Errorf(core.KindInvalidArguments, "store.open", "the audit log %s: %w", e.path, ErrNone)
	}
	made := e.path + ".new" // nobody else makes one: this process has the lock
	removeUnfinished(made)
	if err := errors.Join(e.makeDatabase(ctx, made), syncPath(made)); err != nil {
		removeUnfinished(made)
		return err
	}
	if err := os.Rename(made, e.path); err != nil {
		removeUnfinished(made)
		return err
	}
	return seal.SyncDir(filepath.Dir(e.path))
}

// makeDatabase creates a database file with empty tables, in write-ahead mode.
func (e *sqliteEngine) makeDatabase(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_ = f.Close()
	made := &sqliteEngine{path: path}
	db, err := sql.Open(
		"sqlite",
		made.fileURI("mode", "rw", "_auto_vacuum", "2", "_pragma", "synchronous(OFF)", "_pragma", fmt.Sprintf("application_id(%d)", applicationID)),
	)
	if err != nil {
		return err
	}
	if err = made.migrateSchema(ctx, db); err == nil {
		_, err = db.ExecContext(ctx, "PRAGMA journal_mode(WAL)")
	}
	return errors.Join(err, db.Close())
}

func syncPath(path string) error {
	f, err := seal.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeUnfinished removes the files of a database whose creation was not completed.
func removeUnfinished(path string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + suffix)
	}
}

// inspectHeader reads the beginning of the file without opening it as a database, which could change it. fresh is
// true if the file is missing or empty. It returns an error if the file is not an audit log. It must not be called
// while this process has the file open as a database, because closing any descriptor of a file releases all locks
// that the process holds on it.
func (e *sqliteEngine) inspectHeader() (fresh bool, err error) {
	f, err := seal.OpenFile(e.path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	var head [100]byte
	n, err := io.ReadFull(f, head[:])
	switch {
	case err == io.EOF:
		return true, nil
	case n == len(head) && string(head[:16]) == "SQLite format 3\x00" && binary.BigEndian.Uint32(head[68:]) == applicationID:
		return false, nil
	case err != nil && n == 0:
		return false, err
	}
	return false, e.foreignFileError()
}

func (e *sqliteEngine) foreignFileError() error {
	return core.Errorf(core.KindInvalidArguments, "store.open", "%s is not an audit log of Retort, or its beginning is damaged", e.path).
		WithHint("nothing was changed; move the file away, or choose another path for the audit log")
}

// moveLog moves entries that an earlier process left in the write-ahead log into the file. This also syncs them
// again: if that process's last sync failed, the entries may have been only in the page cache.
func (e *sqliteEngine) moveLog(ctx context.Context, db *sql.DB) error {
	info, err := os.Lstat(e.path + "-wal")
	if err != nil || info.Size() == 0 {
		return nil
	}
	var busy, log, moved int
	return db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &log, &moved)
}

// noteFiles stores the identities of the database file, its write-ahead log and the index of that log, so that later
// checks notice if any of them was replaced. The connection for writing must be open, so that all three exist.
func (e *sqliteEngine) noteFiles() (err error) {
	if err := e.checkSameFile(e.path, e.file); err != nil {
		return err
	}
	for i, suffix := range sidecarSuffixes {
		if e.sidecars[i], err = os.Lstat(e.path + suffix); err != nil {
			return fmt.Errorf("%w: %w", audit.ErrGone, err)
		}
	}
	return nil
}

// checkSameFile returns an error if the file at the path is no longer the one whose identity was stored earlier,
// which is the argument was.
func (e *sqliteEngine) checkSameFile(path string, was fs.FileInfo) error {
	now, err := os.Lstat(path)
	if was == nil || err == nil && os.SameFile(was, now) {
		return nil
	}
	return core.Errorf(core.KindInternal, "store.append", "the audit log %s: %w: %s", e.path, audit.ErrGone, filepath.Base(path)).
		WithHint("find out what removes files in the data directory; run retort audit verify to see what is missing")
}

// lostFileError returns an error if err is a failed sync, or if the database or one of its log files was deleted or
// replaced. The check costs three calls of lstat, which is little compared with the sync of a write.
func (e *sqliteEngine) lostFileError(err error) error {
	if isSyncError(err) {
		return core.Errorf(core.KindInternal, "store.append", "the audit log %s: %w: %w", e.path, audit.ErrUnsynced, err).
			WithHint("the disk has errors: everything written to this file since then is unreliable. Move the data directory to another disk")
	}
	if errors.Is(err, audit.ErrGone) {
		return err
	}
	for i, suffix := range sidecarSuffixes {
		if err := e.checkSameFile(e.path+suffix, e.sidecars[i]); err != nil {
			return err
		}
	}
	return e.checkSameFile(e.path, e.file)
}

// isSyncError reports whether an error of SQLite means that a file or its folder could not be synced.
func isSyncError(err error) bool {
	const fsync, dirFsync = 10 | 4<<8, 10 | 5<<8 // SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC
	var known *sqlite3.Error
	return errors.As(err, &known) && (known.Code() == fsync || known.Code() == dirFsync)
}
