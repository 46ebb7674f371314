// Package prose checks how comments, names and messages are written, and how long lines are. It is a test and nothing
// else.
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
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
)

var update = flag.Bool("update", false, "lower the limits to the present findings; limits are never raised")

const (
	root   = "../.."
	limits = "testdata/limits.json"
)

var (
	// banned words never refer to programs or objects, see docs/glossary.md.
	banned = regexp.MustCompile(`(?i)\b(nobody|whoever|whom|somebody|anybody)\b`)
	// private has the words that identifiers must not contain: docs/glossary.md has the terms of Kubernetes for them.
	// Forget is not one of them: it is the term of client-go's workqueue for dropping what is cached for a key.
	private = map[string]bool{
		"anybody": true, "census": true, "door": true, "fare": true, "fares": true, "forgotten": true, "held": true,
		"judge": true, "judged": true, "knock": true, "ledger": true, "nobody": true, "patience": true, "sentence": true,
		"settled": true, "sight": true, "somebody": true, "standing": true, "story": true, "stray": true, "strays": true,
		"tell": true, "tells": true, "told": true, "trouble": true, "troubled": true, "verdict": true,
		"whereabouts": true, "who": true, "whoever": true, "whom": true,
	}
	// exceptions are identifiers with such a word. The value is the reason for the word.
	exceptions = map[string]string{
		"AnswerHeld":      "the constant of an API value",
		"JoinRequestHeld": "the observation of that value",
		"whoAmI":          "the request of kubectl auth whoami",
		"whoMayCommand":   "the command musterctl who-may",
	}
	// pronoun matches the beginning of a message with a pronoun. A reader sees a message without its context.
	pronoun = regexp.MustCompile(`^(It|That|They|This|These|Those|it|that|they|this|these|those) [a-z]`)
	marker  = regexp.MustCompile(`^\s*// ?\+|^\s*//go:|^\s*//nolint`)
)

// Lines should end at wantColumns and must end at maxColumns. Excepted are markers, directives, tables in Markdown,
// URLs, and the output of examples, which is one line for each line that the example prints.
const (
	wantColumns = 120
	maxColumns  = 140
)

// findings of one folder.
type findings struct {
	BannedWords int `json:"bannedWords,omitempty"` // comments with a banned word
	BannedNames int `json:"bannedNames,omitempty"` // declared identifiers and names of files with a private word
	LongLines   int `json:"longLines,omitempty"`   // of more than 140 columns; a tab counts as one
	Over120     int `json:"over120,omitempty"`     // of more than 120 columns, those of more than 140 included
	Pronouns    int `json:"pronouns,omitempty"`    // messages of errors that begin with a pronoun
	WideFields  int `json:"wideFields,omitempty"`  // fields of receivers beyond maxFields
}

func (f findings) plus(g findings) findings {
	return findings{f.BannedWords + g.BannedWords, f.BannedNames + g.BannedNames, f.LongLines + g.LongLines,
		f.Over120 + g.Over120, f.Pronouns + g.Pronouns, f.WideFields + g.WideFields}
}

func (f findings) min(g findings) findings {
	return findings{min(f.BannedWords, g.BannedWords), min(f.BannedNames, g.BannedNames), min(f.LongLines, g.LongLines),
		min(f.Over120, g.Over120), min(f.Pronouns, g.Pronouns), min(f.WideFields, g.WideFields)}
}

func TestProse(t *testing.T) {
	if testkit.RaceDetector {
		t.Skip("the test has one goroutine, and the step format of .ci/run runs the test in a second instead of two minutes")
	}
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
		lowered := limit.min(f)
		if known && lowered != (findings{}) {
			next[folder] = lowered
		}
	}
	if !*update {
		for folder := range allowed {
			if _, exists := found[folder]; !exists {
				t.Errorf("%s: the folder does not exist; run go test ./internal/prose -update", folder)
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
		finding      string
		limit, found int
	}{
		{"comments with nobody, whoever, whom, somebody or anybody", limit.BannedWords, found.BannedWords},
		{"names with a private word", limit.BannedNames, found.BannedNames},
		{fmt.Sprintf("lines of more than %d columns", maxColumns), limit.LongLines, found.LongLines},
		{fmt.Sprintf("lines of more than %d columns", wantColumns), limit.Over120, found.Over120},
		{"messages of errors that begin with a pronoun", limit.Pronouns, found.Pronouns},
		{fmt.Sprintf("fields of receivers beyond %d", maxFields), limit.WideFields, found.WideFields},
	} {
		if c.found > c.limit {
			t.Errorf("%s: %s: %d, at most %d", folder, c.finding, c.found, c.limit)
		}
		if c.found < c.limit && !*update { // an improvement must not fail a build
			t.Logf("%s: %s: %d, fewer than the limit %d; go test ./internal/prose -update lowers it", folder, c.finding, c.found,
				c.limit)
		}
	}
}

// survey returns the findings of each folder with Go files, by its path below dir.
func survey(t *testing.T, dir string) map[string]findings {
	t.Helper()
	found, types := map[string]findings{}, map[string]*receivers{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != dir):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md",
			strings.HasPrefix(entry.Name(), "zz_generated"):
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
		var f findings
		if filepath.Ext(path) == ".md" {
			f = inspectMarkdown(source)
		} else if f, err = inspect(path, source); err != nil {
			return err
		}
		found[folder] = found[folder].plus(f)
		if filepath.Ext(path) == ".go" && hasReceivers(path) {
			file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if types[folder] == nil {
				types[folder] = &receivers{}
			}
			types[folder].add(file)
		}
		return nil
	}))
	for folder, of := range types {
		fields, wide := of.excess()
		if fields > 0 {
			t.Logf("%s: types with methods and more than %d fields: %s", folder, maxFields, strings.Join(wide, ", "))
		}
		found[folder] = found[folder].plus(findings{WideFields: fields})
	}
	return found
}

func inspect(path string, source []byte) (findings, error) {
	var f findings
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return f, err
	}
	outputs := outputLines(set, file)
	number := 0
	for line := range strings.Lines(string(source)) {
		number++
		if !outputs[number] && !marker.MatchString(line) {
			f.measure(line)
		}
	}
	if hasPrivateWord(strings.TrimSuffix(filepath.Base(path), ".go")) {
		f.BannedNames++
	}
	for _, name := range declared(file) {
		if hasPrivateWord(name) {
			f.BannedNames++
		}
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
		first := call.Args[0]
		for { // A message can be a sum of several literals.
			sum, ok := first.(*ast.BinaryExpr)
			if !ok {
				break
			}
			first = sum.X
		}
		literal, ok := first.(*ast.BasicLit)
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

// inspectMarkdown measures the lines of a document, except those of tables.
func inspectMarkdown(source []byte) (f findings) {
	for line := range strings.Lines(string(source)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "|") {
			f.measure(line)
		}
	}
	return f
}

// measure counts a line that is too long, unless the line is a single word, such as a URL.
func (f *findings) measure(line string) {
	columns := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
	if columns <= wantColumns || len(strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "//"))) < 2 {
		return
	}
	f.Over120++
	if columns > maxColumns {
		f.LongLines++
	}
}

// outputLines returns the lines of the outputs of examples.
func outputLines(set *token.FileSet, file *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range file.Comments {
		text := group.Text()
		if !strings.HasPrefix(text, "Output:") && !strings.HasPrefix(text, "Unordered output:") {
			continue
		}
		for line := set.Position(group.Pos()).Line; line <= set.Position(group.End()).Line; line++ {
			lines[line] = true
		}
	}
	return lines
}

// declared returns the identifiers that a file declares.
func declared(file *ast.File) (names []string) {
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && id != nil {
			names = append(names, id.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key)
				add(n.Value)
			}
		}
		return true
	})
	return names
}

var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// hasPrivateWord reports whether an identifier, or the name of a file, contains a private word.
func hasPrivateWord(name string) bool {
	if _, ok := exceptions[name]; ok {
		return false
	}
	for _, w := range word.FindAllString(name, -1) {
		if private[strings.ToLower(w)] {
			return true
		}
	}
	return false
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

// TestInspect_FindsEachKind checks that each kind of finding is found.
func TestInspect_FindsEachKind(t *testing.T) {
	f, err := inspect("a.go", []byte(`package a

// Nobody knows.
var x = fmt.Errorf("it is "+"not %d", 1)

func whomToAsk(patience int) { for _, told := range []int{} { sight := told } }

var overlong = "`+strings.Repeat("z", 110)+`"

// Output:
// `+strings.Repeat("o", 150)+`

// +kubebuilder:validation:XValidation:rule="`+strings.Repeat("x", 140)+`"
var y = errors.New("object y is `+strings.Repeat("y", 140)+`")
`))
	require.NoError(t, err)
	require.Equal(t, findings{BannedWords: 1, BannedNames: 4, LongLines: 1, Over120: 2, Pronouns: 1}, f)
	long := strings.Repeat("word ", 29)
	require.Equal(t, findings{LongLines: 1, Over120: 2},
		inspectMarkdown([]byte(long+"\n"+long[:125]+"\n| "+long+"|\n"+strings.Repeat("u", 150)+"\n")))
	for _, name := range []string{"whoAmI", "stranger", "AnswerHeld", "overthrown", "shelled"} {
		require.False(t, hasPrivateWord(name), name)
	}
	for _, name := range []string{"who", "HeldBack", "TestSettled", "TestX_ToldTwice", "outOfPatience", "trouble_test"} {
		require.True(t, hasPrivateWord(name), name)
	}
}
