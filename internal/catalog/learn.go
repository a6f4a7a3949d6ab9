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

// Observation holds one answer of a tool, as a program got it.
type Observation struct {
	Tool   *core.Tool
	Answer json.RawMessage // it must not change any more
	// Private reports whether a key of an object is personal. If nil, no key is.
	Private func(key string) bool
}

const (
	maxQueued  = 64       // observations that wait; more are dropped
	maxWaiting = 16 << 20 // bytes of them
	maxLearned = 1000     // tools of one server
	saveEvery  = 5 * time.Second

	// Once this many answers of a tool are known, only one in so many is examined.
	enough  = 100
	further = 8

	// A toolset is rebuilt for newly learned shapes at most this often, and for at most
	// one part in restWork of the time.
	newsEvery = 50 * time.Millisecond
	restWork  = 50
)

// learner learns the shapes of answers in the background. A nil learner does nothing.
type learner struct {
	catalog *Catalog
	queue   chan Observation
	waiting atomic.Int64 // bytes in queue
	passed  atomic.Int64 // answers of tools that need no more of them
	ending  chan struct{}
	start   sync.Once
	stop    sync.Once
	ended   sync.WaitGroup
	news    atomic.Bool  // something is to be published
	notTill atomic.Int64 // when the next toolset may be made, in nanoseconds since 1970

	saving sync.Mutex

	mu      sync.Mutex
	servers map[string]map[string]*learned // by server and tool
	unsaved map[string]bool                // servers
	names   map[string]bool                // keys that were found not to be personal
}

// learned holds what is known of one tool. Its shape covers only answers under pin.
type learned struct {
	pin    string
	shape  *infer.Shape
	schema json.RawMessage // of shape
	count  int             // of answers
	steady int             // of them, the last ones that brought nothing new
	fresh  int             // of those that are not saved yet
	told   *core.Learned
}

func newLearner(c *Catalog) *learner {
	return &learner{
		catalog: c, queue: make(chan Observation, maxQueued), ending: make(chan struct{}),
		servers: map[string]map[string]*learned{}, unsaved: map[string]bool{}, names: map[string]bool{},
	}
}

// Learn queues an answer for the background learner. It never waits: if the queue is full, the answer is dropped.
func (c *Catalog) Learn(o Observation) {
	l := c.learner
	if l == nil || len(o.Tool.OutputSchema) > 0 || l.waiting.Load() > maxWaiting {
		return
	}
	if k := o.Tool.Learned; k != nil && k.Observations >= enough && l.passed.Add(1)%further != 0 {
		return
	}
	l.start.Do(func() { l.ended.Go(l.work) })
	select {
	case l.queue <- o:
		l.waiting.Add(int64(len(o.Answer)))
	default:
	}
}

func (l *learner) work() {
	saved := time.NewTicker(saveEvery)
	defer saved.Stop()
	for {
		select {
		case o := <-l.queue:
			l.observe(o)
		case <-saved.C:
			l.save()
		case <-l.ending:
			for len(l.queue) > 0 {
				l.observe(<-l.queue)
			}
			return
		}
	}
}

// close processes the queue and saves.
func (l *learner) close() {
	if l == nil {
		return
	}
	l.stop.Do(func() {
		l.start.Do(func() {}) // nothing is learned any more
		close(l.ending)
		l.ended.Wait()
		l.save()
	})
}

func (l *learner) observe(o Observation) {
	l.waiting.Add(-int64(len(o.Answer)))
	t := o.Tool
	if !l.catalog.isCurrent(t) {
		return
	}
	seen := infer.Observe(o.Answer, l.private(o.Private))
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
		k = &learned{pin: t.Pin}
		l.put(t.Server, t.Name, k)
	}
	k.count++
	k.fresh++
	k.steady++
	l.unsaved[t.Server] = true
	k.take(seen)
	l.tell(k)
}

func (l *learner) put(server, tool string, k *learned) {
	if l.servers[server] == nil {
		l.servers[server] = map[string]*learned{}
	}
	l.servers[server][tool] = k
}

// take joins a shape with the known one.
func (k *learned) take(seen *infer.Shape) {
	if joined := infer.Join(k.shape, seen); !infer.Equal(joined, k.shape) {
		k.shape, k.schema, k.steady = joined, joined.Schema(), 0
	}
}

// tell publishes a shape that differs from the published one or is based on a quarter more answers. The caller holds
// mu.
func (l *learner) tell(k *learned) {
	const few = 20
	if k.told != nil && string(k.told.Schema) == string(k.schema) && k.count > few && 4*k.count < 5*k.told.Observations {
		return
	}
	if !l.catalog.showable(k.schema) {
		k.told = nil
		return
	}
	k.told = &core.Learned{Schema: k.schema, Observations: k.count, Steady: k.steady}
	l.news.Store(true)
}

// maxAsked bounds how many keys are remembered as not personal.
const maxAsked = 4096

// private returns a function that calls ask only once for each key. Only the goroutine of work may use it.
func (l *learner) private(ask func(string) bool) func(string) bool {
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

// isCurrent reports whether a tool equals the one listed now. Answers of an outdated tool are not learned.
func (c *Catalog) isCurrent(t *core.Tool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.servers[t.Server]
	return ok && slices.ContainsFunc(s.tools, func(now *core.Tool) bool { return now.Name == t.Name && now.Pin == t.Pin })
}

// listed drops what was learned of tools that have changed, or of all tools if tools is nil.
func (l *learner) listed(server string, tools []*core.Tool) {
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

// mark sets what was learned on the tools, which must not be shared yet.
func (l *learner) mark(server string, tools []*core.Tool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range tools {
		t.Learned = l.of(server, t)
	}
}

// of returns what is to be published of a tool, or nil. The caller holds mu.
func (l *learner) of(server string, t *core.Tool) *core.Learned {
	if k := l.servers[server][t.Name]; k != nil && k.pin == t.Pin && len(t.OutputSchema) == 0 {
		return k.told
	}
	return nil
}

// hasNews reports whether a new toolset should be built.
func (l *learner) hasNews() bool {
	return l != nil && l.news.Load() && time.Now().UnixNano() > l.notTill.Load()
}

// told notes that building a toolset took this long.
func (l *learner) told(took time.Duration) {
	if l != nil {
		l.notTill.Store(time.Now().Add(max(newsEvery, restWork*took)).UnixNano())
	}
}

// adopt makes the next toolset contain what was learned. Tools without news stay the same pointers, so that data
// derived from them stays valid. The caller holds mu.
func (c *Catalog) adopt() {
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
		s.categorized = l.marked(server, s.categorized)
	}
	c.invalidate()
}

// marked returns the tools with what is to be published of them now. The caller holds mu.
func (l *learner) marked(server string, tools []*core.Tool) []*core.Tool {
	marked := tools
	for i, t := range tools {
		now := l.of(server, t)
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
