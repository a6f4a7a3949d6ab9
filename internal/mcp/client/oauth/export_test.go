package oauth

import "time"

// Age moves the times of the token that is kept.
func Age(s *Store, server, address string, by time.Duration) error {
	path := s.name("token", server, address)
	var t token
	if there, err := s.read(path, &t); !there || err != nil {
		return err
	}
	t.Issued, t.Expires = t.Issued.Add(by), t.Expires.Add(by)
	if !t.Begun.IsZero() {
		t.Begun = t.Begun.Add(by)
	}
	return s.write(path, &t)
}
