package config

// VM configures the programs and images of virtual machines.
type VM struct {
	QEMU string // path of QEMU's program, or its name in PATH; "": "qemu-system-x86_64"
	// Firecracker is the path of the Firecracker program, or its name in PATH. Empty means "firecracker", which need
	// not be installed.
	Firecracker string
	Kernel      string // folder with boot/vmlinuz-* and lib/modules; "": the one that `retort vm setup` chose
}

func (v *VM) reader() settingReader {
	return readObject(
		fieldReader{"qemu", "Path of QEMU, or its name in PATH.", readProgramName(&v.QEMU)},
		fieldReader{"firecracker", "Path of Firecracker, or its name in PATH.", readProgramName(&v.Firecracker)},
		fieldReader{"kernel", "Folder with boot/vmlinuz-* and lib/modules. retort vm setup chooses one by default.", readPath(&v.Kernel)},
	)
}
