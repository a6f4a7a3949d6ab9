package tsc

import "fmt"

func (l Limits) admit(text string, kind Kind) error {
	if len(text) > l.Source {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(text), l.Source)
	}
	return nil
}
