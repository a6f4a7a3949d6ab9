package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/base/seal"
)

const (
	fileFormat       = 1         // version of the file format; files with another version are ignored
	maxFile          = 512 << 20 // size of a file in bytes
	toolsSuffix      = ".tools.json"
	abandonedAfter   = time.Hour // age from which a temporary file belongs to no running process
	temporaryPattern = ".tmp-*"
)

// fileHeader is the first line of a server's file. One JSON object follows, whose SHA-256 the header contains:
// {"instructions": …, "tools": [pin, definition, …]}. The definitions are byte for byte as received.
type fileHeader struct {
	Format int    `json:"format"`
	Server string `json:"server"`
	SHA256 string `json:"sha256"`
}

type fileBody struct {
	Instructions string
	Tools        []json.RawMessage
	Pins         []string // pins (definition hashes) of Tools
}

// fileName returns the file name for a server's definitions. It contains a digest of the server's name, because names
// may differ only in case or contain characters that file systems refuse.
func fileName(server string) string {
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, server)
	sum := sha256.Sum256([]byte(server))
	return plain[:min(len(plain), 40)] + "-" + hex.EncodeToString(sum[:6]) + toolsSuffix
}

func encodeFile(server string, b fileBody) ([]byte, error) {
	said, err := json.Marshal(b.Instructions)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"instructions":%s,"tools":[`, said)
	for i, raw := range b.Tools {
		if i > 0 {
			out.WriteString(",\n")
		}
		fmt.Fprintf(&out, `"%s",`, b.Pins[i])
		out.Write(raw) // by hand: json.Marshal would rewrite it
	}
	out.WriteString("]}\n")
	sum := sha256.Sum256(out.Bytes())
	first, err := json.Marshal(fileHeader{fileFormat, server, hex.EncodeToString(sum[:])})
	if err != nil {
		return nil, err
	}
	return append(append(first, '\n'), out.Bytes()...), nil
}

// decodeFile parses a file of definitions. It returns an error if the content was changed in any way.
func decodeFile(data []byte) (string, fileBody, error) {
	first, rest, found := bytes.Cut(data, []byte("\n"))
	var h fileHeader
	if !found || json.Unmarshal(first, &h) != nil {
		return "", fileBody{}, fmt.Errorf("it is not a catalog file, or it is incomplete")
	}
	if h.Format != fileFormat {
		return "", fileBody{}, fmt.Errorf("its format version is %d, but this Retort reads version %d", h.Format, fileFormat)
	}
	if sum := sha256.Sum256(rest); hex.EncodeToString(sum[:]) != h.SHA256 {
		return "", fileBody{}, fmt.Errorf("it is damaged")
	}
	b, ok := readBody(rest)
	if !ok {
		return "", fileBody{}, fmt.Errorf("its format is not the one that this version of Retort writes")
	}
	return h.Server, b, nil
}

// readBody parses the body of a file without parsing the definitions in it. That is safe because the digest proves
// that they are unchanged.
func readBody(text []byte) (b fileBody, ok bool) {
	whole := parseJSON(text, 2)
	said, _ := whole.findMember("instructions")
	if b.Instructions, ok = unquoteJSON(said.raw); !ok {
		return b, false
	}
	tools, _ := whole.findMember("tools")
	if tools.firstByte() != '[' || len(tools.items)%2 != 0 {
		return b, false
	}
	for i := 0; i < len(tools.items); i += 2 {
		pin, ok := unquoteJSON(tools.items[i].raw)
		if !ok {
			return b, false
		}
		b.Pins = append(b.Pins, pin)
		b.Tools = append(b.Tools, tools.items[i+1].raw)
	}
	return b, true
}

func readFile(path string) (string, fileBody, error) {
	data, err := seal.ReadFile(path, maxFile)
	if err != nil {
		return "", fileBody{}, err
	}
	server, b, err := decodeFile(data)
	if err == nil && fileName(server) != filepath.Base(path) {
		return "", fileBody{}, fmt.Errorf("it belongs to another server, %q", server)
	}
	return server, b, err
}

// writeFile replaces a file atomically: after a crash, either the old or the new file exists.
func writeFile(path string, data []byte) error {
	return seal.ReplaceWith(path, seal.ReplaceOptions{Temporary: temporaryPattern}, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// hasContents reports whether the file at a path already has exactly the contents data, so that it need not be
// written.
func hasContents(path string, data []byte) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() != int64(len(data)) {
		return false
	}
	kept, err := seal.ReadFile(path, int64(len(data)))
	return err == nil && bytes.Equal(kept, data)
}

// removeFile removes a file. A missing file is not an error.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeLeftovers removes temporary files that interrupted writes left.
func removeLeftovers(dir string, now time.Time) {
	left, _ := filepath.Glob(filepath.Join(dir, temporaryPattern))
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > abandonedAfter {
			os.Remove(path)
		}
	}
}
