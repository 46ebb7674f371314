//go:build unix

package localplane

import (
	"errors"
	"os"
	"syscall"
)

// detached starts a child in a separate process group, so that Ctrl-C in the terminal reaches only this process, which
// then stops its children in order. The child stays in the session of this process: Linux shares CPU time equally
// between sessions (sched(7), autogroup). On a busy machine, a component with a separate session would get as much CPU
// time as the tests, the compiler and all other processes of the terminal together.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// suspend suspends a process until proceed is called.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func proceed(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// tryLock locks an open file if no other process has locked it. The kernel releases the lock when the file is closed,
// which includes the end of this process for any reason.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
