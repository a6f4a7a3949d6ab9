package rules

import (
	"strings"
)

// fileUse says whether a call reads, writes or deletes a file.
type fileUse uint8

const (
	useReads fileUse = iota + 1
	useWrites
	useDeletes
	useWipes // a whole tree
)

// fileFunctions maps the names of functions in file modules to how they use a file.
var fileFunctions = map[string]fileUse{
	"readFile": useReads, "readFileSync": useReads, "readdir": useReads, "readdirSync": useReads,
	"createReadStream": useReads, "access": useReads, "stat": useReads, "open": useReads, "openSync": useReads,
	"cp":     useReads,
	"cpSync": useReads, "copyFile": useReads, "copyFileSync": useReads, "symlink": useWrites,
	"symlinkSync": useWrites, "link": useWrites, "writeFile": useWrites, "writeFileSync": useWrites,
	"appendFile":     useWrites,
	"appendFileSync": useWrites, "createWriteStream": useWrites, "mkdir": useWrites, "mkdirSync": useWrites,
	"rename": useWrites, "renameSync": useWrites, "chmod": useWrites, "chmodSync": useWrites,
	"chown": useWrites, "chownSync": useWrites, "truncate": useDeletes, "truncateSync": useDeletes,
	"unlink": useDeletes, "unlinkSync": useDeletes, "rm": useDeletes, "rmSync": useDeletes, "rmdir": useDeletes,
	"rmdirSync": useDeletes, "read_file": useReads, "write_file": useWrites, "list_files": useReads,
	"read_text": useReads, "read_bytes": useReads, "write_text": useWrites, "write_bytes": useWrites,
	"listdir": useReads, "scandir": useReads, "walk": useReads, "remove": useDeletes, "removedirs": useWipes,
	"rmtree": useWipes, "copy": useReads, "copytree": useReads, "move": useWrites, "replace": useWrites,
	"makedirs": useWrites, "readlink": useReads, "copy2": useReads,
}

var fileModules = []string{"@fs.", "@fs-extra.", "@os.", "@shutil.", "@pathlib.Path().", "@io.", "@glob.", "@aiofiles."}

// fileUseOf returns how the function with this dotted path uses a file. It returns 0 if the function does not use
// files.
func fileUseOf(path string) fileUse {
	switch path {
	case "open", "read_file", "list_files", "@io.open", "@codecs.open", "@tokenize.open", "@fileinput.input",
		"@linecache.getlines", "@pathlib.Path":
		return useReads
	case "write_file":
		return useWrites
	}
	for _, m := range fileModules {
		if strings.HasPrefix(path, m) {
			return fileFunctions[lastName(path)]
		}
	}
	return 0
}

var (
	sensitivePath = compileLazily(
		`(?i)^(file://)?/(etc/(passwd|shadow|sudoers|ssh|hosts|crontab|cron\.|ld\.so|kubernetes)|proc(/|$)|sys(/|$)|root(/|$)|boot(/|$)|dev/(mem|kmem|sd|nvme|shm|kvm)|var/(run|log|lib)/|run/)|(^|/)(\.ssh|\.aws|\.kube|\.gnupg|\.docker|\.config/gcloud|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.bash_history|\.bashrc|\.zshrc|\.profile|id_rsa|id_ed25519|authorized_keys|docker\.sock)(/|$|\.)|^(\.\./){2,}|/\.\./\.\./|^~(/\.|$|root)|^[a-z]:\\(windows|users)`,
	)
	topFolder = compileLazily(`^(/|/\*|~|~/|\.\.?|\.\./?|\./?|/[\w.-]+/?|\*|[a-zA-Z]:\\?)$`)
)

// fileCall judges a call of a function that uses files.
func (j *treeJudge) fileCall(i int32, path string, args []int32) {
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
	if len(args) > 1 && use == useDeletes && j.isRecursive(args[1]) {
		use = useWipes
	}
	switch {
	case use == useWipes && topFolder().MatchString(name):
		j.addFinding("files.wipe", i, lastName(path)+" "+name)
	case sensitivePath().MatchString(name):
		j.addFinding("files.outside", i, name)
	case use == useWipes:
		j.addFinding("files.tree", i, lastName(path)+" "+name)
	case use == useDeletes && j.loops[i]:
		j.addFinding("files.tree", i, lastName(path)+" in a loop")
	case use == useDeletes:
		j.addFinding("files.delete", i, lastName(path)+" "+name)
	}
}

// pathOf returns the file name in a call Path(name).method(), or "" if it is unknown.
func (j *treeJudge) pathOf(i int32) string {
	if s, ok := j.constantText(j.nthChild(max(j.nthChild(i, 0), 0), 0)); ok {
		return s
	}
	for c := range j.subtreeNodes(i) {
		if j.hasKind(c, Call) && strings.HasSuffix(strings.Join(j.possiblePaths(j.nthChild(c, 0)), " "), "@pathlib.Path") {
			return j.knownText(j.nthChild(c, 1))
		}
		if j.hasKind(c, Name) && j.hasKind(j.onlyValue(c), Call) && j.onlyValue(c) != i && j.nthChild(j.onlyValue(c), 1) >= 0 {
			return j.knownText(j.nthChild(j.onlyValue(c), 1))
		}
	}
	return ""
}

func (j *treeJudge) isRecursive(options int32) bool {
	if options = j.onlyValue(options); !j.hasKind(options, Object) {
		return false
	}
	for c := range j.childNodes(options) {
		if j.hasKind(c, Property) && j.keyOf(c) == "recursive" && !strings.Contains(j.sourceOf(c), "false") {
			return true
		}
	}
	return false
}
