//go:build amd64 || arm64

package confine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestContainerProfile checks that no container profile allows a dangerous or unnamed system call, and that clone has
// a single condition that excludes new namespaces.
func TestContainerProfile(t *testing.T) {
	for profile := range profiles {
		data, err := ContainerProfile(profile, NoNetwork)
		if err != nil {
			t.Fatal(err)
		}
		var p containerProfile
		if err := json.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Syscalls {
			for _, name := range s.Names {
				if name == "" || strings.Contains(strings.Join([]string{"mount", "unshare", "setns", "ptrace", "bpf", "socket", "connect", "io_uring_setup", "kexec_load"}, " ")+" ", name+" ") && s.Action == allow {
					t.Errorf("%s: %q is allowed", profile, name)
				}
			}
			if len(s.Names) == 1 && s.Names[0] == "clone" && (len(s.Args) != 1 || s.Args[0].Value&namespaces != namespaces || s.Args[0].Two&namespaces != 0) {
				t.Errorf("%s: clone %+v", profile, s.Args)
			}
		}
	}
	if _, err := ContainerProfile("none", NoNetwork); err == nil {
		t.Error("an invalid profile is accepted")
	}
}

// TestRelayedProfile checks that a relay may start a process only without new namespaces and may create only TCP
// sockets over IPv4.
func TestRelayedProfile(t *testing.T) {
	data, err := ContainerProfile("python", Relayed)
	if err != nil {
		t.Fatal(err)
	}
	var p containerProfile
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Syscalls {
		for _, name := range s.Names {
			switch {
			case s.Action != allow:
			case name == "clone":
				if len(s.Args) != 1 || s.Args[0].Value&namespaces != namespaces || s.Args[0].Two&namespaces != 0 {
					t.Errorf("clone %+v", s.Args)
				}
			case name == "socket":
				if len(s.Args) != 3 || s.Args[0].Value != 2 || s.Args[1].Value != 0xf || s.Args[1].Two != 1 {
					t.Errorf("socket %+v", s.Args)
				}
			case slices.Contains(strings.Fields("mount unshare setns ptrace bpf io_uring_setup kexec_load kill tkill fork vfork execveat"), name):
				t.Errorf("%q is allowed", name)
			}
		}
	}
}
