package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	kvm    = "/dev/kvm"
	timing = "timing"
	// minSpeedup says how many times faster a machine with KVM must start than an emulated machine. Otherwise KVM is
	// not used.
	minSpeedup = 2
)

// canOpen reports whether this process can open a device for reading and writing.
func canOpen(device string) bool {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// findAccelerator decides whether machines use KVM, and with which monitor. It compares the time that an emulated
// machine takes to start with the time that a machine with KVM takes. Being able to open the KVM device is not
// enough: on some hosts KVM is itself emulated, and a machine with KVM is a hundred times slower there than an
// emulated one.
func (b *vmBackend) findAccelerator(r *SetupReport) error {
	if !canOpen(kvm) {
		r.Why = kvm + " cannot be opened, so processors are emulated"
		return nil
	}
	b.logProgress("timing the start of a virtual machine, emulated and with KVM")
	emulated := bootTime
	q, there := b.driver.(qemuDriver)
	if !there && b.qemu { // Firecracker was chosen before
		program, err := findProgram(b.QEMU, "qemu-system-x86_64")
		if err != nil {
			return err
		}
		q, there = newQEMU(program, false), true
	}
	q.kvm = false
	if there {
		b.driver = q
		var err error
		if emulated, err = b.timeStart(bootTime); err != nil {
			return err
		}
	}
	return b.tryNative(r, q, there, emulated)
}

// tryNative tries KVM, which runs machines on the native processor: first with Firecracker, which is preferred, and
// then with QEMU. If neither starts a machine fast enough, machines are emulated by QEMU.
func (b *vmBackend) tryNative(r *SetupReport, emulator qemuDriver, there bool, emulated time.Duration) error {
	var all error
	try := func(d machineDriver, name string) bool {
		b.driver = d
		took, err := b.timeStart(emulated)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			b.logProgress("with " + name + " and KVM: " + err.Error())
		}
		all = errors.Join(all, err)
		if r.KVM = err == nil && took < emulated/minSpeedup; !r.KVM {
			return false
		}
		r.Why = fmt.Sprintf("a machine starts in %v with %s and KVM", took.Round(time.Millisecond), name)
		if there {
			r.Why += fmt.Sprintf(", and in %v if it is emulated", emulated.Round(time.Millisecond))
		}
		return true
	}
	if b.found != nil && try(*b.found, "Firecracker") {
		return nil
	}
	if !there {
		return fmt.Errorf("no virtual machine starts here with Firecracker, and QEMU is not installed: %w", all)
	}
	accelerated := emulator
	if accelerated.kvm = true; try(accelerated, "QEMU") {
		return nil
	}
	b.driver = emulator
	r.Why = fmt.Sprintf(
		"%s can be opened, but a machine does not start much faster with it than emulated, which takes %v", kvm,
		emulated.Round(time.Millisecond),
	)
	return b.life.Err()
}

// timeStart measures how long a machine takes to boot until its guest is ready, and then discards the machine. It
// gives up with an error when the time in the argument within has passed.
func (b *vmBackend) timeStart(within time.Duration) (took time.Duration, err error) {
	i, err := b.describeImage(quickjs, nil)
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(b.Dir, timing)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := i.writeArchiveFile(dir); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(b.life, within)
	defer cancel()
	began := time.Now()
	m, err := b.bootMachine(ctx, i, dir)
	if err != nil {
		return 0, err
	}
	defer func() { <-m.gone }()
	defer m.Close()
	defer m.endWith(ctx)()
	if _, err := m.readGreeting(); err != nil {
		return 0, m.whyNot(err)
	}
	return time.Since(began), nil
}
