package pipeline

import (
	"fmt"

	"retort/internal/pipeline/check/rules"
	"retort/internal/sandbox"
)

// SandboxRouting determines the minimum strength of a program's sandbox. The zero value requires nothing beyond the
// configured sandbox.
type SandboxRouting struct {
	ByRisk bool                  // sandboxMode: auto
	Level  rules.StrictnessLevel // securityLevel
	Least  int                   // the strength that securityLevel asks for in addition to that of Level; 0 asks for nothing
}

// The minimum sandbox strengths: byRisk by the risk of the program, and byLevel by the setting securityLevel. The
// stronger of the two applies.
var (
	byRisk  = map[rules.RiskLevel]int{rules.RiskHigh: sandbox.Container, rules.RiskCritical: sandbox.Machine}
	byLevel = map[rules.StrictnessLevel]int{rules.Strict: sandbox.Container, rules.Maximum: sandbox.UserKernel}
)

// requiredFloor returns the floor for a program's sandbox, which is the minimum strength that the sandbox must have.
// It also returns the reason for this minimum.
func (r SandboxRouting) requiredFloor(risk rules.ProgramRisk) sandbox.MinimumStrength {
	if !r.ByRisk {
		return sandbox.MinimumStrength{}
	}
	if need := max(byLevel[r.Level], r.Least); need > byRisk[risk.Level] {
		return sandbox.MinimumStrength{Strength: need, Why: "securityLevel: " + r.Level.String()}
	}
	why := fmt.Sprintf("its risk is %s (%d)", risk.Level, risk.Score)
	if len(risk.Reasons) > 0 {
		why += ": " + risk.Reasons[0]
	}
	return sandbox.MinimumStrength{Strength: byRisk[risk.Level], Why: why}
}

// noteConsequence notes the program's risk for the Outcome, if a person is asked about the program because of it, or if
// it needs a stronger sandbox than a program of low risk.
func (x *programExecution) noteConsequence(risk rules.ProgramRisk) {
	routing := x.pipeline.Routing
	asked := x.plan == nil && x.approvalReason() == "" && x.aboutProgram(risk) != ""
	harmless := routing.requiredFloor(rules.ProgramRisk{Level: rules.RiskLow})
	if !asked && routing.requiredFloor(risk).Strength <= harmless.Strength {
		return
	}
	x.riskNote = string(risk.Level)
	if len(risk.Reasons) > 0 {
		x.riskNote += ": " + risk.Reasons[0]
	}
}
