package index

import (
	"math"

	"retort/internal/core"
)

// toolField says which part of a tool a word was found in: server, name, title, description or parameters.
type toolField int

const (
	inServer toolField = iota
	inName
	inTitle
	inDescription
	inParams
	inProse
	fieldCount
)

const maxDescription = 8 << 10 // bytes of a description that are searched

// rankingTuning holds the constants of the ranking. BM25F normally uses the average lengths of fields in the
// collection; here they are constants. Therefore the weight of a term in a tool depends only on that tool: it is
// computed once and does not change when other servers are added or removed.
type rankingTuning struct {
	fields [fieldCount]struct {
		weight  float64 // of a word in this field
		typical float64 // length in words
		slope   float64 // how much longer fields count for less: 0 not at all, 1 in full
	}
	saturation float64 // BM25's k1
	coverage   float64 // bonus for tools that have all words of the query
	naming     float64 // bonus for tools all of whose name is in the query
	number     float64 // weight of a number in a query, which is mostly an argument
	synonym    float64 // weight of a word that means the same
	stem       func(string) string
	stop       bool
	fuzzy      bool
}

func defaultTuning() rankingTuning {
	t := rankingTuning{saturation: 1.2, coverage: 0.5, naming: 0.3, number: 0.3, synonym: 0.3, stem: stemWord, stop: true, fuzzy: true}
	set := func(f toolField, weight, typical, slope float64) {
		t.fields[f].weight, t.fields[f].typical, t.fields[f].slope = weight, typical, slope
	}
	set(inServer, 1, 2, 0.3)
	set(inName, 3, 3, 0.5)
	set(inTitle, 2, 3, 0.5)
	set(inDescription, 1.5, 20, 0.5)
	set(inParams, 0.8, 6, 0.5)
	set(inProse, 0.5, 40, 0.6)
	return t
}

// termImpact holds the weight of a term in a tool: BM25F's saturated weight, between 0 and 1, in 15 bits. The lowest
// bit is set if the tool's name contains the term.
type termImpact uint16

const (
	nameFlag  termImpact = 1
	fullScale            = 1<<15 - 1
)

func (i termImpact) toFloat() float32 { return float32(i>>1) * (1.0 / fullScale) }

// toolAnalyzer converts tools to weighted terms. It can be reused, but is not safe for concurrent use.
type toolAnalyzer struct {
	tuning  *rankingTuning
	words   *termVocabulary
	weights []float64 // by term, zero between tools
	naming  []bool    // by term, false between tools
	seen    []termID  // the terms that are not zero
	field   []termID  // of the field at hand
}

// toolDocument holds the terms found in one tool.
type toolDocument struct {
	terms   []termID
	impacts []termImpact
	name    int // distinct terms of the name
}

// readTool appends the weighted terms of a tool to the toolDocument d. It sets d.name to the number of terms in the
// tool's name.
func (a *toolAnalyzer) readTool(t *core.Tool, d *toolDocument) {
	a.addField(inServer, t.Server)
	a.addField(inName, t.Name)
	a.addField(inTitle, t.Title)
	a.addField(inDescription, t.Description[:min(len(t.Description), maxDescription)])
	parameters := readSchema(t.InputSchema)
	a.addField(inParams, parameters.names...)
	a.addField(inProse, parameters.prose...)
	d.name = 0
	for _, t := range a.seen {
		d.terms = append(d.terms, t)
		d.impacts = append(d.impacts, a.computeImpact(t))
		if a.naming[t] {
			d.name++
		}
		a.weights[t], a.naming[t] = 0, false
	}
	a.seen = a.seen[:0]
}

// addField adds the words in one field of a tool to the tool's terms. It ignores stop words, except in tool names
// such as who_am_i.
func (a *toolAnalyzer) addField(f toolField, texts ...string) {
	a.field = a.field[:0]
	for _, text := range texts {
		eachToken(text, func(text string) {
			w := a.words.addWord(text)
			if !w.stop || f == inName {
				a.field = append(a.field, w.term)
			}
		})
	}
	a.growTables()
	p := &a.tuning.fields[f]
	weight := p.weight / (1 - p.slope + p.slope*float64(len(a.field))/p.typical)
	for _, t := range a.field {
		if a.weights[t] == 0 {
			a.seen = append(a.seen, t)
		}
		a.weights[t] += weight
		a.naming[t] = a.naming[t] || f == inName
	}
}

func (a *toolAnalyzer) growTables() {
	if missing := int(a.words.count) - len(a.weights); missing > 0 {
		a.weights = append(a.weights, make([]float64, missing)...)
		a.naming = append(a.naming, make([]bool, missing)...)
	}
}

func (a *toolAnalyzer) computeImpact(t termID) termImpact {
	w := a.weights[t]
	i := termImpact(math.Round(w/(a.tuning.saturation+w)*fullScale)) << 1
	if a.naming[t] {
		i |= nameFlag
	}
	return i
}
