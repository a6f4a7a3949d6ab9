package config

import "time"

// Isolation selects who shares an instance of an upstream server: all callers, the sessions of one principal, or
// the calls of one session. The empty Isolation means that the settings do not say it.
type Isolation string

// The values of Isolation.
const (
	IsolationShared    Isolation = "shared"
	IsolationPrincipal Isolation = "principal"
	IsolationSession   Isolation = "session"
)

// Never is the duration to which the word "never" in a setting is converted.
const Never time.Duration = -1

// ServerInstances configures who shares a server, how many instances of it run, and for how long.
type ServerInstances struct {
	Isolation Isolation
	Stateful  bool          // the server keeps state between calls
	Idle      time.Duration // time without a call after which an instance is stopped; 0: not set; may be Never
	Instances int           // maximum number of instances; 0: not set
}

func (i *ServerInstances) fieldReaders() []fieldReader {
	return []fieldReader{
		{"isolation", "Who shares an instance of the server: all callers, the sessions of one principal, or the calls of one session.", readOneOf(&i.Isolation, IsolationShared, IsolationPrincipal, IsolationSession)},
		{"stateful", "The server remembers what it was told, so users get separate instances, which do not end when they are idle.", readBool(&i.Stateful)},
		{"idle", "Time without a call after which an instance ends, or never.", readOrWord(&i.Idle, "never", Never, readDuration(&i.Idle, time.Second, 30*24*time.Hour))},
		{"instances", "Maximum number of instances that run at once, in addition to the main one. The default is 16.", readInt(&i.Instances, 1, 10_000)},
	}
}
