package importrules

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// memberPath is the reason why a function may write objects that reach a member.
type memberPath struct {
	// by is the function that every call of the writer comes from, and that reaches a guard. Empty: see because.
	by string
	// field is set if the writer runs in another goroutine than by. The writer writes the content of this field,
	// and only functions that by calls assign the field.
	field string
	// because is the reason why no permission is needed. Empty: see by.
	because string
}

const (
	ofMemberAddon = "it writes for a MemberAddon, which the controller of Addons has created with permission"
	takesBack     = "it prepares or ends a deletion"
	ofHub         = "it writes ClusterSets, ClusterSetBindings, Namespaces, JoinTokens and RBAC objects of the hub"
	ofLeave       = "it is part of the leave of a member"
)

// memberPaths are all functions of the hub that create or change a Work, a MemberAddon or a PlacementDecision, or that
// give a live cluster to a controller. Status writes are not listed.
var memberPaths = map[string]memberPath{
	"placement.(*decisionController).writeSlice": {by: "placement.(*decisionController).decide"},

	"placement/workset.(*controller).create":    {by: "placement/workset.(*controller).reconcile", field: "wants"},
	"placement/workset.(*controller).patch":     {by: "placement/workset.(*controller).reconcile", field: "wants"},
	"placement/workset.(*controller).label":     {because: "it restores the labels of an existing Work"},
	"placement/workset.(*controller).request":   {because: takesBack},
	"placement/workset.(*reconciliation).guard": {because: "it puts the finalizer on an existing WorkSet"},
	"placement/workset.(*reconciliation).end":   {because: takesBack},

	"addon.(*addonReconciliation).execute":             {by: "addon.(addons).reconcile"},
	"addon.(*memberReconciliation).execute":            {because: takesBack},
	"addon.(*memberReconciliation).addFinalizer":       {because: "it adds the finalizer to an existing MemberAddon"},
	"addon.(*memberReconciliation).keepWorks":          {because: takesBack},
	"addon.(*memberReconciliation).releaseWork":        {because: takesBack},
	"addon.(*memberReconciliation).runHooks":           {because: ofMemberAddon},
	"addon.(*memberReconciliation).updateCredentialIn": {because: ofMemberAddon},
	"addon.(*shared).request":                          {because: takesBack},
	"addon.(*shared).applyStep":                        {because: ofMemberAddon},

	"addon/leave.(gate).orphan":         {because: ofLeave},
	"addon/leave.(gate).Release":        {because: ofLeave},
	"addon/leave.(gate).force":          {because: ofLeave},
	"work/leave.(gate).orphan":          {because: ofLeave},
	"work/leave.(gate).removeFinalizer": {because: ofLeave},
	"work/leave.(gate).release":         {because: ofLeave},

	"addon/internal/registration.(*Registrar).create": {because: ofHub},
	"addon/internal/registration.(*Registrar).update": {because: ofHub},
	"membership/admin.(*cluster).create":              {because: "administrators call it with their own permissions"},
	"membership/hub.(*shared).ensureObject":           {because: ofHub},
	"membership/hub.(*identityTokens).keepOne":        {because: ofHub},
	"tenancy.finalize":                                {because: ofHub},

	"membership/fleet.(*Provider[Name, Aware]).Start": {
		by: "membership/fleet.(*Provider[Name, Aware]).Start", field: "live",
	},
}

// guards are the functions that decide whether a namespace may place on a cluster.
var guards = []string{
	"(*github.com/muster-sdk/muster/tenancy.Rules).Decide",
	"(*github.com/muster-sdk/muster/tenancy.Rules).MayPlace",
	"(github.com/muster-sdk/muster/membership/fleet.Tenancy).MayPlace",
}

// hubPackages are the packages of the hub that write objects.
var hubPackages = []string{
	"addon", "addon/internal/registration", "addon/leave", "assembly", "membership/admin", "membership/clusterapi",
	"membership/fleet", "membership/hub", "membership/install", "membership/push", "placement", "placement/clusterprofile",
	"placement/workset", "tenancy", "work/leave", "work/unassigned",
}

// TestEveryPathToAMemberIsGuarded checks with the types of the code that memberPaths lists each function that writes
// objects that reach a member, and that each of them is called only through a function that decides whether the
// namespace may place on the member.
func TestEveryPathToAMemberIsGuarded(t *testing.T) {
	found := map[string]bool{}
	for path, p := range typeChecked(t, hubPackages) {
		g := graphOf(strings.TrimPrefix(path, module+"/"), p)
		for writer, object := range g.writers {
			found[writer] = true
			rule, listed := memberPaths[writer]
			switch {
			case !listed:
				t.Errorf("%s writes %s: list it in memberPaths", writer, object)
			case rule.because != "":
			default:
				if !g.reaches(rule.by, func(f string) bool { return g.guarded[f] }) {
					t.Errorf("%s: %s calls no guard", writer, rule.by)
				}
				if rule.field != "" {
					for f := range g.assigns[rule.field] {
						if root := g.bypass(f, rule.by); root != "" {
							t.Errorf("%s assigns %s and is also called by %s", f, rule.field, root)
						}
					}
					if len(g.assigns[rule.field]) == 0 {
						t.Errorf("%s: no function assigns the field %s", writer, rule.field)
					}
					continue
				}
				if !g.reaches(rule.by, func(f string) bool { return f == writer }) {
					t.Errorf("%s is not called by %s", writer, rule.by)
				}
				if root := g.bypass(writer, rule.by); root != "" {
					t.Errorf("%s is also called by %s, which %s does not precede", writer, root, rule.by)
				}
			}
		}
	}
	for writer := range memberPaths {
		if !found[writer] {
			t.Errorf("%s does not write: remove it from memberPaths", writer)
		}
	}
}

// graph is the references between the functions of a package.
type graph struct {
	calls   map[string]map[string]bool // by function: the functions that its body refers to
	callers map[string]map[string]bool
	writers map[string]string          // by function: the kind of objects that it writes
	guarded map[string]bool            // the functions that call a guard
	assigns map[string]map[string]bool // by field: the functions that assign it
}

// reaches reports whether a function refers, directly or through others, to a function that matches.
func (g *graph) reaches(from string, matches func(string) bool) bool {
	seen, next := map[string]bool{from: true}, []string{from}
	for len(next) > 0 {
		f := next[0]
		next = next[1:]
		if matches(f) {
			return true
		}
		for callee := range g.calls[f] {
			if !seen[callee] {
				seen[callee] = true
				next = append(next, callee)
			}
		}
	}
	return false
}

// bypass returns a function without callers from which a writer is reached without another function. Empty: no
// such function.
func (g *graph) bypass(writer, by string) string {
	seen, next := map[string]bool{writer: true}, []string{writer}
	for len(next) > 0 {
		f := next[0]
		next = next[1:]
		if f == by {
			continue
		}
		if len(g.callers[f]) == 0 {
			return f
		}
		for caller := range g.callers[f] {
			if !seen[caller] {
				seen[caller] = true
				next = append(next, caller)
			}
		}
	}
	return ""
}

// written returns the name of a type if a write of its objects reaches a member. An interface may contain any type.
func written(t types.Type) string {
	if types.IsInterface(t) {
		return "an object of any kind"
	}
	if pointer, is := types.Unalias(t).(*types.Pointer); is {
		t = pointer.Elem()
	}
	named, is := types.Unalias(t).(*types.Named)
	if !is || named.Obj().Pkg() == nil {
		return ""
	}
	name := strings.TrimPrefix(named.Obj().Pkg().Path(), module+"/") + "." + named.Obj().Name()
	if slices.Contains([]string{
		"work/v1alpha1.Work", "addon/v1alpha1.MemberAddon", "placement/v1alpha1.PlacementDecision",
		"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured",
	}, name) {
		return name
	}
	return ""
}

// graphOf reads the functions of a package. Literals belong to the function that contains them.
func graphOf(path string, p *checked) *graph {
	g := &graph{calls: map[string]map[string]bool{}, callers: map[string]map[string]bool{}, writers: map[string]string{},
		guarded: map[string]bool{}, assigns: map[string]map[string]bool{}}
	name := func(f *types.Func) string {
		return strings.ReplaceAll(f.Origin().FullName(), module+"/"+path+".", path+".")
	}
	for _, file := range p.files {
		for _, declaration := range file.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if !is || function.Body == nil {
				continue
			}
			from := normal(name(p.info.Defs[function.Name].(*types.Func)), path)
			ast.Inspect(function.Body, func(node ast.Node) bool {
				switch n := node.(type) {
				case *ast.Ident:
					if f, is := p.info.Uses[n].(*types.Func); is {
						if slices.Contains(guards, f.FullName()) {
							g.guarded[from] = true
						}
						if f.Pkg() == p.pkg {
							g.add(from, normal(name(f), path))
						}
					}
				case *ast.AssignStmt:
					for i, left := range n.Lhs {
						if field, is := left.(*ast.SelectorExpr); is && !empty(n.Rhs[min(i, len(n.Rhs)-1)]) {
							if g.assigns[field.Sel.Name] == nil {
								g.assigns[field.Sel.Name] = map[string]bool{}
							}
							g.assigns[field.Sel.Name][from] = true
						}
					}
				case *ast.CallExpr:
					if object := writes(p, n); object != "" {
						g.writers[from] = object
					}
				}
				return true
			})
		}
	}
	return g
}

// empty reports whether an expression is a composite literal without elements.
func empty(e ast.Expr) bool {
	literal, is := e.(*ast.CompositeLit)
	return is && len(literal.Elts) == 0
}

// normal turns (*path.T).f into path.(*T).f.
func normal(name, path string) string {
	for _, pointer := range []string{"*", ""} {
		if rest, is := strings.CutPrefix(name, "("+pointer+path+"."); is {
			return path + ".(" + pointer + rest
		}
	}
	return name
}

func (g *graph) add(from, to string) {
	if g.calls[from] == nil {
		g.calls[from] = map[string]bool{}
	}
	if g.callers[to] == nil {
		g.callers[to] = map[string]bool{}
	}
	g.calls[from][to], g.callers[to][from] = true, from != to
	if from == to {
		delete(g.callers[to], from)
	}
}

// writes returns the kind of objects that a call writes. Empty: no object that reaches a member.
func writes(p *checked, call *ast.CallExpr) string {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	f, is := p.info.Uses[selector.Sel].(*types.Func)
	if !is || f.Pkg() == nil {
		return ""
	}
	if f.Name() == "Engage" {
		return "a live cluster"
	}
	if f.Pkg().Path() == module+"/internal/workwriter" && f.Name() != "Delete" {
		return "work/v1alpha1.Work"
	}
	writer := f.Pkg().Path() == "sigs.k8s.io/controller-runtime/pkg/client" && strings.HasPrefix(f.FullName(),
		"(sigs.k8s.io/controller-runtime/pkg/client.Writer)")
	if !writer || !slices.Contains([]string{"Create", "Update", "Patch"}, f.Name()) || len(call.Args) < 2 {
		return ""
	}
	return written(p.info.TypeOf(call.Args[1]))
}

// checked is a package with the types of its code.
type checked struct {
	pkg   *types.Package
	info  *types.Info
	files []*ast.File
}

// typeChecked returns packages by import path, without their tests. The types of dependencies are from their export
// data.
func typeChecked(t *testing.T, names []string) map[string]*checked {
	t.Helper()
	arguments := []string{"list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles"}
	for _, name := range names {
		arguments = append(arguments, module+"/"+name)
	}
	command := exec.Command("go", arguments...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoError(t, err)
	type listed struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
	}
	all := map[string]listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var one listed
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all[one.ImportPath] = one
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if all[path].Export == "" {
			return nil, fmt.Errorf("%s has no export data", path)
		}
		return os.Open(all[path].Export)
	})
	result := map[string]*checked{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(names, strings.TrimPrefix(name, module+"/")) {
			continue
		}
		c := &checked{info: &types.Info{
			Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		}}
		for _, file := range all[name].GoFiles {
			parsed, err := parser.ParseFile(fset, filepath.Join(all[name].Dir, file), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			c.files = append(c.files, parsed)
		}
		c.pkg, err = (&types.Config{Importer: imports}).Check(name, fset, c.files, c.info)
		require.NoError(t, err)
		result[name] = c
	}
	require.Len(t, result, len(names))
	return result
}
