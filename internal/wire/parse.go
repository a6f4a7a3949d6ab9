package wire

import (
	"context"
	"encoding/json"
)

// What is asked of a guest before it has a program.
const (
	maxCode  = 8 << 20
	maxFacts = 32 << 20
)

// Parse asks a guest, which has been greeted and has no program, for the facts of
// code: JSON that is as trustworthy as the guest. When ctx ends, conn is closed.
// After an error the guest is of no use any more.
func Parse(ctx context.Context, conn *Conn, code string) (json.RawMessage, error) {
	if len(code) > maxCode {
		return nil, violation("code of %d bytes, at most %d are parsed", len(code), maxCode)
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	conn.Accept(Sizes{KindParsed: maxFacts})
	if err := conn.Send(Frame{Kind: KindParse, Body: []byte(code)}); err != nil {
		return nil, orCause(ctx, err)
	}
	f, err := conn.Read()
	if err != nil {
		return nil, orCause(ctx, err)
	}
	if !json.Valid(f.Body) {
		return nil, violation("the facts of a program are not JSON")
	}
	return f.Body, nil
}

func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
