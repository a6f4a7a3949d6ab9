package confine

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// There is nothing here that had to be replaced.
var olderBasic, olderFiles, olderForbidden, olderChmod, olderOpen []uintptr

// olderNames are the names of those.
var olderNames = map[uintptr]string{}
