package oauth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// LoginStore stores tokens and registered clients in encrypted files that only their owner can read. Several processes
// may use one folder.
type LoginStore struct {
	dir string
	key func() ([]byte, error)

	once   sync.Once
	cipher cipher.AEAD
	failed error
}

// Open returns the store for logins at servers in the folder dir, which is created by the first write. key returns
// the 32-byte key that encrypts the stored tokens. It is called once, by the first read or write.
func Open(dir string, key func() ([]byte, error)) *LoginStore { return &LoginStore{dir: dir, key: key} }

// storedToken holds the tokens of a login and the data that is needed to renew them.
type storedToken struct {
	Server    string    `json:"server"`
	URL       string    `json:"url"`                 // address of the MCP endpoint, as configured
	Principal string    `json:"principal,omitempty"` // owner of the login
	Resource  string    `json:"resource"`            // resource that the token is valid for
	Issuer    string    `json:"issuer"`
	Access    string    `json:"access_token"`
	Refresh   string    `json:"refresh_token,omitempty"`
	Scopes    []string  `json:"scopes,omitempty"` // scopes that the server has granted
	Asked     []string  `json:"asked,omitempty"`  // scopes that the login has requested
	Wanted    []string  `json:"wanted,omitempty"` // further scopes that the server has requested since the login
	Issued    time.Time `json:"issued"`
	Expires   time.Time `json:"expires,omitzero"`
	Renewed   bool      `json:"renewed,omitempty"` // the token was last issued by a refresh and not by a login
	// Begun is the time at which a refresh began whose answer is not stored yet. It is zero if no refresh is in
	// progress.
	Begun time.Time `json:"begun,omitzero"`
	// Ended is the reason why the token cannot be renewed any more. It is empty if the token can be renewed.
	Ended  string         `json:"ended,omitempty"`
	Client clientIdentity `json:"client"`
	At     tokenEndpoints `json:"endpoints"`
}

// tokenEndpoints holds the addresses for renewing and revoking a token.
type tokenEndpoints struct {
	Token  string `json:"token"`
	Revoke string `json:"revoke,omitempty"`
}

// filePath returns the path of a file. The file's name is a hash of parts, such as the name and the address of a
// server, so that another address of the same server has another file.
func (s *LoginStore) filePath(kind string, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		text, _ := json.Marshal(p) // strings always marshal
		h.Write(text)
	}
	return filepath.Join(s.dir, hex.EncodeToString(h.Sum(nil))[:32]+"."+kind)
}

// PrincipalsOf returns the principals with a stored login at a server, sorted. It skips files that cannot be read.
func (s *LoginStore) PrincipalsOf(server, address string) (names []string) {
	paths, _ := filepath.Glob(filepath.Join(s.dir, "*.token"))
	for _, path := range paths {
		var t storedToken
		if there, err := s.readFile(path, &t); there && err == nil && t.Server == server && t.URL == address && t.Principal != "" {
			names = append(names, t.Principal)
		}
	}
	slices.Sort(names)
	return names
}

// readFile decrypts a file into a value. It returns false if there is no such file.
func (s *LoginStore) readFile(path string, into any) (bool, error) {
	data, err := seal.ReadFile(path, seal.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, s.unreadableError(err)
	}
	if err := s.openCipher(); err != nil {
		return false, err
	}
	n := s.cipher.NonceSize()
	if len(data) < n {
		return false, s.unreadableError(errors.New("the file is truncated"))
	}
	plain, err := s.cipher.Open(nil, data[:n], data[n:], []byte(filepath.Base(path)))
	if err != nil {
		return false, s.unreadableError(errors.New("the file was encrypted with another key"))
	}
	if err := json.Unmarshal(plain, into); err != nil {
		return false, s.unreadableError(errors.New("the file was written by another version"))
	}
	return true, nil
}

func (s *LoginStore) unreadableError(err error) *core.Error {
	return core.Errorf(core.KindUpstreamGone, "upstream.oauth", "the login stored in %s cannot be read: %w", s.dir, err).
		WithHint("remove it with retort auth logout SERVER, and log in again with retort auth login SERVER")
}

// writeFile encrypts a value and writes it to a file atomically and durably.
func (s *LoginStore) writeFile(path string, what any) error {
	if err := s.openCipher(); err != nil {
		return err
	}
	plain, err := json.Marshal(what)
	if err != nil {
		return err
	}
	nonce := make([]byte, s.cipher.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	if err := seal.ReplaceFile(path, s.cipher.Seal(nonce, nonce, plain, []byte(filepath.Base(path)))); err != nil {
		return core.Errorf(core.KindInternal, "upstream.oauth", "the login cannot be stored: %w", err)
	}
	return nil
}

func (s *LoginStore) removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return core.Errorf(core.KindInternal, "upstream.oauth", "the login cannot be removed: %w", err)
	}
	return nil
}

// openCipher creates the cipher that encrypts the files. Its key is derived from the store's key for this purpose
// only.
func (s *LoginStore) openCipher() error {
	s.once.Do(func() {
		master, err := s.key()
		if err != nil {
			s.failed = core.Errorf(core.KindInternal, "upstream.oauth", "the key of the logins cannot be read: %w", err)
			return
		}
		code := hmac.New(sha256.New, master)
		code.Write([]byte("retort: logins at servers"))
		block, err := aes.NewCipher(code.Sum(nil))
		if err == nil {
			s.cipher, err = cipher.NewGCM(block)
		}
		s.failed = err
	})
	return s.failed
}

// lockFile keeps other processes from renewing the same token. It waits up to 40 seconds, which is longer than a
// request takes.
func (s *LoginStore) lockFile(path string) (unlock func(), err error) {
	const patience = 40 * time.Second // more than a request takes
	unlock, err = seal.Lock(path+".lock", patience)
	if errors.Is(err, seal.ErrIrregular) {
		return nil, core.Errorf(core.KindInternal, "upstream.oauth", "the login cannot be locked: %w", err)
	}
	if err != nil {
		return nil, oauthErrorf("another process is renewing the login and does not finish: %w", err)
	}
	return unlock, nil
}
