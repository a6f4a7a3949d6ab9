package config

import (
	"regexp"
	"strings"
)

// Docker configures how containers are run. The zero value looks for a daemon and builds all images on this machine.
type Docker struct {
	Host    string            // unix:///path; empty means: look for it
	Runtime string            // of the daemon's; empty means runsc if it has that, else its own choice
	Guest   string            // a static retort for Linux, if this program is not one
	Images  map[string]string // by runtime: NAME@sha256:DIGEST
}

var imageDigest = regexp.MustCompile(`^[a-z0-9][a-z0-9._/:-]*@sha256:[0-9a-f]{64}$`)

func (d *Docker) readFunc() readFunc {
	image := func(runtime string) fieldReader {
		return fieldReader{runtime, func(r *nodeReader, n *valueNode) {
			var name string
			readChecked(&name, "an image with its digest, NAME@sha256:…, because a tag can change", imageDigest.MatchString)(r, n)
			if d.Images == nil {
				d.Images = map[string]string{}
			}
			d.Images[runtime] = name
		}}
	}
	return readObject(
		fieldReader{
			"host",
			readChecked(
				&d.Host, "unix:///path, or tcp://localhost:port",
				func(s string) bool { return strings.HasPrefix(s, "unix:///") || strings.HasPrefix(s, "tcp://") },
			),
		},
		fieldReader{"runtime", readChecked(&d.Runtime, "the name of a runtime that the daemon has, such as runsc", func(s string) bool { return s != "" })},
		fieldReader{"guest", readChecked(&d.Guest, "the path of a program", func(s string) bool { return s != "" })},
		fieldReader{"images", readObject(image("python"), image("node"), image("bun"), image("deno"))},
	)
}
