package precondition_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/precondition"
)

func TestUnchanged_CopiesPreconditions(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "5"}}
	unchanged := precondition.Unchanged(object)
	object.UID, object.ResourceVersion = "later", "6"
	require.Equal(t, "u", string(*unchanged.UID), "Unchanged copies the UID and the resourceVersion of the object")
	require.Equal(t, "5", *unchanged.ResourceVersion)
}

func TestPatch_HasPreconditions(t *testing.T) {
	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "x", UID: "u", ResourceVersion: "5", Finalizers: []string{"example.com/a"},
	}}
	for _, test := range []struct {
		reason string
		change func(*corev1.ConfigMap)
		want   string
	}{
		{
			"a finalizer is removed", func(c *corev1.ConfigMap) { c.Finalizers = nil },
			`{"metadata":{"uid":"u","resourceVersion":"5","finalizers":null}}`,
		},
		{
			"the data changes", func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "b"} },
			`{"metadata":{"uid":"u","resourceVersion":"5"},"data":{"a":"b"}}`,
		},
	} {
		after := before.DeepCopy()
		test.change(after)
		data, err := precondition.Patch(before).Data(after)
		require.NoError(t, err, test.reason)
		require.True(t, json.Valid(data), test.reason)
		require.JSONEq(t, test.want, string(data), test.reason)
	}
}

// exemptions are the functions that delete without the resourceVersion of the object, or that remove a finalizer
// without [precondition.Patch], by package, receiver and name. The value is the reason why that is safe.
var exemptions = map[string]string{
	"addon addons.addFinalizer":                 "adds the finalizer",
	"addon memberReconciliation.addFinalizer":   "adds the finalizer",
	"addon/leave forceStep":                     "its caller patches with the preconditions",
	"examples/musterctl hubClient.Delete":       "passes on the options of its caller",
	"examples/musterctl remove":                 "a user requests the deletion by the command",
	"examples/musterctl app.tokenDeleteCommand": "a user names the JoinToken",
	"membership/admin cluster.delete":           "remove and removeRequested have the preconditions",
	"membership/hub members.carryOut":           "members.patch has the preconditions",
	"placement/workset reconciliation.prune":    "revision.Store has the preconditions",
	"addon shared.deleteWork":                   byWorkWriter,
	"placement/workset reconciliation.withdraw": byWorkWriter,
	"placement/workset controller.remove":       byWorkWriter,
	"work/agent Agent.removeFinalizer":          "patchMetadata has the preconditions",
	"work/apply dropFinalizers":                 "changes a manifest",
	"membership/push member.withdraw":           "the name has the UID of the member",

	"membership/registration/jointoken bootstrapTokens.issue":                 bySecretStore,
	"membership/registration/jointoken bootstrapTokens.remove":                bySecretStore,
	"membership/registration/jointoken/internal/bootstrapsecret Store.Forget": bySecretStore,
}

const byWorkWriter = "workwriter.Writer.Delete has the preconditions"

const bySecretStore = "bootstrapsecret.Store.Delete has the preconditions"

// inspected reports whether a folder can contain programs that manage clusters. Excepted are tests, programs that
// demonstrate actions of users, and control planes for tests.
func inspected(folder string) bool {
	return !slices.Contains([]string{
		"mustertest", "internal/controlplane", "internal/testkit", "internal/e2e",
		"membership/registration/internal/regtest",
		"examples/addon", "examples/minimal-hub", "testdata", ".git",
	}, folder)
}

// TestRequests_HavePreconditions reads the programs of all modules. It requires that each request that deletes an
// object has the UID and the resourceVersion of the decision as preconditions, that no request deletes a collection,
// and that each function that removes a finalizer patches with [precondition.Patch].
func TestRequests_HavePreconditions(t *testing.T) {
	const root = "../.."
	deletions, finalizers, unused := 0, 0, map[string]bool{}
	for function := range exemptions {
		unused[function] = true
	}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && !inspected(path):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			name, found := filepath.Dir(path)+" "+nameOf(function), requestsOf(function.Body)
			deletions, finalizers = deletions+found.deletions, finalizers+found.finalizers
			switch exemption := exemptions[name]; {
			case found.collections > 0:
				t.Errorf("%s deletes a collection of objects", name)
			case found.deletions > found.unchanged:
				if delete(unused, name); exemption == "" {
					t.Errorf("%s deletes an object without the UID and the resourceVersion as preconditions", name)
				}
			case found.finalizers > 0 && !found.patch:
				if delete(unused, name); exemption == "" {
					t.Errorf("%s removes a finalizer without the UID and the resourceVersion as preconditions", name)
				}
			}
		}
		return nil
	}))
	require.Greater(t, deletions, 30, "deletions are found")
	require.Greater(t, finalizers, 10, "removals of finalizers are found")
	require.Empty(t, unused, "functions that need no exemption")
}

// nameOf returns the name of a function, with the type of its receiver.
func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	return fmt.Sprintf("%s.%s", receiver, function.Name)
}

// requests counts the requests of a function to an API server that are visible in its syntax.
type requests struct {
	deletions, collections, finalizers int
	unchanged                          int  // preconditions for deletions
	patch                              bool // the function patches with preconditions
}

func requestsOf(body *ast.BlockStmt) (r requests) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			if of, ok := node.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Preconditions" {
				if has(node, "UID") && has(node, "ResourceVersion") {
					r.unchanged++
				}
			}
		case *ast.CallExpr:
			called, ok := node.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, _ := called.X.(*ast.Ident)
			switch name := called.Sel.Name; {
			case name == "Delete" && from != nil && from.Name == "ssa": // its body has the preconditions
				r.deletions, r.unchanged = r.deletions+1, r.unchanged+1
			case name == "Unchanged" && from != nil && from.Name == "precondition":
				r.unchanged++
			case name == "Patch" && from != nil && from.Name == "precondition":
				r.patch = true
			case name == "RemoveFinalizer", name == "SetFinalizers":
				r.finalizers++
			case name == "DeleteAllOf", name == "DeleteCollection":
				r.collections++
			case name == "Delete" || strings.HasPrefix(name, "Evict"):
				if len(node.Args) > 1 && isContext(node.Args[0]) {
					r.deletions++
				}
			}
		case *ast.AssignStmt:
			if to, ok := node.Lhs[0].(*ast.SelectorExpr); ok && to.Sel.Name == "Finalizers" {
				if value, ok := node.Rhs[0].(*ast.Ident); ok && value.Name == "nil" {
					r.finalizers++
				}
			}
		}
		return true
	})
	return r
}

// has reports whether a composite literal sets a field.
func has(literal *ast.CompositeLit, field string) bool {
	return slices.ContainsFunc(literal.Elts, func(element ast.Expr) bool {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := pair.Key.(*ast.Ident)
		return ok && key.Name == field
	})
}

// isContext reports whether an expression is a context, by its name.
func isContext(expression ast.Expr) bool {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name == "ctx"
	case *ast.CallExpr:
		called, ok := e.Fun.(*ast.SelectorExpr)
		return ok && (called.Sel.Name == "Context" || called.Sel.Name == "Background")
	default:
		return false
	}
}
