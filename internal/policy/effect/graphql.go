package effect

import (
	"slices"
	"strings"

	"retort/internal/core"
)

// judgeGraphQL judges a GraphQL document by the fields of its mutations. ok is false if the document has no mutation.
func judgeGraphQL(text string) (j textJudgement, ok bool) {
	if !strings.Contains(text, "mutation") {
		return textJudgement{}, false
	}
	if len(text) > maxQuery {
		return textJudgement{kind: core.EffectIrreversible, grade: core.GradeMoney, verb: "a mutation that is too long to be judged"}, true
	}
	tokens := tokenizeQuery(dialects[len(dialects)-1], text)
	braces, parens, mutates := 0, 0, false
	for i, t := range tokens {
		switch {
		case t.text == "(":
			parens++
		case t.text == ")":
			parens = max(0, parens-1)
		case parens > 0: // arguments, and defaults of variables
		case t.text == "{":
			braces++
		case t.text == "}":
			braces = max(0, braces-1)
			mutates = mutates && braces > 0
		case t.kind != tokenWord:
		case t.text == "mutation" && braces == 0 && opensSelection(tokens[i+1:]):
			ok, mutates = true, true
			j.raiseEffect(core.EffectWrite, "mutation", false)
		case mutates && braces == 1:
			name := judgeName(t.raw)
			name.verb = "mutation " + t.raw
			if j.grade = max(j.grade, name.grade); name.kind > j.kind {
				j.raiseJudgement(name)
			}
		}
	}
	return j, ok
}

// opensSelection reports whether the tokens after "mutation" continue as a GraphQL operation: a name, variables or
// directives, and then {.
func opensSelection(tokens []queryToken) bool {
	if len(tokens) == 0 || tokens[0].kind != tokenWord && !strings.Contains("{(@", tokens[0].text) {
		return false
	}
	return slices.ContainsFunc(tokens, func(t queryToken) bool { return t.text == "{" })
}
