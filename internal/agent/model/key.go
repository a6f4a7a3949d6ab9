package model

import (
	"os"
	"runtime"

	"github.com/zalando/go-keyring"

	"retort/internal/core"
)

// KeyFromKeyring returns the model's API key from the system's keyring. The keyring stores it for the service "retort"
// and the user name "model".
func KeyFromKeyring() (string, *core.Error) {
	e := core.Errorf(core.KindInvalidArguments, "model", "model.key: the system's keyring does not contain a model key").
		WithHint("store it with: secret-tool store --label=retort service retort username model; or set key: ${VARIABLE}")
	if runtime.GOOS == "linux" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		return "", e // the request itself would start the bus
	}
	key, err := keyring.Get("retort", "model")
	if err != nil || key == "" {
		return "", e
	}
	return key, nil
}
