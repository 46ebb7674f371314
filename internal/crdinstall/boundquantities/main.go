// Command boundquantities limits the exponents of quantities in the generated CRDs of a folder.
//
// The generated pattern of a quantity allows any exponent, and decoding or comparing 1e-2147483647 takes practically
// forever. A user who may write such an object could block every reader.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	generated = `([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+)))`
	bounded   = `([eE](\+|-)?[0-9]{1,2})`
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: boundquantities FOLDER")
		os.Exit(2)
	}
	if err := bound(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "boundquantities:", err)
		os.Exit(1)
	}
}

func bound(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), generated) {
			continue
		}
		found = true
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), generated, bounded)), 0o644); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no quantity in %s has the pattern %s: has the generator another one by now?", folder, generated)
	}
	return nil
}
