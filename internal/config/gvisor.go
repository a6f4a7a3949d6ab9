package config

// GVisor configures where the gVisor sandbox is installed on this machine.
type GVisor struct {
	Runsc string // path of runsc, or its name in PATH; "": "runsc"
}

func (g *GVisor) reader() settingReader {
	return readObject(fieldReader{"runsc", "Path of runsc, or its name in PATH.", readProgramName(&g.Runsc)})
}
