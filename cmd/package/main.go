// Command package builds the files of a Retort release that GoReleaser does not build. It runs in the root of the
// repository and reads the accounts from packaging/accounts.env.
//
//	package version
//	    prints the version of the release
//	package wrapper [-out DIR]
//	    builds the npm package that users install
//	package platform -binary FILE -os OS -arch ARCH -time TIME [-out DIR]
//	    builds the bundle for desktop clients, the npm package and the bill of materials of a binary
//	package formula|registry -sums FILE -out FILE
//	    writes the Homebrew formula, or the entry for the MCP registry, from the checksums of a release
//	package provenance -sums FILE -commit COMMIT [-modified] [-dry-run] -out FILE
//	    writes the provenance statement of the files in the checksums
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

// run executes a command line. It writes the names of the files that it creates to out.
func run(args []string, out io.Writer) error {
	commands := map[string]func(*release, *flag.FlagSet, []string) error{
		"version": (*release).printVersion, "wrapper": (*release).buildWrapper, "platform": (*release).buildPlatform,
		"formula": (*release).writeFormula, "registry": (*release).writeEntry, "provenance": (*release).writeProvenance,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("the first argument must be version, wrapper, platform, formula, registry or provenance")
	}
	flags := flag.NewFlagSet("package "+args[0], flag.ContinueOnError)
	folder := flags.String("packaging", "packaging", "folder with the templates and accounts")
	return commands[args[0]](&release{stdout: out, folder: folder}, flags, args[1:])
}

// parse parses the flags of a command. It returns an error if a flag in required is missing.
func parse(flags *flag.FlagSet, args []string, required ...string) error {
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	var missing []string
	for _, name := range required {
		if flags.Lookup(name).Value.String() == "" {
			missing = append(missing, "-"+name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s is missing", strings.Join(missing, ", "))
	}
	return nil
}
