package interpreter

import (
	"debug/elf"
	"errors"
	"slices"
)

// CheckStatic returns an error if an executable cannot run as the only file of a sandbox, for example because it is
// dynamically linked. The executable must be for the processor that the argument processor names. The value
// elf.EM_NONE stands for any processor.
func CheckStatic(file string, processor elf.Machine) error {
	program, err := elf.Open(file)
	if err != nil {
		return errors.New("it is not a program for Linux")
	}
	defer program.Close()
	if processor != elf.EM_NONE && processor != program.Machine {
		return errors.New("it is for another processor")
	}
	if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return errors.New("it needs shared libraries")
	}
	return nil
}
