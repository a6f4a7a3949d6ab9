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
	// gain is how many times as fast a machine has to start with KVM to be used.
	gain = 2
)

// opens says whether this process may use a device.
func opens(device string) bool {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// accelerate finds out whether machines are to run on the machine's own processor. That the
// device opens does not tell: on some hosts it is itself made by a program, and a machine with it is a
// hundred times slower than one that is emulated. So both are started, and the second one is
// given up when it takes longer than the first.
func (b *backend) accelerate(r *Report) error {
	q, ok := b.driver.(qemu)
	if !ok || !opens(kvm) {
		r.Why = kvm + " cannot be opened: processors are emulated"
		return nil
	}
	b.tell("timing the start of a machine, emulated and with KVM")
	q.kvm = false
	b.driver = q
	emulated, err := b.timeStart(bootTime)
	if err != nil {
		return err
	}
	q.kvm = true
	b.driver = q
	native, err := b.timeStart(emulated)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		b.tell("with KVM: " + err.Error())
	}
	r.KVM = err == nil && native < emulated/gain
	if r.KVM {
		r.Why = fmt.Sprintf("a machine starts in %v with KVM, and in %v if it is emulated", native.Round(time.Millisecond), emulated.Round(time.Millisecond))
		return nil
	}
	q.kvm = false
	b.driver = q
	r.Why = fmt.Sprintf("%s opens, but a machine does not start much sooner with it than the %v that it takes if it is emulated", kvm, emulated.Round(time.Millisecond))
	return b.life.Err()
}

// timeStart starts a machine from its kernel, and throws it away when its guest is there, or time
// is up.
func (b *backend) timeStart(within time.Duration) (took time.Duration, err error) {
	i, err := b.describe(quickjs, nil)
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(b.Dir, timing)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := i.archive(dir); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(b.life, within)
	defer cancel()
	began := time.Now()
	m, err := b.boot(i, dir)
	if err != nil {
		return 0, err
	}
	defer func() { <-m.gone }()
	defer m.Close()
	stop := context.AfterFunc(ctx, m.Kill)
	defer stop()
	if _, err := m.greeting(); err != nil {
		return 0, errors.Join(ctx.Err(), m.whyNot(err))
	}
	return time.Since(began), nil
}
