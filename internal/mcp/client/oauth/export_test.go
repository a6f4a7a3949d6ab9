package oauth

import "time"

// Age makes the stored token look older or younger: it adds a duration to all times in the token.
func Age(s *LoginStore, server, address string, by time.Duration) error {
	path := s.filePath("token", server, address)
	var t storedToken
	if there, err := s.readFile(path, &t); !there || err != nil {
		return err
	}
	t.Issued, t.Expires = t.Issued.Add(by), t.Expires.Add(by)
	if !t.Begun.IsZero() {
		t.Begun = t.Begun.Add(by)
	}
	return s.writeFile(path, &t)
}
