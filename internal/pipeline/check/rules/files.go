package rules

import (
	"strings"
)

// fileUse says how a call uses a file.
type fileUse uint8

const (
	reads fileUse = iota + 1
	writes
	deletes
	wipes // a whole tree
)

// fileFunctions maps the last names of functions in file modules to their use of a file.
var fileFunctions = map[string]fileUse{
	"readFile": reads, "readFileSync": reads, "readdir": reads, "readdirSync": reads, "createReadStream": reads, "access": reads, "stat": reads, "open": reads, "openSync": reads, "cp": reads,
	"cpSync": reads, "copyFile": reads, "copyFileSync": reads, "symlink": writes, "symlinkSync": writes, "link": writes, "writeFile": writes, "writeFileSync": writes, "appendFile": writes,
	"appendFileSync": writes, "createWriteStream": writes, "mkdir": writes, "mkdirSync": writes, "rename": writes, "renameSync": writes, "chmod": writes, "chmodSync": writes,
	"chown": writes, "chownSync": writes, "truncate": deletes, "truncateSync": deletes, "unlink": deletes, "unlinkSync": deletes, "rm": deletes, "rmSync": deletes, "rmdir": deletes,
	"rmdirSync": deletes, "read_file": reads, "write_file": writes, "list_files": reads, "read_text": reads, "read_bytes": reads, "write_text": writes, "write_bytes": writes,
	"listdir": reads, "scandir": reads, "walk": reads, "remove": deletes, "removedirs": wipes, "rmtree": wipes, "copy": reads, "copytree": reads, "move": writes, "replace": writes,
	"makedirs": writes, "readlink": reads, "copy2": reads,
}

var fileModules = []string{"@fs.", "@fs-extra.", "@os.", "@shutil.", "@pathlib.Path().", "@io.", "@glob.", "@aiofiles."}

// fileUseOf returns how calling the function at a path uses a file, or 0 if it does not.
func fileUseOf(path string) fileUse {
	switch path {
	case "open", "read_file", "list_files", "@io.open", "@codecs.open", "@tokenize.open", "@fileinput.input", "@linecache.getlines", "@pathlib.Path":
		return reads
	case "write_file":
		return writes
	}
	for _, m := range fileModules {
		if strings.HasPrefix(path, m) {
			return fileFunctions[last(path)]
		}
	}
	return 0
}

var (
	sensitive = lazily(`(?i)^(file://)?/(etc/(passwd|shadow|sudoers|ssh|hosts|crontab|cron\.|ld\.so|kubernetes)|proc(/|$)|sys(/|$)|root(/|$)|boot(/|$)|dev/(mem|kmem|sd|nvme|shm|kvm)|var/(run|log|lib)/|run/)|(^|/)(\.ssh|\.aws|\.kube|\.gnupg|\.docker|\.config/gcloud|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.bash_history|\.bashrc|\.zshrc|\.profile|id_rsa|id_ed25519|authorized_keys|docker\.sock)(/|$|\.)|^(\.\./){2,}|/\.\./\.\./|^~(/\.|$|root)|^[a-z]:\\(windows|users)`)
	top       = lazily(`^(/|/\*|~|~/|\.\.?|\.\./?|\./?|/[\w.-]+/?|\*|[a-zA-Z]:\\?)$`)
)

// fileCall judges how a program uses files.
func (j *judge) fileCall(i int32, path string, args []int32) {
	use := fileUseOf(path)
	if use == 0 {
		return
	}
	name := ""
	if len(args) > 0 {
		name = j.knownText(args[0])
	}
	if strings.HasPrefix(path, "@pathlib.Path().") {
		name = j.pathOf(i)
	}
	if len(args) > 1 && use == deletes && j.isRecursive(args[1]) {
		use = wipes
	}
	switch {
	case use == wipes && top().MatchString(name):
		j.find("files.wipe", i, last(path)+" "+name)
	case sensitive().MatchString(name):
		j.find("files.outside", i, name)
	case use == wipes:
		j.find("files.tree", i, last(path)+" "+name)
	case use == deletes && j.loops[i]:
		j.find("files.tree", i, last(path)+" in a loop")
	case use == deletes:
		j.find("files.delete", i, last(path)+" "+name)
	}
}

// pathOf returns the path that Path(…).method() refers to.
func (j *judge) pathOf(i int32) string {
	if s, ok := j.text(j.child(max(j.child(i, 0), 0), 0)); ok {
		return s
	}
	for c := range j.inside(i) {
		if j.is(c, Call) && strings.HasSuffix(strings.Join(j.path(j.child(c, 0)), " "), "@pathlib.Path") {
			return j.knownText(j.child(c, 1))
		}
		if j.is(c, Name) && j.is(j.only(c), Call) && j.only(c) != i && j.child(j.only(c), 1) >= 0 {
			return j.knownText(j.child(j.only(c), 1))
		}
	}
	return ""
}

func (j *judge) isRecursive(options int32) bool {
	if options = j.only(options); !j.is(options, Object) {
		return false
	}
	for c := range j.children(options) {
		if j.is(c, Property) && j.keyOf(c) == "recursive" && !strings.Contains(j.raw(c), "false") {
			return true
		}
	}
	return false
}
