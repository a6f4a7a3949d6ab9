package confine

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// This architecture has none of the older system calls.
var olderBasic, olderFiles, olderForbidden, olderChmod, olderOpen []uintptr

// olderNames is empty on this architecture.
var olderNames = map[uintptr]string{}
