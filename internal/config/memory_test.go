package config

import (
	"os"
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "memory: auto\n": 0, "memory: 512MB\n": 512 << 20} {
		s, err := ParseSettings("settings", t.TempDir(), []byte(text), os.LookupEnv)
		if err != nil || s.Memory != want {
			t.Errorf("%q: %d, %v, want %d", text, s.Memory, err, want)
		}
	}
	for text, want := range map[string]string{"memory: 1MB\n": "too small", "memory: much\n": "expected a size", "memory: [1]\n": "memory: expected"} {
		if _, err := ParseSettings("settings", t.TempDir(), []byte(text), os.LookupEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
