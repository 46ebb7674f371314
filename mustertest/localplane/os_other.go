//go:build !unix

package localplane

import (
	"errors"
	"os"
	"syscall"
)

func detached() *syscall.SysProcAttr { return nil }

var errSystem = errors.New("local control planes need Linux or macOS")

func suspend(*os.Process) error { return errSystem }

func proceed(*os.Process) error { return errSystem }

func tryLock(*os.File) (bool, error) { return false, errSystem }
