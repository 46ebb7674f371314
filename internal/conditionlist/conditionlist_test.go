// Package conditionlist keeps docs/conditions.md in step with the conditions and reasons in the API packages. It is a
// test and nothing else.
package conditionlist

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/conditions.md")

const (
	root     = "../.."
	document = root + "/docs/conditions.md"
)

// named matches the name of a constant that is a type of a condition, or a reason.
var named = regexp.MustCompile(`^(Condition|Reason)[A-Z]`)

// TestConditions_Documented checks that docs/conditions.md lists every condition and every reason, and that each of
// them has a comment.
func TestConditions_Documented(t *testing.T) {
	var text strings.Builder
	text.WriteString("# Conditions and reasons\n\nThe conditions that muster sets, and their reasons. Programs may " +
		"match both; messages " +
		"change between releases. This\nlist is generated from the comments in the API packages: run `go test " +
		"./internal/conditionlist " +
		"-update` after a change.\n")
	folders, err := filepath.Glob(root + "/*/v1alpha1")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(folders), 5, "the survey has missed API packages")
	for _, folder := range folders {
		blocks := survey(t, folder)
		require.NotEmpty(t, blocks, folder)
		fmt.Fprintf(&text, "\n## %s.muster.dev\n", filepath.Base(filepath.Dir(folder)))
		for _, b := range blocks {
			fmt.Fprintf(&text, "\n%s\n\n| %s | meaning |\n|---|---|\n", testkit.Paragraph(b.title), b.kind)
			for _, e := range b.entries {
				fmt.Fprintf(&text, "| `%s` | %s |\n", e.value, e.meaning)
			}
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(text.String()), 0o600))
	}
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, text.String(), string(content), "run go test ./internal/conditionlist -update")
}

var symptom = regexp.MustCompile("(?m)^\\| ([A-Za-z, ]+) \\| `([A-Za-z]+)` \\| `([A-Za-z]+)` \\| ")

// TestTroubleshooting_ReasonsExist checks that each condition and each reason in docs/troubleshooting.md exists.
func TestTroubleshooting_ReasonsExist(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/troubleshooting.md")
	require.NoError(t, err)
	defined := map[string]bool{}
	folders, err := filepath.Glob(root + "/*/v1alpha1")
	require.NoError(t, err)
	for _, folder := range folders {
		for _, b := range survey(t, folder) {
			for _, e := range b.entries {
				defined[b.kind+" "+e.value] = true
			}
		}
	}
	rows := symptom.FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, strings.Count(string(text), "\n| ")-strings.Count(string(text), "\n| object |"),
		"a row has another form")
	for _, row := range rows {
		if !defined["condition "+row[2]] {
			t.Errorf("%s: no API package defines condition %s", row[1], row[2])
		}
		if !defined["reason "+row[3]] {
			t.Errorf("%s: no API package defines reason %s", row[1], row[3])
		}
	}
}

// block is a declaration of constants: conditions or reasons.
type block struct {
	kind, title string
	entries     []entry
}

type entry struct{ value, meaning string }

// survey returns the conditions and reasons of an API package, in the order of its files.
func survey(t *testing.T, folder string) (blocks []block) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			constants, ok := declaration.(*ast.GenDecl)
			if ok && constants.Tok == token.CONST {
				if b := blockOf(t, constants); len(b.entries) > 0 {
					blocks = append(blocks, b)
				}
			}
		}
	}
	return blocks
}

func blockOf(t *testing.T, constants *ast.GenDecl) (b block) {
	t.Helper()
	title := plain(constants.Doc)
	for _, spec := range constants.Specs {
		constant := spec.(*ast.ValueSpec)
		name := constant.Names[0].Name
		prefix := named.FindStringSubmatch(name)
		if prefix == nil {
			continue
		}
		literal, ok := constant.Values[0].(*ast.BasicLit)
		require.True(t, ok, "%s is not a literal", name)
		value, err := strconv.Unquote(literal.Value)
		require.NoError(t, err, name)
		doc := plain(constant.Doc)
		if doc == "" && len(constants.Specs) == 1 {
			doc, title = title, "Condition:"
		}
		if !strings.HasPrefix(doc, name) {
			t.Errorf("the comment of %s must begin with its name", name)
			continue
		}
		b.kind = strings.ToLower(prefix[1])
		b.entries = append(b.entries, entry{value, meaning(doc, name, prefix[1])})
	}
	b.title = title
	return b
}

// meaning returns the comment of a constant as a sentence without the prefix of its name.
func meaning(doc, name, prefix string) string {
	short := "`" + strings.TrimPrefix(name, prefix) + "`"
	for _, joint := range []string{": ", " means that ", " is ", " "} {
		rest, found := strings.CutPrefix(doc, name+joint)
		if !found {
			continue
		}
		rest = strings.ReplaceAll(rest, name, short)
		if strings.HasPrefix(rest, "of ") {
			return short + " " + rest
		}
		if word, _, _ := strings.Cut(rest, " "); strings.ContainsAny(word, ".") {
			return rest // a field, such as spec.accepted
		}
		first := []rune(rest)
		return string(unicode.ToUpper(first[0])) + string(first[1:])
	}
	return doc
}

// plain returns the text of a comment on one line, without links.
func plain(comment *ast.CommentGroup) string {
	text := strings.Join(strings.Fields(comment.Text()), " ")
	return strings.NewReplacer("[", "", "]", "", "|", `\|`).Replace(text)
}
