package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

func TestIncoming(t *testing.T) {
	w, err := NewStore(t.TempDir(), 100+3*entryCost).Open("s")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	in, err := w.Create(t.Context(), ".txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = in.Write([]byte(strings.Repeat("x", 60)))
	if files, _, _ := w.FindFiles("files", "*.txt", 9); len(files) != 0 {
		t.Errorf("it is there too early: %v", files)
	}
	name, size, err := in.Commit()
	in.Abort() // which is too late
	if data, err := os.ReadFile(filepath.Join(w.Folder(), name)); err != nil || len(data) != 60 || size != 60 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if err != nil || w.used != (spaceUsage{60, 2}) { // with the folder
		t.Errorf("used %v, %v", w.used, err)
	}
	full, err := w.Create(t.Context(), ".txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = full.Write(make([]byte, 40))
	if _, err := full.Write([]byte("x")); err == nil || !strings.Contains(core.AsError(err).Message, "EDQUOT") {
		t.Errorf("over the quota: %v", err)
	}
	full.Abort()
	left, _ := os.ReadDir(filepath.Join(w.Folder(), "files"))
	if len(left) != 1 || w.used != (spaceUsage{60, 2}) {
		t.Errorf("left: %v, used %v", left, w.used)
	}
}
