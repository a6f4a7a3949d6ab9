package config

// GVisor configures where gVisor is installed on this machine.
type GVisor struct {
	Runsc string // path of runsc, or its name in PATH; empty means "runsc"
}

func (g *GVisor) reader() settingReader {
	return readObject(fieldReader{"runsc", "Path of runsc, or its name in PATH.", readProgramName(&g.Runsc)})
}
