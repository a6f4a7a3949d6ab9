package model_test

import (
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"retort/internal/agent/model"
	"retort/internal/core"
)

// TestKeyFromKeyring checks that the API key is read from the keyring. If the key is missing, the error must contain
// the command that stores it.
func TestKeyFromKeyring(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "none: the keyring is a fake")
	keyring.MockInit()
	missing := func(why string) {
		t.Helper()
		key, refused := model.KeyFromKeyring()
		if key != "" || refused == nil || refused.Kind != core.KindInvalidArguments || !strings.Contains(refused.Message, "model.key") ||
			!strings.Contains(refused.Hint, "secret-tool store --label=retort service retort username model") {
			t.Errorf("%s: %q %+v", why, key, refused)
		}
	}
	missing("empty")
	if err := keyring.Set("retort", "model", "key-of-the-model"); err != nil {
		t.Fatal(err)
	}
	if key, refused := model.KeyFromKeyring(); refused != nil || key != "key-of-the-model" {
		t.Errorf("%q %+v", key, refused)
	}
	keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
	missing("no keyring")
}
