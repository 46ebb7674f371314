package localplane

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"testing/fstest"
)

// embedded contains the files of the module internal/controlplane, each with the suffix .txt. The zip of a module does
// not contain nested modules, so a user who runs "go get" receives only these copies. "go generate" updates them.
//
//go:embed controlplane/go.mod.txt controlplane/go.sum.txt controlplane/*.go.txt
var embedded embed.FS

// embeddedSource returns the files of the module internal/controlplane.
func embeddedSource() (fs.FS, error) {
	const folder, suffix = "controlplane", ".txt"
	entries, err := embedded.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the embedded sources of the control plane binaries: %w", err)
	}
	source := fstest.MapFS{}
	for _, entry := range entries {
		data, err := embedded.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the embedded sources of the control plane binaries: %w", err)
		}
		source[strings.TrimSuffix(entry.Name(), suffix)] = &fstest.MapFile{Data: data}
	}
	return source, nil
}

// buildKey returns a hash of all inputs of a build: the names and contents of all source files, the flags, the platform
// and the version of Go.
func buildKey(source fs.FS) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("compute the cache key of the control plane binaries: %w", err)
	}
	fmt.Fprintln(hash, buildFlags, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
