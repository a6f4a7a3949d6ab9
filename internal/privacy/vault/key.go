package vault

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"filippo.io/age"
	"github.com/zalando/go-keyring"

	"retort/internal/base/seal"
)

// KeySource says where the user's key is stored. The first field that is set decides. If neither Variable nor Age is
// set, the key is in the system keyring or, on machines without a keyring, in File.
type KeySource struct {
	Variable string // environment variable with 32 bytes in base64 or hex
	Age      string // file encrypted with age that holds the same
	Identity string // file with the identities that open Age
	File     string // file with 32 bytes, made when it is needed
}

// Read returns the user's key. If the user has no key yet, it creates one in the keyring or in File.
func (k KeySource) Read() ([]byte, error) {
	switch {
	case k.Variable != "":
		text, ok := os.LookupEnv(k.Variable)
		if !ok {
			return nil, fmt.Errorf("the environment variable %s is not set", k.Variable)
		}
		return decodeKey(text)
	case k.Age != "":
		return k.fromAge()
	}
	key, err := fromKeyring()
	if err == nil || k.File == "" {
		return key, err
	}
	return seal.LoadOrCreateKey(k.File)
}

const (
	keyringService = "retort"
	keyringUser    = "vault"
)

// fromKeyring returns the key stored in the system keyring, and creates it if it does not exist.
func fromKeyring() ([]byte, error) {
	if err := noBus(); err != nil {
		return nil, err
	}
	text, err := keyring.Get(keyringService, keyringUser)
	if err == nil {
		return decodeKey(text)
	}
	if !errors.Is(err, keyring.ErrNotFound) {
		return nil, err
	}
	key := randomBytes(keySize)
	if err := keyring.Set(keyringService, keyringUser, base64.StdEncoding.EncodeToString(key)); err != nil {
		return nil, err
	}
	return key, nil
}

func (k KeySource) fromAge() ([]byte, error) {
	identities, err := os.Open(k.Identity)
	if err != nil {
		return nil, err
	}
	defer identities.Close()
	known, err := age.ParseIdentities(identities)
	if err != nil {
		return nil, err
	}
	secret, err := os.Open(k.Age)
	if err != nil {
		return nil, err
	}
	defer secret.Close()
	plain, err := age.Decrypt(secret, known...)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(plain, 1<<10))
	if err != nil {
		return nil, err
	}
	return decodeKey(string(text))
}

// decodeKey decodes 32 bytes from base64 or hex.
func decodeKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(text); err == nil && len(key) == keySize {
			return key, nil
		}
	}
	return nil, fmt.Errorf("the key is not %d bytes in base64 or hex", keySize)
}

// DescribePlace returns where the key is or will be stored, without creating it: the keyring, an environment
// variable, an age file, or File. keyring is the reason why the keyring cannot be used. It is nil if the keyring is
// available or is not needed.
func (k KeySource) DescribePlace() (where string, keyring error) {
	switch {
	case k.Variable != "":
		return "the variable " + k.Variable, nil
	case k.Age != "":
		return k.Age + ", encrypted with age", nil
	}
	if err := askKeyring(); err != nil {
		return k.File, err
	}
	return "the system's keyring", nil
}

// askKeyring returns an error if the system keyring cannot be used.
func askKeyring() error {
	if err := noBus(); err != nil {
		return err
	}
	if _, err := keyring.Get(keyringService, keyringUser); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return err
	}
	return nil
}

// noBus returns an error on Linux if there is no D-Bus session bus and therefore no keyring. The check is needed
// because a query of the keyring would start a bus.
func noBus() error {
	if runtime.GOOS == "linux" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		return errors.New("there is no session bus, so no keyring")
	}
	return nil
}
