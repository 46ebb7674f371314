//go:build unix

package localplane

import (
	"errors"
	"os"
	"syscall"
)

// detached gives a child a process group of its own, so that Ctrl-C in the terminal reaches only this process, which
// then stops its children in order. It does not give it a session of its own: Linux shares CPU time equally between
// sessions (sched(7), autogroup). On a busy machine, each component would get as much as the tests, the compiler and
// everything else in the terminal together.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// suspend stops a process until proceed.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func proceed(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// tryLock takes the lock on an open file if no other process has it. The kernel lets go of it when
// the file is closed, which includes the end of this process by any cause.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
