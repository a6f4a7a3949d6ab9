package oauth

import "time"

// Age shifts the times of the stored token by a duration.
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
