package reaper

import (
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

const rootDir = `C:\`

func prepareCommand(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP
	cmd.SysProcAttr.HideWindow = true
}

// processGroup represents the job object of a child and its descendants. The system terminates the job when its last
// handle is closed, which also happens when this process dies.
type processGroup struct{ job windows.Handle }

func newGroup(cmd *exec.Cmd) (processGroup, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return processGroup{}, err
	}
	g := processGroup{job}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		g.closeGroup()
		return processGroup{}, err
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err != nil {
		g.closeGroup()
		return processGroup{}, err
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		g.closeGroup()
		return processGroup{}, err
	}
	return g, nil
}

func (g processGroup) awaitLeader(cmd *exec.Cmd) { _ = cmd.Wait() }

// terminateAll does nothing, because Windows has no way to ask a console program without a window to end. Servers end
// when their standard input is closed.
func (g processGroup) terminateAll() {}
func (g processGroup) killAll()      { _ = windows.TerminateJobObject(g.job, 1) }
func (g processGroup) isAlive() bool {
	return false // ended with the leader: kill does it
}
func (g processGroup) closeGroup() { _ = windows.CloseHandle(g.job) }

func detachHelper(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

func ignoreSignals() {}

func startTime(pid int) string {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(process)
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(process, &created, &exited, &kernel, &user) != nil {
		return ""
	}
	return strconv.FormatInt(created.Nanoseconds(), 10)
}

// killGroup kills the process pid if it began at the time start. It need not kill the descendants, because Windows has
// already terminated their job.
func killGroup(pid int, start string) {
	process, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return
	}
	defer windows.CloseHandle(process)
	if start != "" && startTime(pid) == start {
		_ = windows.TerminateProcess(process, 1)
	}
}
