// Command embedsource copies the files of a nested module into a folder that a package of another module embeds.
//
// Go neither embeds a folder that contains a go.mod nor packs it into the zip of the enclosing module. Each copy
// therefore has the suffix .txt, and the files are copied without folders.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const suffix = ".txt"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: embedsource MODULE-FOLDER TARGET-FOLDER")
		os.Exit(2)
	}
	if err := embed(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "embedsource:", err)
		os.Exit(1)
	}
}

// embed copies go.mod, go.sum and all Go files of the module except tests to the target. It removes all other copies.
func embed(module, target string) error {
	sources, err := filepath.Glob(filepath.Join(module, "*.go"))
	if err != nil {
		return err
	}
	sources = slices.DeleteFunc(sources, func(source string) bool { return strings.HasSuffix(source, "_test.go") })
	if len(sources) == 0 {
		return fmt.Errorf("%s contains no Go files", module)
	}
	sources = append(sources, filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum"))

	earlier, err := filepath.Glob(filepath.Join(target, "*"+suffix))
	if err != nil {
		return err
	}
	errs := []error{os.MkdirAll(target, 0o755)}
	for _, file := range earlier {
		errs = append(errs, os.Remove(file))
	}
	for _, source := range sources {
		data, err := os.ReadFile(source)
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, os.WriteFile(filepath.Join(target, filepath.Base(source)+suffix), data, 0o644))
		}
	}
	return errors.Join(errs...)
}
