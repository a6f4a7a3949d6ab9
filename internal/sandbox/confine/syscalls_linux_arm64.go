package confine

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// olderBasic is empty, because this architecture has none of the older system calls.
var olderBasic, olderFiles, olderForbidden, olderChmod, olderOpen []uintptr

// olderNames is empty, because this architecture has none of the older system calls.
var olderNames = map[uintptr]string{}
