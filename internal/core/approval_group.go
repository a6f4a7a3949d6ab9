package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
)

// maxSame bounds the number of questions that are shown together.
const maxSame = 1000

// GroupAlike merges questions that a person can decide together, and keeps the order. It merges equal questions. It
// also merges questions of one execution about calls of one tool that differ only in their arguments; Rows then has the
// arguments of all calls, and Arguments is empty. In a merged question, Same has the ids of the other questions, Count
// is the number of questions, and Digest covers all of them.
func GroupAlike(waiting []Approval) []Approval {
	var groups [][]Approval
	at := map[[3]string][]int{} // in groups
	for _, a := range waiting {
		equal, alike := [3]string{"", "", a.Digest}, [3]string{a.Execution, a.Server, a.Tool}
		candidates := slices.Concat(at[equal], at[alike])
		k := slices.IndexFunc(candidates, func(i int) bool { return len(groups[i]) <= maxSame && groups[i][0].IsAlike(a.Question) })
		if k < 0 {
			at[equal], at[alike] = append(at[equal], len(groups)), append(at[alike], len(groups))
			groups = append(groups, []Approval{a})
			continue
		}
		groups[candidates[k]] = append(groups[candidates[k]], a)
	}
	list := make([]Approval, len(groups))
	for i, group := range groups {
		list[i] = mergeAlike(group)
	}
	return list
}

// IsAlike reports whether a person can decide two questions together: they are equal, or they are about calls of one
// execution that differ only in their arguments.
func (q Question) IsAlike(other Question) bool {
	if q.Login != "" {
		return false // each login has its own URL
	}
	if q.Execution == other.Execution && q.IsCall() && q.Code != "" && q.Repeats == "" {
		for _, one := range []*Question{&q, &other} {
			one.Arguments, one.Shown, one.Outlines, one.Impact, one.Discreet = nil, nil, nil, nil, nil
		}
	}
	q.Execution, other.Execution = "", ""
	return reflect.DeepEqual(q, other)
}

// mergeAlike merges questions that are alike. The merged question has the text of the first one.
func mergeAlike(group []Approval) Approval {
	a := group[0]
	if len(group) == 1 {
		return a
	}
	a.Count, a.Same = len(group), nil
	var digests []string
	var rows, shown []json.RawMessage
	for i, one := range group {
		digests, rows, shown = append(digests, one.Digest), append(rows, one.Arguments), append(shown, one.shownArguments())
		if i == 0 {
			continue
		}
		a.Same = append(a.Same, one.ID)
		a.Outlines = append(slices.Clip(a.Outlines), missingFrom(a.Outlines, one.Outlines)...)
		a.Impact, a.Discreet = joinImpacts(a.Impact, one.Impact), joinImpacts(a.Discreet, one.Discreet)
		if one.Expires.Before(a.Expires) {
			a.Expires = one.Expires
		}
	}
	a.Digest = JoinDigests(digests)
	if slices.ContainsFunc(rows, func(row json.RawMessage) bool { return !bytes.Equal(row, rows[0]) }) {
		a.Rows, a.shownRows = rows, shown
		a.Arguments, a.Shown = nil, nil // an approver that reads only these must not decide
	}
	return a
}

// shownArguments returns the arguments of the call as a model may see them.
func (q Question) shownArguments() json.RawMessage {
	if q.Shown != nil {
		return q.Shown
	}
	return q.Arguments
}

// joinImpacts returns the impact of two calls together. It returns nil if the impact of one is unknown.
func joinImpacts(one, other *Impact) *Impact {
	if one == nil || other == nil {
		return nil
	}
	both := one.withoutNilLists()
	both.Add(*other)
	return both
}

// missingFrom returns the texts of more that the list does not contain.
func missingFrom(list, more []string) (missing []string) {
	for _, text := range more {
		if !slices.Contains(list, text) {
			missing = append(missing, text)
		}
	}
	return missing
}

// JoinDigests returns the digest of a question that shows several questions together. If these are all equal, it is
// their own digest.
func JoinDigests(digests []string) string {
	if len(slices.Compact(slices.Clone(digests))) == 1 {
		return digests[0]
	}
	h := sha256.New()
	for _, d := range digests {
		h.Write([]byte(d)) // all have the same length
	}
	return hex.EncodeToString(h.Sum(nil))
}
