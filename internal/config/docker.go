package config

// Docker configures how containers are run. The zero value looks for a daemon and builds all images on this machine.
type Docker struct {
	Host string // unix:///path; "": find the daemon
	// Runtime names an OCI runtime of the daemon. If it is empty, it is runsc if the daemon has that, otherwise
	// the daemon's default.
	Runtime string
	Guest   string            // path of a static retort binary for Linux, needed if this program is not one
	Images  map[string]string // by runtime: image in the form NAME@sha256:DIGEST
}

// imageDigest matches the name of an image with its digest.
const imageDigest = `^[a-z0-9][a-z0-9._/:-]*@sha256:[0-9a-f]{64}$`

func (d *Docker) reader() settingReader {
	return readObject(
		fieldReader{"host", "Address of the Docker or Podman daemon. By default Retort looks for it.", readMatching(&d.Host, "unix:///path, or tcp://localhost:port", "^(unix:///|tcp://)")},
		fieldReader{"runtime", "Runtime of the daemon. The default is runsc if the daemon has it.", readChecked(&d.Runtime, "the name of a runtime that the daemon has, such as runsc", func(s string) bool { return s != "" })},
		fieldReader{"guest", "Path of a static retort for Linux, if this program is not one.", readChecked(&d.Guest, "the path of a program", func(s string) bool { return s != "" })},
		fieldReader{"images", "Images with their digests, for each runtime. By default Retort builds them.", readObject(d.readImage("python"), d.readImage("node"), d.readImage("bun"), d.readImage("deno"))},
	)
}

// readImage returns the reader for the image of one runtime.
func (d *Docker) readImage(runtime string) fieldReader {
	name := d.Images[runtime]
	image := readMatching(&name, "an image with its digest, NAME@sha256:…, because a tag can change", imageDigest)
	return fieldReader{runtime, "Image for programs of this runtime, as NAME@sha256:DIGEST.", image.checkedBy(func(r *nodeReader, n *valueNode) {
		image.read(r, n)
		if d.Images == nil {
			d.Images = map[string]string{}
		}
		d.Images[runtime] = name
	})}
}
