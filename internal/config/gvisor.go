package config

// GVisor configures where gVisor is installed on this machine.
type GVisor struct {
	Runsc string // path of runsc, or its name in PATH; empty means "runsc"
}

func (g *GVisor) readFunc() readFunc {
	return readObject(fieldReader{"runsc", readProgramName(&g.Runsc)})
}
