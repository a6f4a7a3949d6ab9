package vault

import (
	"bytes"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/zalando/go-keyring"
)

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	want := bytes.Repeat([]byte{7}, keySize)
	text := hex.EncodeToString(want)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, identity.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, text+"\n")
	_ = w.Close()
	at := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("VAULT_TEST_KEY", text)
	t.Setenv("VAULT_TEST_SHORT", "abcd")
	ageFile, identities := at("key.age", sealed.Bytes()), at("identities", []byte(identity.String()+"\n"))
	other, _ := age.GenerateX25519Identity()
	for name, c := range map[string]struct {
		keys KeySource
		ok   bool
	}{
		"variable":       {KeySource{Variable: "VAULT_TEST_KEY"}, true},
		"unset":          {KeySource{Variable: "VAULT_TEST_UNSET", File: filepath.Join(dir, "not made")}, false},
		"short":          {KeySource{Variable: "VAULT_TEST_SHORT"}, false},
		"age":            {KeySource{Age: ageFile, Identity: identities}, true},
		"other identity": {KeySource{Age: ageFile, Identity: at("other", []byte(other.String()))}, false},
		"no age":         {KeySource{Age: at("plain", []byte(text)), Identity: identities}, false},
	} {
		key, err := c.keys.Read()
		if (err == nil) != c.ok || c.ok && !bytes.Equal(key, want) {
			t.Errorf("%s: %x %v", name, key, err)
		}
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "none: the keyring is a fake")
	keyring.MockInit()
	first, err := KeySource{}.Read()
	again, _ := KeySource{}.Read()
	if err != nil || len(first) != keySize || !bytes.Equal(first, again) {
		t.Errorf("keyring: %x %x %v", first, again, err)
	}
	keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
	file := KeySource{File: filepath.Join(dir, "vault.key")}
	made, err := file.Read()
	again, _ = file.Read()
	if err != nil || len(made) != keySize || !bytes.Equal(made, again) || bytes.Equal(made, first) {
		t.Errorf("file: %x %x %v", made, again, err)
	}
}
