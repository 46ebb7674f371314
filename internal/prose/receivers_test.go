package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxFields is the maximum number of fields of a type with methods. Related fields form a separate type. An
// embedded type is one field. Excepted are the types of the API, and options, which are data of users.
const maxFields = 12

// receivers are the types of one folder.
type receivers struct {
	fields  map[string]int
	methods map[string]bool
}

// add records the types and methods of a file.
func (r *receivers) add(file *ast.File) {
	if r.fields == nil {
		r.fields, r.methods = map[string]int{}, map[string]bool{}
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				r.methods[receiverName(d.Recv.List[0].Type)] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				named, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if structure, ok := named.Type.(*ast.StructType); ok {
					for _, field := range structure.Fields.List {
						r.fields[named.Name.Name] += max(1, len(field.Names))
					}
				}
			}
		}
	}
}

// excess returns the number of fields of types with methods beyond maxFields, and the names of these types.
func (r *receivers) excess() (fields int, types []string) {
	for name, n := range r.fields {
		if n > maxFields && r.methods[name] && !strings.HasSuffix(name, "Options") {
			fields += n - maxFields
			types = append(types, name)
		}
	}
	slices.Sort(types)
	return fields, types
}

func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	default:
		return ""
	}
}

// hasReceivers reports whether the types of a file are measured.
func hasReceivers(path string) bool {
	return !strings.HasSuffix(path, "_test.go") && !strings.Contains(filepath.ToSlash(path), "/v1alpha1/")
}

func TestReceivers_Excess(t *testing.T) {
	fields := "a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 int"
	var r receivers
	for _, source := range []string{
		"package a\ntype wide struct { sync.Mutex; " + fields + "; b0, b1, b2 int }\ntype data struct { " + fields +
			"; b0, b1, b2 int }",
		"package a\nfunc (w *wide) run() {}\nfunc (*generic[T]) run() {}\nfunc (o WideOptions) run() {}\nfunc (narrow) " +
			"run() {}",
		"package a\ntype generic[T any] struct { " + fields + "; b0, b1, b2 T }\ntype WideOptions struct { " + fields +
			"; b0, b1, b2 int }\ntype narrow struct { " + fields + "; b0, b1 int }",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", source, 0)
		require.NoError(t, err)
		r.add(file)
	}
	n, types := r.excess()
	require.Equal(t, []string{"generic", "wide"}, types)
	require.Equal(t, 3, n, "generic has 13 fields and wide has 14")
	require.True(t, hasReceivers("work/agent/agent.go"))
	require.False(t, hasReceivers("work/agent/agent_test.go"))
	require.False(t, hasReceivers("work/v1alpha1/work_types.go"))
}
