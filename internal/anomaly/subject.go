package anomaly

import (
	"slices"
	"strings"
)

// dayCount counts the days on which something happened.
type dayCount struct {
	day  int64  // latest day
	seen uint64 // one bit for this day and each of the 63 days before
	days int
}

// addDay adds a day and reports whether it is new among the last 64 days. If the clock jumps back and forth between
// days, each day counts only once.
func (s *dayCount) addDay(day int64) bool {
	ahead := day - s.day
	if s.seen == 0 || ahead <= -64 {
		s.day, s.seen, ahead = day, 0, 0
	}
	if ahead > 0 {
		s.day, s.seen, ahead = day, s.seen<<min(ahead, 64), 0
	}
	bit := uint64(1) << -ahead
	fresh := s.seen&bit == 0
	if s.seen |= bit; fresh {
		s.days++
	}
	return fresh
}

const (
	briefWindow = 5 * 60
	hour        = 60 * 60
	boutWindow  = 10 * 60
	day         = 24 * hour
)

// principalState holds the learned usual behaviour of one principal.
type principalState struct {
	span        dayCount
	runs        int
	calls       rateWindow // calls in five minutes
	hourly      rateWindow // calls in an hour
	started     rateWindow // executions in an hour
	destructive rateWindow // irreversible calls in five minutes
	denied      rateWindow // refused calls in ten minutes
	probes      rateWindow // unknown privacy tokens in ten minutes
	hours       hourProfile
	tools       *lruCache[toolName, *usageSeries]
	skills      *lruCache[string, *usageSeries]
	flows       *lruCache[string, *serverFlow]
	uses        uint64             // uses of all tools
	used        map[toolName]uint8 // uses by tool; nil after it had too many tools
	once        int                // number of tools that were used once
	last        [5]string          // IDs of executions, newest first
}

type toolName struct{ server, name string }

func newPerson(l StateLimits) *principalState {
	return &principalState{
		calls: rateWindow{width: briefWindow}, hourly: rateWindow{width: hour}, started: rateWindow{width: hour}, destructive: rateWindow{width: briefWindow},
		denied: rateWindow{width: boutWindow}, probes: rateWindow{width: boutWindow}, used: map[toolName]uint8{},
		tools: newLRU[toolName, *usageSeries](l.Series), skills: newLRU[string, *usageSeries](l.Series),
		flows: newLRU[string, *serverFlow](maxFlows),
	}
}

// usageSeries holds the learned usage of one skill, one server, or one tool by one principal.
type usageSeries struct {
	span      dayCount
	calls     int
	hourly    rateWindow
	size      histogramSketch // bytes of results
	arguments histogramSketch // bytes of arguments
	took      histogramSketch // durations in milliseconds
	failures  failureRate
}

func newSeries() *usageSeries { return &usageSeries{hourly: rateWindow{width: hour}} }

// serverFlow holds how much a principal reads from a server and sends to it.
type serverFlow struct {
	hourly rateWindow      // bytes read in an hour
	read   histogramSketch // bytes read by an execution
	sent   histogramSketch // bytes sent by an execution
	writes int
}

// runningExecution is the state of an execution that has not ended.
type runningExecution struct {
	read, sent map[string]float64 // bytes, by server
	skills     []string
	begun      int64
}

// Bounds on the memory for one principal or execution.
const (
	maxFlows  = 64   // servers
	maxUsed   = 8192 // tools
	maxSkills = 8
)

// countUse counts a use of a tool. It returns true if the principal has never used the tool before and seldom uses
// new tools. The Good-Turing estimate gives the probability of a new tool from the number of tools used only once.
func (p *principalState) countUse(t toolName) bool {
	if p.used == nil {
		return false
	}
	n := p.used[t]
	settled := p.uses >= 200 && float64(p.once+1) < 0.01*float64(p.uses)
	p.uses++
	switch n {
	case 0:
		p.once++
	case 1:
		p.once--
	}
	if n < 2 {
		p.used[t] = n + 1
	}
	if len(p.used) > maxUsed {
		p.used = nil // whether a tool is new cannot be said any more
	}
	return n == 0 && settled
}

func (p *principalState) rememberID(id string) {
	if id == "" || p.last[0] == id {
		return
	}
	copy(p.last[1:], p.last[:])
	p.last[0] = id
}

func (p *principalState) rememberedIDs() []string {
	return slices.DeleteFunc(slices.Clone(p.last[:]), func(id string) bool { return id == "" })
}

// hourProfile counts for each hour of the day on how many days something happened in it.
type hourProfile struct {
	days  [24]int
	total int
	slot  int64 // current hour since 1970
	begun bool
	count int // executions in the current hour
}

// addExecution counts an execution at an hour of the day. It returns true for the third execution within one hour, if
// the principal was almost never active around that hour of the day before.
func (h *hourProfile) addExecution(slot int64, at, enough int) bool {
	around := h.daysAround(at)
	if !h.begun || slot != h.slot {
		h.slot, h.begun, h.count = slot, true, 0
	}
	if h.count++; h.count == 1 {
		h.days[at]++
		around++
	}
	return h.count == 3 && h.total >= enough && 20*(around-1) <= h.total
}

// daysAround returns the number of active days, summed over the given hour of the day and the hours before and after
// it.
func (h *hourProfile) daysAround(at int) int {
	return h.days[(at+23)%24] + h.days[at] + h.days[(at+1)%24]
}

// decayCounts reduces the weight of old counts.
func (h *hourProfile) decayCounts() {
	if h.total++; h.total < 90 {
		return
	}
	h.total /= 2
	for i := range h.days {
		h.days[i] /= 2
	}
}

// usualHours describes as text the hours at which something happens on at least one day in ten.
func (h *hourProfile) usualHours() string {
	var parts []string
	for at := 0; at < 24; at++ {
		begin := at
		for at < 24 && 10*h.days[at] >= max(1, h.total) {
			at++
		}
		if at > begin {
			parts = append(parts, formatHour(begin)+" to "+formatHour(at))
		}
	}
	if len(parts) == 0 {
		return "none in particular"
	}
	return strings.Join(parts, ", ")
}

func formatHour(hour int) string {
	return string([]byte{'0' + byte(hour/10), '0' + byte(hour%10)}) + ":00"
}
