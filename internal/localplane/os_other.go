//go:build !unix

package localplane

import (
	"errors"
	"os"
	"syscall"
)

func detached() *syscall.SysProcAttr { return nil }

func tryLock(*os.File) (bool, error) {
	return false, errors.New("local control planes need Linux or macOS")
}
