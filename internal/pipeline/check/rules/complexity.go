package rules

import "strconv"

// Cyclomatic complexities above which a rule reports a function.
const (
	complexFunction = 40
	complexExtreme  = 150
)

// findComplexity computes the cyclomatic complexity of each function, and of the code outside of functions. The
// complexity is one, plus one for each branch, loop and logical operator.
func (j *treeJudge) findComplexity() {
	var inner []int32 // the functions that a node is in
	counts := map[int32]int{0: 1}
	for i := range j.Nodes {
		at := int32(i)
		for len(inner) > 0 && at >= inner[len(inner)-1]+j.Nodes[inner[len(inner)-1]].Size {
			inner = inner[:len(inner)-1]
		}
		owner := int32(0)
		if len(inner) > 0 {
			owner = inner[len(inner)-1]
		}
		switch j.Nodes[i].Kind {
		case Branch, Loop, Logical:
			counts[owner]++
		case Function:
			inner = append(inner, at)
			counts[at] = 1
		}
	}
	for i := range j.Nodes {
		n := counts[int32(i)]
		j.most = max(j.most, n)
		switch {
		case n > complexExtreme:
			j.addFinding("complexity.extreme", int32(i), strconv.Itoa(n))
		case n > complexFunction:
			j.addFinding("complexity.function", int32(i), strconv.Itoa(n))
		}
	}
}
