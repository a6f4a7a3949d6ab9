package vminit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sentOrder returns the bytes that CommandOrder.SendTo writes for an order that has one file.
func sentOrder(t testing.TB, content string, size int64, stdin string, stands error) ([]byte, error) {
	t.Helper()
	o := CommandOrder{Files: []OrderFile{{Path: "/usr/bin/tool", Size: size}}, Stdin: int64(len(stdin))}
	var wire bytes.Buffer
	err := o.SendTo(&wire, func(OrderFile) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }, []byte(stdin), func() error { return stands })
	return wire.Bytes(), err
}

func TestOrder(t *testing.T) {
	whole, err := sentOrder(t, "program", 7, "input", nil)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	o, stdin, err := receiveOrder(bytes.NewReader(whole), root)
	if err != nil || string(stdin) != "input" || len(o.Files) != 1 {
		t.Fatal(o, stdin, err)
	}
	made := filepath.Join(root, "usr/bin/tool")
	if data, err := os.ReadFile(made); err != nil || string(data) != "program" {
		t.Errorf("%q %v", data, err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info, err)
	}
	for n := range whole { // half an order is not valid
		if _, _, err := receiveOrder(bytes.NewReader(whole[:n]), t.TempDir()); err == nil {
			t.Errorf("the first %d of %d bytes are an order", n, len(whole))
		}
	}
	other := errors.New("another file")
	if part, err := sentOrder(t, "program", 7, "input", other); !errors.Is(err, other) || bytes.HasSuffix(part, []byte{standsBy}) {
		t.Errorf("%q %v", part, err)
	}
	if _, err := sentOrder(t, "prog", 7, "", nil); err == nil {
		t.Error("a file that is too short was sent")
	}
}

func TestPart(t *testing.T) {
	var wire bytes.Buffer
	to := &partWriter{to: &wire}
	long := strings.Repeat("x", 3*maxPart)
	if n, err := to.kindWriter(PartStdout).Write([]byte(long)); n != len(long) || err != nil {
		t.Fatal(n, err)
	}
	if _, err := to.kindWriter(PartEnd).Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	r, got := bufio.NewReader(&wire), ""
	for {
		kind, data, err := ReadPart(r)
		if err != nil {
			t.Fatal(err)
		}
		if kind == PartEnd {
			break
		}
		got += string(data)
	}
	if got != long {
		t.Errorf("%d bytes, not %d", len(got), len(long))
	}
	for _, hostile := range []string{"", "o", "o\x00\x00\x00\x05abc", "o\xff\xff\xff\xff", "q\x00\x00\x00\x01a"} {
		if kind, data, err := ReadPart(bufio.NewReader(strings.NewReader(hostile))); err == nil {
			t.Errorf("%q is %c %q", hostile, kind, data)
		}
	}
}

func FuzzReadPart(f *testing.F) {
	f.Add([]byte("o\x00\x00\x00\x03abcx\x00\x00\x00\x02{}"))
	f.Add([]byte("e\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		r, read := bufio.NewReader(bytes.NewReader(wire)), 0
		for {
			_, data, err := ReadPart(r)
			if err != nil {
				return
			}
			if read += 5 + len(data); read > len(wire) || len(data) > maxPart {
				t.Fatalf("%d of %d bytes were read", read, len(wire))
			}
		}
	})
}
