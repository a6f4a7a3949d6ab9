package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"retort/internal/audit"
	"retort/internal/core"
)

// failSyncs makes every later fsync and fdatasync of this process fail with EIO.
func failSyncs(t *testing.T) {
	t.Helper()
	number, known := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	if !known {
		t.Skip("the number of seccomp is not known here")
	}
	const load, equal, answer = 0x20, 0x15, 0x06 // BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
	const allow, refuse = 0x7fff0000, 0x00050000 | uint32(syscall.EIO)
	filter := []syscall.SockFilter{
		{Code: load}, // the number of the call
		{Code: equal, Jt: 2, K: syscall.SYS_FSYNC},
		{Code: equal, Jt: 1, K: syscall.SYS_FDATASYNC},
		{Code: answer, K: allow},
		{Code: answer, K: refuse},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	const noNewPrivileges, setFilter, allThreads = 38, 1, 1
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0); e != 0 {
		t.Skip("no filter of system calls can be set here: ", e)
	}
	if _, _, e := syscall.RawSyscall(number, setFilter, allThreads, uintptr(unsafe.Pointer(&program))); e != 0 {
		t.Skip("no filter of system calls can be set here: ", e)
	}
	if err := syscall.Fsync(2); !errors.Is(err, syscall.EIO) {
		t.Fatal("the filter does nothing: ", err)
	}
}

// TestSyncFails checks that nothing counts as written if the disk does not confirm it. The kernel may drop what it
// could not write and report success the next time, so neither the head nor a second attempt is trusted.
func TestSyncFails(t *testing.T) {
	const child = "RETORT_TEST_SYNC_FAILS"
	if dir := os.Getenv(child); dir != "" {
		withoutSync(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSyncFails$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+filepath.Join(t.TempDir(), "audit")+"/")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "SKIP") {
		t.Skipf("%s", out)
	}
}

func withoutSync(t *testing.T, dir string) {
	key := func() ([]byte, error) { return make([]byte, 32), nil }
	s := open(t, dir, Options{})
	log, err := audit.Open(background, s, audit.Options{
		Keys: audit.LogKeys{Bodies: key, Codes: key}, Checkpoints: t.TempDir(),
		Renew: func(ctx context.Context) (audit.LogStore, error) { return Open(ctx, dir, Options{Fresh: true}) },
	})
	must(t, err)
	call := core.AuditEvent{Kind: core.EventCall, Execution: "x", Server: "crm", Tool: "delete", Body: json.RawMessage(`{"arguments":{}}`)}
	if refused := log.Record(core.AuditEvent{Kind: core.EventRequest, Execution: "x"}, true); refused != nil {
		t.Fatal(refused)
	}
	before := head(t, s)
	failSyncs(t)
	for range 20 {
		if refused := log.Record(call, true); refused == nil || !errors.Is(refused, audit.ErrUnsynced) {
			t.Errorf("a call is sent though it may not be written: %v", refused)
		}
	}
	if h, err := s.Head(background); !errors.Is(err, audit.ErrUnsynced) {
		t.Errorf("the head is believed: %v, %v", h, err)
	}
	if err := s.Append(background, audit.WriteBatch{Rows: []audit.LogRow{{Chain: before.Chain, Seq: before.Seq + 1, Hash: []byte("h")}}}); !errors.Is(err, audit.ErrUnsynced) {
		t.Errorf("the file is written again: %v", err)
	}
	if files, err := ListFiles(dir); len(files) != 1 || err != nil {
		t.Errorf("files that could not be synced stay: %v, %v", files, err)
	}
	if left, _ := filepath.Glob(dir + "*.new*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
