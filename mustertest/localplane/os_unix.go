//go:build unix

package localplane

import (
	"errors"
	"os"
	"syscall"
)

// detached gives a child a session of its own, so that Ctrl-C in the terminal reaches only this
// process, which then stops its children in order.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

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
