// Package prose checks how comments and messages are written. It is a test and nothing else.
//
// testdata/limits.json has the findings that remain in each folder. A folder without a row must have none. A number may
// only become smaller: after an improvement, go test ./internal/prose -update lowers the limits.
package prose

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "lower the limits to the present findings; limits are never raised")

const (
	root   = "../.."
	limits = "testdata/limits.json"
)

var (
	// banned words never refer to programs or objects, see docs/glossary.md.
	banned = regexp.MustCompile(`(?i)\b(nobody|whoever|whom|somebody|anybody)\b`)
	// pronoun is how no message begins: a reader sees a message without the line before it.
	pronoun = regexp.MustCompile(`^(It|That|They|This|These|Those|it|that|they|this|these|those) [a-z]`)
	marker  = regexp.MustCompile(`^\s*// ?\+|^\s*//go:|^\s*//nolint`)
)

const maxColumns = 140

// findings of one folder.
type findings struct {
	BannedWords int `json:"bannedWords,omitempty"` // comments with a banned word
	LongLines   int `json:"longLines,omitempty"`   // of more than 140 columns; a tab counts as one
	Pronouns    int `json:"pronouns,omitempty"`    // messages of errors that begin with a pronoun
}

func TestProse(t *testing.T) {
	found := survey(t, root)
	require.Greater(t, len(found), 50, "the survey has missed the folders of the repository")
	allowed := map[string]findings{}
	content, err := os.ReadFile(limits)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if err == nil {
		require.NoError(t, json.Unmarshal(content, &allowed))
	}
	next := map[string]findings{}
	for folder, f := range found {
		limit, known := allowed[folder]
		if *update && content == nil {
			limit, known = f, true
		}
		compare(t, folder, limit, f)
		lowered := findings{min(limit.BannedWords, f.BannedWords), min(limit.LongLines, f.LongLines),
			min(limit.Pronouns, f.Pronouns)}
		if known && lowered != (findings{}) {
			next[folder] = lowered
		}
	}
	if !*update {
		for folder := range allowed {
			if _, exists := found[folder]; !exists {
				t.Errorf("%s: the folder does not exist any more; run go test ./internal/prose -update", folder)
			}
		}
		return
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(next)) // maps are encoded in order
	require.NoError(t, os.WriteFile(limits, out.Bytes(), 0o600))
}

func compare(t *testing.T, folder string, limit, found findings) {
	t.Helper()
	for _, c := range []struct {
		what         string
		limit, found int
	}{
		{"comments with nobody, whoever, whom, somebody or anybody", limit.BannedWords, found.BannedWords},
		{fmt.Sprintf("lines of more than %d columns", maxColumns), limit.LongLines, found.LongLines},
		{"messages of errors that begin with a pronoun", limit.Pronouns, found.Pronouns},
	} {
		if c.found > c.limit {
			t.Errorf("%s: %s: %d, at most %d", folder, c.what, c.found, c.limit)
		}
		if c.found < c.limit && !*update { // an improvement must not fail a build
			t.Logf("%s: %s: %d, fewer than the limit %d; go test ./internal/prose -update lowers it", folder, c.what, c.found,
				c.limit)
		}
	}
}

// survey returns the findings of each folder with Go files, by its path below dir.
func survey(t *testing.T, dir string) map[string]findings {
	t.Helper()
	found := map[string]findings{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != dir):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasPrefix(entry.Name(), "zz_generated"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		f, err := inspect(path, source)
		if err != nil {
			return err
		}
		sum := found[folder]
		sum.BannedWords, sum.LongLines, sum.Pronouns = sum.BannedWords+f.BannedWords, sum.LongLines+f.LongLines, sum.Pronouns+
			f.Pronouns
		found[folder] = sum
		return nil
	}))
	return found
}

func inspect(path string, source []byte) (findings, error) {
	var f findings
	for line := range strings.Lines(string(source)) {
		if len([]rune(strings.TrimRight(line, "\n"))) > maxColumns && !marker.MatchString(line) {
			f.LongLines++
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return f, err
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if banned.MatchString(comment.Text) {
				f.BannedWords++
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !isError(call.Fun) {
			return true
		}
		literal, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && pronoun.MatchString(text) {
			f.Pronouns++
		}
		return true
	})
	return f, nil
}

// isError reports whether a function makes an error: fmt.Errorf or errors.New.
func isError(fun ast.Expr) bool {
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	in, ok := selector.X.(*ast.Ident)
	return ok && (in.Name == "fmt" && selector.Sel.Name == "Errorf" || in.Name == "errors" && selector.Sel.Name == "New")
}

// TestInspect checks that each kind of finding is found.
func TestInspect(t *testing.T) {
	f, err := inspect("a.go", []byte(`package a

// Nobody knows.
var x = fmt.Errorf("it is not %d", 1)

// +kubebuilder:validation:XValidation:rule="`+strings.Repeat("x", 140)+`"
var y = errors.New("object y is `+strings.Repeat("y", 140)+`")
`))
	require.NoError(t, err)
	require.Equal(t, findings{BannedWords: 1, LongLines: 1, Pronouns: 1}, f)
}
