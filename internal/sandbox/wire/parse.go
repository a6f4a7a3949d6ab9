package wire

import (
	"context"
	"encoding/json"
)

// maxCode and the following constants are size limits in bytes for the program's code and for the answers about it,
// when the host asks a guest to parse a program.
const (
	maxCode     = 8 << 20
	maxParsed   = 32 << 20
	maxCompiled = 64 << 10
)

// ParseCode lets a guest parse code. The guest must have sent its ready frame and have no program. ParseCode returns
// facts about the program that only the guest's interpreter knows, as JSON, and the syntax tree. Both are only as
// trustworthy as the guest. The guest then compiles the code: see AwaitCompiled. When ctx ends, conn is closed. After
// an error the guest must not be used again.
func ParseCode(ctx context.Context, conn *FrameConn, code string) (known json.RawMessage, tree []byte, err error) {
	if len(code) > maxCode {
		return nil, nil, newViolation("code of %d bytes; at most %d are parsed", len(code), maxCode)
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	if err := conn.SendFrame(Frame{Kind: KindParse, Body: []byte(code)}); err != nil {
		return nil, nil, orCause(ctx, err)
	}
	return readParsed(ctx, conn, FrameSizes{KindParsed: maxParsed})
}

// AwaitCompiled waits until a guest has compiled the code that it has parsed. The returned JSON says whether the code
// compiles. Errors and the end of ctx have the same effect as in ParseCode.
func AwaitCompiled(ctx context.Context, conn *FrameConn) (json.RawMessage, error) {
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	told, _, err := readParsed(ctx, conn, FrameSizes{KindCompiled: maxCompiled})
	return told, err
}

func readParsed(ctx context.Context, conn *FrameConn, sizes FrameSizes) (json.RawMessage, []byte, error) {
	conn.Accept(sizes)
	f, err := conn.Read()
	if err != nil {
		return nil, nil, orCause(ctx, err)
	}
	if !json.Valid(f.Head) {
		return nil, nil, newViolation("the guest's report on a program is not JSON")
	}
	return f.Head, f.Body, nil
}

func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
