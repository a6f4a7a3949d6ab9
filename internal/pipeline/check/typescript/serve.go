package typescript

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/base/memory"
	"retort/internal/core"
	"retort/internal/pipeline/bindings"
)

// ServeCompiler runs in a compiler process. It reads the engine's requests from in until that stream ends, and writes
// the answers to out. It uses no files and no network.
func ServeCompiler(in io.Reader, out io.Writer) error { return serveRequests(in, out, tsc.Limits{}) }

func serveRequests(in io.Reader, out io.Writer, limits tsc.Limits) error {
	s := &compilerService{
		compiler: tsc.New(limits), builtins: bindings.BuiltinNames(),
		bare: newWrappers(limits.Admit).declareInput(newReach(core.NewToolset(nil)), false),
	}
	decoder := gob.NewDecoder(bufio.NewReaderSize(in, 64<<10))
	buffer := bufio.NewWriterSize(out, 64<<10)
	encoder := gob.NewEncoder(buffer)
	for {
		var r compilerRequest
		if err := decoder.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := errors.Join(encoder.Encode(s.answerRequest(r)), buffer.Flush()); err != nil {
			return err
		}
	}
}

// heapSize is the soft memory limit of a compiler process, in bytes. Above it, the process collects garbage as often
// as necessary.
const heapSize = 512 << 20

// firstCollection is the heap size, in bytes, at which garbage is first collected. Checking a program of usual length
// needs less.
const firstCollection = 64 << 20

// TuneCollector configures the garbage collector of a compiler process, so that the check of even a long program
// needs at most one collection.
func TuneCollector() {
	debug.SetMemoryLimit(heapSize)
	memory.DelayFirstCollection(firstCollection, 200)
}

type compilerService struct {
	compiler *tsc.Compiler
	source   *tsc.Source // parsed last
	builtins map[string]bool
	bare     tsc.Input // what a program without servers is checked against
}

func (s *compilerService) answerRequest(r compilerRequest) *compilerResponse {
	ctx := context.Background()
	if r.Input == nil {
		return s.parseRequest(ctx, r)
	}
	answer := &compilerResponse{}
	if s.source == nil {
		answer.setError(tsc.ErrInternal)
		return answer
	}
	result, err := s.compiler.Check(ctx, s.source, *r.Input)
	if err != nil {
		answer.setError(err)
		return answer
	}
	answer.Checked = result.Checked()
	return answer
}

func (s *compilerService) parseRequest(ctx context.Context, r compilerRequest) *compilerResponse {
	answer := &compilerResponse{}
	source, err := s.compiler.Parse(ctx, r.Text, r.Kind)
	if err != nil {
		answer.setError(err)
		return answer
	}
	s.source = source
	answer.Parsed = source.Parsed()
	if answer.Report, err = s.judgeSource(source); err != nil {
		answer.setError(fmt.Errorf("%w: %w", tsc.ErrTooDeep, err))
		return answer
	}
	if s.isBare(source) {
		result, err := s.compiler.Check(ctx, source, s.bare)
		if err != nil {
			answer.setError(err)
			return answer
		}
		answer.Checked, answer.Early = result.Checked(), true
	}
	return answer
}

// isBare reports whether a program uses no servers, skills or modules. The process can then check it without further
// declarations from the engine.
func (s *compilerService) isBare(source *tsc.Source) bool {
	facts := source.Facts()
	if len(source.Errors()) > 0 || len(facts.Imports) > 0 || facts.Unknown {
		return false
	}
	for _, names := range []map[string]*tsc.Use{facts.Globals, facts.Types} {
		for name := range names {
			if !s.builtins[name] || name == "servers" || name == "skills" {
				return false
			}
		}
	}
	return true
}
