// Package eventlist keeps docs/events.md in step with the Events that the code records. It is a test and nothing else.
//
// The survey begins with the calls of Eventf, and follows the functions that pass a reason on to it. The reason, the
// type, the object and the message are in the calls. Where a call computes one of them, a comment above the call states
// the value:
//
//	// +event:object=Addon
//	// +event:reason=the reason of the condition
//	// +event:type=Warning if the condition is False, else Normal
//	// +event:message=the message of the condition
package eventlist

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/events.md")

const (
	root     = "../.."
	document = root + "/docs/events.md"
)

var (
	name     = regexp.MustCompile(`\b[A-Z][a-z]+[A-Za-z]*\b`)
	list     = regexp.MustCompile(`^[A-Z][A-Za-z]*(, [A-Z][A-Za-z]*)*$`)
	typeText = regexp.MustCompile(`^(Normal|Warning)($| if .*(, else (Normal|Warning))$)`)
)

// TestEvents_Documented checks that docs/events.md lists every Event, and that each is described completely.
func TestEvents_Documented(t *testing.T) {
	s := newSurvey(t)
	found := s.run()
	require.Greater(t, len(found), 40, "the survey has missed Events")
	byObject := map[string][]event{}
	for _, e := range found {
		for field, value := range map[string]string{
			"object": e.object, "reason": e.reason, "type": e.kind, "message": e.message,
		} {
			if value == "" {
				t.Errorf("%s: the call computes the %s of the Event: state it in a comment // +event:%s=... above the call",
					e.position, field, field)
			}
		}
		if !typeText.MatchString(e.kind) {
			t.Errorf("%s: the type %q must be Normal, Warning, or such as \"Warning if ..., else Normal\"", e.position, e.kind)
		}
		if e.computed {
			for _, word := range name.FindAllString(e.reason, -1) {
				if !s.values[word] {
					t.Errorf("%s: the reason %q contains %s, which is no string and no type in the code", e.position, e.reason, word)
				}
			}
		}
		byObject[e.object] = append(byObject[e.object], e)
	}

	var text strings.Builder
	text.WriteString("# Events\n\n" + testkit.Paragraph("The Events that muster records. `kubectl describe` shows them; "+
		"`kubectl get events --field-selector reason=REASON` selects them. Programs may match the reason; messages change "+
		"between releases, and … stands for a value. An Event of type Warning needs attention; changes that a user "+
		"requested, such as an update or a removal, are of type Normal.") + "\n\n" + testkit.Paragraph("This list is "+
		"generated from the code: run `go test ./internal/eventlist -update` after a change.") + "\n")
	for _, object := range slices.Sorted(keys(byObject)) {
		fmt.Fprintf(&text, "\n## %s\n\n| reason | type | message | recorded by |\n|---|---|---|---|\n", object)
		events := byObject[object]
		slices.SortFunc(events, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.folder, b.folder), cmp.Compare(a.reason, b.reason), cmp.Compare(a.kind, b.kind),
				cmp.Compare(a.message, b.message))
		})
		for _, e := range slices.CompactFunc(events, event.same) {
			reason := e.reason
			if list.MatchString(reason) {
				reason = "`" + strings.ReplaceAll(reason, ", ", "`, `") + "`"
			}
			fmt.Fprintf(&text, "| %s | %s | %s | `%s` |\n", reason, e.kind, strings.ReplaceAll(e.message, "|", `\|`), e.folder)
		}
	}
	if t.Failed() {
		return
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(text.String()), 0o600))
	}
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, text.String(), string(content), "run go test ./internal/eventlist -update")
}

// TestSurvey_FollowsFunctions checks on a small package that the survey finds the Events of functions that call Eventf
// for others, and that a comment replaces the computed values of a call.
func TestSurvey_FollowsFunctions(t *testing.T) {
	s := &survey{t: t, constants: map[string]string{}, values: map[string]bool{}}
	s.parse("testdata/sample", "sample")
	var got []string
	for _, e := range s.run() {
		got = append(got, strings.Join([]string{e.object, e.reason, e.kind, e.message}, " | "))
	}
	require.ElementsMatch(t, []string{
		"Widget | Created | Normal | Widget … was created.",
		"Widget | Broken | Warning | It broke.",
		"Gadget | the reason of the condition | Warning if it failed, else Normal | the message of the condition",
		" |  |  | ", // The call computes all values, and no comment states them.
	}, got)
}

func keys(m map[string][]event) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// An event is one call that records an Event.
type event struct {
	object, reason, kind, message, folder, position string
	computed                                        bool // the reason is from a comment
}

func (e event) same(other event) bool {
	e.position, other.position = "", ""
	return e == other
}

// texts are the values that a function passes to Eventf: each is a text, or a parameter of the function.
type texts struct{ object, reason, kind, message source }

// source is a text, or the index of a parameter if isParam is true. Neither: the value is computed.
type source struct {
	text    string
	param   int
	isParam bool
}

// function is a function, a method or a function literal with a name.
type function struct {
	name   string
	params []param
	body   *ast.BlockStmt
	sink   *texts // nil: the function does not pass a reason on
}

type param struct {
	name string
	kind ast.Expr
}
