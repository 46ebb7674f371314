package muster_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)

// TestDocuments_LinksLeadToFiles checks every relative link of the Markdown files: the file or the folder must exist.
// docs/architecture.md names the files of each flow by such links.
func TestDocuments_LinksLeadToFiles(t *testing.T) {
	checked := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != ".":
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range link.FindAllStringSubmatch(string(content), -1) {
			target := match[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
				t.Errorf("%s: link to %s: %v", path, target, err)
			}
		}
		return nil
	}))
	require.Greater(t, checked, 40, "docs/architecture.md alone has more links")
}

// TestGlossary_AtMostFortyTerms keeps the vocabulary small.
func TestGlossary_AtMostFortyTerms(t *testing.T) {
	content, err := os.ReadFile("docs/glossary.md")
	require.NoError(t, err)
	terms := regexp.MustCompile(`(?m)^\| [^|]+ \|`).FindAllString(string(content), -1)
	require.Greater(t, len(terms), 20)
	require.LessOrEqual(t, len(terms)-1, 40, "the first row is the header")
}
