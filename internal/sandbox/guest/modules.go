package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"modernc.org/quickjs"

	"retort/internal/sandbox/guest/js"
	"retort/internal/sandbox/wire"
)

// compiledModules maps the names of the prelude's modules to their QuickJS bytecode. The prelude is the JavaScript
// environment of programs. Loading bytecode takes a sixth of the time of compiling the sources.
type compiledModules map[string][]byte

// CompilePrelude writes the bytecode of the prelude, the JavaScript modules that form the environment of programs.
// MainCompiled reads it in another process of the same binary. CompilePrelude must be called before any program has
// run in this process.
func CompilePrelude(out io.Writer) error {
	e, err := newEngine()
	if err != nil {
		return err
	}
	defer e.Close()
	e.withoutText(true)
	var all []byte
	for _, name := range js.ModuleNames() {
		source, err := moduleSource(name)
		if err != nil {
			return err
		}
		code, err := e.Compile(source, quickjs.EvalGlobal)
		if err != nil {
			return fmt.Errorf("guest: %s: %w", name, err)
		}
		all = appendPart(appendPart(all, []byte(name)), code)
	}
	_, err = out.Write(all)
	return err
}

func appendPart(to, part []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(part))), part...)
}

var errModules = errors.New("guest: the input is not compiled modules")

// receiveModules reads the output of CompilePrelude from the first frame.
func receiveModules(conn *wire.FrameConn) (compiledModules, error) {
	conn.Accept(wire.HarnessSizes())
	f, err := conn.Read()
	if err != nil {
		return nil, err
	}
	found := compiledModules{}
	for rest := f.Body; len(rest) > 0; {
		var name, code []byte
		if name, rest = cutPart(rest); name == nil {
			return nil, errModules
		}
		if code, rest = cutPart(rest); code == nil {
			return nil, errModules
		}
		found[string(name)] = code
	}
	return found, nil
}

func cutPart(b []byte) (part, rest []byte) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil
	}
	return b[n : n+int(size)], b[n+int(size):]
}
