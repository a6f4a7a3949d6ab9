package catalog

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/catalog/infer"
	"retort/internal/core"
)

// ToolObservation is one result of a tool, as a program received it. The catalog learns the tool's result type
// from it.
type ToolObservation struct {
	Tool   *core.Tool
	Answer json.RawMessage // the caller must not change it afterwards
	// Private reports whether a key of an object is personal. If nil, no key is.
	Private func(key string) bool
}

const (
	maxQueued  = 64       // waiting observations; further ones are dropped
	maxWaiting = 16 << 20 // bytes of waiting observations
	maxLearned = 1000     // tools of one server whose types are learned
	saveEvery  = 5 * time.Second

	// enoughAnswers is the number of results of a tool up to which every result is examined. Of later results,
	// only one in observeEvery is examined.
	enoughAnswers = 100
	observeEvery  = 8

	// newsEvery is the shortest time between two rebuilds of the toolset that add newly learned types. If a rebuild
	// is slow, the time grows to restWork times the duration of that rebuild. So rebuilding takes only a small share
	// of the processor's time.
	newsEvery = 50 * time.Millisecond
	restWork  = 50
)

// shapeLearner learns the types of tool results in the background. The methods of a nil shapeLearner do nothing.
type shapeLearner struct {
	catalog *Catalog
	queue   chan ToolObservation
	waiting atomic.Int64 // bytes of the results in queue
	passed  atomic.Int64 // number of results of tools with enough results
	ending  chan struct{}
	start   sync.Once
	stop    sync.Once
	ended   sync.WaitGroup
	news    atomic.Bool  // the toolset lacks newly learned types
	notTill atomic.Int64 // earliest time of the next rebuild of the toolset, in nanoseconds since 1970

	saving sync.Mutex

	mu      sync.Mutex
	servers map[string]map[string]*learnedTool // by server and tool
	unsaved map[string]bool                    // servers with types that are not saved
	names   map[string]bool                    // keys that are known not to be personal
}

// learnedTool holds the inferred result type of one tool. It covers only results of the definition with this pin
// (hash).
type learnedTool struct {
	pin       string
	shape     *infer.AnswerShape
	schema    json.RawMessage // JSON Schema of shape
	count     int             // number of observed results
	steady    int             // number of the newest results that did not change the type
	fresh     int             // number of results that are not saved yet
	published *core.LearnedSchema
	// shared is the type from a file of tool definitions. It is nil if there is no such type, or if a result here
	// differed from it.
	shared *sharedShape
}

// sharedShape is a result type that was learned with another data directory. It comes from a file of tool
// definitions.
type sharedShape struct {
	shape   *infer.AnswerShape
	schema  json.RawMessage // JSON Schema of shape
	answers int
	steady  int
}

// covers reports whether all values of a type have the shared type. The shared type does not cover a type that has
// another field, or lacks one that is always there.
func (s *sharedShape) covers(seen *infer.AnswerShape) bool {
	return seen == nil || infer.EqualShapes(infer.JoinShapes(s.shape, seen), s.shape)
}

func newLearner(c *Catalog) *shapeLearner {
	return &shapeLearner{
		catalog: c, queue: make(chan ToolObservation, maxQueued), ending: make(chan struct{}),
		servers: map[string]map[string]*learnedTool{}, unsaved: map[string]bool{}, names: map[string]bool{},
	}
}

// LearnShape queues a result for learning in the background. It never blocks: if the queue is full, it drops the
// result.
func (c *Catalog) LearnShape(o ToolObservation) {
	l := c.learner
	if l == nil || len(o.Tool.OutputSchema) > 0 || l.waiting.Load() > maxWaiting {
		return
	}
	if k := o.Tool.Learned; k != nil && k.Observations >= enoughAnswers && l.passed.Add(1)%observeEvery != 0 {
		return
	}
	l.start.Do(func() { l.ended.Go(l.learnQueued) })
	select {
	case l.queue <- o:
		l.waiting.Add(int64(len(o.Answer)))
	default:
	}
}

// InferType returns a tool's result type, inferred from the given result and from what was learned earlier. It
// learns nothing from the given result. It returns nil if nothing may be learned or shown.
func (c *Catalog) InferType(o ToolObservation) *core.LearnedSchema {
	l := c.learner
	if l == nil || len(o.Tool.OutputSchema) > 0 {
		return nil
	}
	shape, count := infer.ObserveDocument(o.Answer, o.Private), 1
	if shape == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.servers[o.Tool.Server][o.Tool.Name]; k != nil && k.pin == o.Tool.Pin {
		shape, count = infer.JoinShapes(shape, k.shape), max(count, k.count)
	}
	schema := shape.JSONSchema()
	if !c.isShowable(schema) {
		return nil
	}
	return &core.LearnedSchema{Schema: schema, Observations: count}
}

// OutlineAnswer returns the names of the fields of a result in short form; see infer.OutlineDocument. It returns
// "" if nothing may be learned of the tool.
func (c *Catalog) OutlineAnswer(o ToolObservation) string {
	if c.learner == nil || len(o.Tool.OutputSchema) > 0 {
		return ""
	}
	return infer.OutlineDocument(o.Answer, o.Private)
}

func (l *shapeLearner) learnQueued() {
	saved := time.NewTicker(saveEvery)
	defer saved.Stop()
	for {
		select {
		case o := <-l.queue:
			l.learnAnswer(o)
		case <-saved.C:
			l.saveShapes()
		case <-l.ending:
			for len(l.queue) > 0 {
				l.learnAnswer(<-l.queue)
			}
			return
		}
	}
}

// stopLearning processes the queued answers and saves the result.
func (l *shapeLearner) stopLearning() {
	if l == nil {
		return
	}
	l.stop.Do(func() {
		l.start.Do(func() {}) // nothing is learned any more
		close(l.ending)
		l.ended.Wait()
		l.saveShapes()
	})
}

func (l *shapeLearner) learnAnswer(o ToolObservation) {
	l.waiting.Add(-int64(len(o.Answer)))
	t := o.Tool
	if !l.catalog.isCurrent(t) {
		return
	}
	seen := infer.ObserveDocument(o.Answer, l.cachePrivate(o.Private))
	if seen == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.servers[t.Server][t.Name]
	if k == nil || k.pin != t.Pin {
		if k == nil && len(l.servers[t.Server]) >= maxLearned {
			return
		}
		k = &learnedTool{pin: t.Pin}
		l.storeLearned(t.Server, t.Name, k)
	}
	k.count++
	k.fresh++
	k.steady++
	l.unsaved[t.Server] = true
	k.joinShape(seen)
	l.publishShape(k)
}

func (l *shapeLearner) storeLearned(server, tool string, k *learnedTool) {
	if l.servers[server] == nil {
		l.servers[server] = map[string]*learnedTool{}
	}
	l.servers[server][tool] = k
}

// joinShape merges the type inferred from one result into the learned type.
func (k *learnedTool) joinShape(seen *infer.AnswerShape) {
	if joined := infer.JoinShapes(k.shape, seen); !infer.EqualShapes(joined, k.shape) {
		k.shape, k.schema, k.steady = joined, joined.JSONSchema(), 0
	}
	if k.shared != nil && !k.shared.covers(k.shape) {
		k.shared = nil
	}
}

// visible returns the result type to show for a tool: the shared type as long as no result here differs from it,
// otherwise the type that was learned here. The schema is nil if nothing is known.
func (k *learnedTool) visible() *core.LearnedSchema {
	if s := k.shared; s != nil {
		return &core.LearnedSchema{
			Schema: s.schema, Observations: s.answers + k.count, Steady: s.steady + k.count, Shared: true,
		}
	}
	return &core.LearnedSchema{Schema: k.schema, Observations: k.count, Steady: k.steady}
}

// publishShape makes the learned result type of a tool visible in the toolset. If the toolset already has the same
// type, only the number of observed results changes there. A small number is updated each time, a larger one only
// when it has grown by a quarter. The caller must hold l.mu.
func (l *shapeLearner) publishShape(k *learnedTool) {
	const few = 20
	now := k.visible()
	isSame := k.published != nil && string(k.published.Schema) == string(now.Schema) && k.published.Shared == now.Shared
	if isSame && now.Observations > few && 4*now.Observations < 5*k.published.Observations {
		return
	}
	l.news.Store(true)
	if k.published = nil; now.Schema != nil && l.catalog.isShowable(now.Schema) {
		k.published = now
	}
}

// maxAsked bounds how many keys are remembered as not personal. ToolObservation.Private has returned false for these
// keys and need not be asked about them again.
const maxAsked = 4096

// cachePrivate returns a function that reports, like the function ask, whether a key is personal. It remembers the
// keys that are not personal and does not call ask for them again. Only the goroutine that learns may call the
// returned function.
func (l *shapeLearner) cachePrivate(ask func(string) bool) func(string) bool {
	if ask == nil {
		return nil
	}
	return func(key string) bool {
		if l.names[key] {
			return false
		}
		if ask(key) {
			return true
		}
		if len(l.names) >= maxAsked {
			clear(l.names)
		}
		l.names[key] = true
		return false
	}
}

// isCurrent reports whether a tool has the definition that is currently listed. Results of other definitions are
// not learned.
func (c *Catalog) isCurrent(t *core.Tool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.servers[t.Server]
	return ok && slices.ContainsFunc(s.tools, func(now *core.Tool) bool { return now.Name == t.Name && now.Pin == t.Pin })
}

// dropOutdated removes the learned types of tools that have changed, or of all tools of the server if tools is nil.
func (l *shapeLearner) dropOutdated(server string, tools []*core.Tool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if tools == nil {
		delete(l.servers, server)
		return
	}
	for _, t := range tools {
		if k := l.servers[server][t.Name]; k != nil && k.pin != t.Pin {
			delete(l.servers[server], t.Name)
			l.unsaved[server] = true
		}
	}
}

// markTools sets the learned types in the tools, which must not be shared yet.
func (l *shapeLearner) markTools(server string, tools []*core.Tool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range tools {
		if t.Learned == nil { // else it comes from the file of a static definition
			t.Learned = l.learnedFor(server, t)
		}
	}
}

// learnedFor returns the learned result type of a tool for the toolset. It returns nil if no learned type may be
// shown for the tool's current definition. The caller must hold l.mu.
func (l *shapeLearner) learnedFor(server string, t *core.Tool) *core.LearnedSchema {
	if k := l.servers[server][t.Name]; k != nil && k.pin == t.Pin && len(t.OutputSchema) == 0 {
		return k.published
	}
	return nil
}

// hasNews reports whether the toolset should be rebuilt because new types were learned.
func (l *shapeLearner) hasNews() bool {
	return l != nil && l.news.Load() && time.Now().UnixNano() > l.notTill.Load()
}

// noteRebuild records how long rebuilding the toolset took.
func (l *shapeLearner) noteRebuild(took time.Duration) {
	if l != nil {
		l.notTill.Store(time.Now().Add(max(newsEvery, restWork*took)).UnixNano())
	}
}

// adoptLearned makes the next toolset contain newly learned types. Unchanged tools keep their pointers, so that
// data derived from them stays valid. The caller must hold c.mu.
func (c *Catalog) adoptLearned() {
	l := c.learner
	if l == nil || !l.hasNews() {
		return
	}
	l.news.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	for server := range l.servers {
		s, ok := c.servers[server]
		if !ok || s.categorized == nil {
			continue
		}
		s.categorized = l.markedCopies(server, s.categorized)
	}
	c.invalidateToolset()
}

// markedCopies returns the tools, marked with their currently learned types. It copies a tool only if its type has
// changed. The caller must hold l.mu.
func (l *shapeLearner) markedCopies(server string, tools []*core.Tool) []*core.Tool {
	marked := tools
	for i, t := range tools {
		now := l.learnedFor(server, t)
		if now == t.Learned {
			continue
		}
		if &marked[0] == &tools[0] {
			marked = slices.Clone(tools)
		}
		tool := *t
		tool.Learned, marked[i] = now, &tool
	}
	return marked
}
