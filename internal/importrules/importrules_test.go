// Package importrules holds the rules that let every package of muster be taken alone: which of our
// packages, and which of other modules', one may pull in. It is a test and nothing else.
package importrules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/muster-sdk/muster"

// rules is read from the top: the first row whose packages match is the one that counts. In a pattern
// "*" is one path element and a final "/..." is any number of them, or none.
//
// All rules are about what a package links, its dependencies' dependencies included, since that is what
// a user gets. Tests may import what they like.
var rules = []rule{
	{
		packages: "placement/v1alpha1", // a WorkSet has manifests and options of Works
		ours:     []string{"work/v1alpha1"},
		direct:   []string{"k8s.io/api/...", "k8s.io/apimachinery/..."},
	},
	{
		packages: "addon/v1alpha1", // an add-on rolls out as a WorkSet does, and consists of what a Work consists of
		ours:     []string{"placement/v1alpha1", "work/v1alpha1"},
		direct:   []string{"k8s.io/api/...", "k8s.io/apimachinery/..."},
	},
	{
		packages: "*/v1alpha1",
		ours:     none,
		direct:   []string{"k8s.io/api/...", "k8s.io/apimachinery/..."},
	},
	{
		packages: "*/crds",
		ours:     []string{"internal/crdinstall", "internal/precondition"},
	},
	{
		packages: "membership/...",
		ours:     []string{"membership/...", "internal/..."},
	},
	{
		packages: "scheduler/...",
		ours:     []string{"scheduler/...", "placement/v1alpha1", "work/v1alpha1"},
		never:    []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."},
	},
	{
		packages: "work/leave", // all that work has to do with membership
		ours:     []string{"work/v1alpha1", "membership", "membership/v1alpha1", "internal/precondition"},
	},
	{
		packages: "work/unassigned", // it tells the namespaces of members from others
		ours: []string{"internal/readycondition", "internal/tracing", "work/v1alpha1", "membership",
			"membership/v1alpha1"},
	},
	{
		packages: "work/companion", // the agent of Works beside the agent of membership
		ours:     []string{"work/...", "membership/...", "internal/..."},
	},
	{
		packages: "work/...",
		ours:     []string{"work/...", "internal/..."},
	},
	{
		packages: "placement/...",
		ours: []string{
			"placement/...", "scheduler/...", "tenancy", "tenancy/v1alpha1", "membership/v1alpha1", "work/v1alpha1",
			"internal/...",
		},
	},
	{
		packages: "tenancy/memberpolicy", // it is an ObjectPolicy of work/agent without its import
		ours:     []string{"*/v1alpha1", "internal/definition"},
	},
	{
		packages: "tenancy", // bindings have Placements as users, and sets have MemberClusters
		ours:     []string{"*/v1alpha1", "internal/..."},
	},
	{
		packages: "addon", // it gives agents what they get by registration
		ours: []string{
			"addon/...", "membership", "membership/registration", "membership/registration/csr", "placement/rollout",
			"placement/bundle", "tenancy", "*/v1alpha1", "internal/...",
		},
	},
	{
		packages: "addon/internal/registration", // agents of add-ons get certificates as those of members do
		ours: []string{"addon/...", "membership", "membership/registration", "membership/registration/csr",
			"placement/rollout", "*/v1alpha1", "internal/..."},
	},
	{
		packages: "addon/leave", // all that add-ons have to do with membership but its types
		ours: []string{
			"addon/internal/messages", "*/v1alpha1", "membership", "internal/bounded", "internal/precondition",
		},
	},
	{
		packages: "addon/...",
		ours:     []string{"addon/...", "placement/rollout", "placement/bundle", "*/v1alpha1", "internal/..."},
	},
	{
		packages: "deploy", // what is installed on a member is of all that runs there
		ours: []string{
			"membership/...", "internal/bounded", "internal/crdinstall", "internal/definition", "internal/memberleave",
			"internal/precondition", "internal/requeue", "internal/requiredkinds", "internal/storeversion", "internal/tracing",
		},
	},
	{
		packages: "assembly", // a complete hub and a complete agent consist of all packages
		ours: []string{
			"addon/...", "membership/...", "placement/...", "scheduler/...", "tenancy/...", "work/...", "*/v1alpha1",
			"internal/...",
		},
	},
	{packages: "mustertest/fleet", ours: anything}, // a complete hub and complete agents
	{packages: "mustertest/...", ours: []string{"mustertest/...", "*/v1alpha1", "internal/..."}},
	{packages: "examples/...", ours: anything},
	{packages: "internal/...", ours: anything},
	{packages: ".", ours: none}, // doc.go: a tour to read
}

// Heavy things stay in the nested modules, so that users of muster do not download them.
var neverAnywhere = []string{
	"github.com/fluxcd/pkg/...",
	"go.etcd.io/etcd/server/...",
	"k8s.io/kubernetes/...",
	"sigs.k8s.io/controller-tools/...",
	"sigs.k8s.io/kind/...",
	"sigs.k8s.io/kwok/...",
}

// The test kit is for tests, examples and internal test harnesses. Production packages must not depend on it.
var (
	testKit      = []string{"mustertest/..."}
	testKitUsers = []string{"examples/...", "internal/...", "mustertest/..."}
)

type rule struct {
	packages string   // who
	ours     []string // which of our packages it may depend on
	direct   []string // if set, the only packages of other modules that it may import itself
	never    []string // packages of other modules that it must not depend on
}

var (
	none     = []string{}
	anything = []string{"..."}
)

// check returns what is wrong with the package, a line for each dependency that it may not have.
func check(p pkg) []string {
	var wrong []string
	complain := func(dep, why string) {
		wrong = append(wrong, fmt.Sprintf("%s must not depend on %s: %s", p.name(), dep, why))
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return match(r.packages, p.name()) })
	if i < 0 {
		return []string{p.name() + " has no rule yet: give it a row"}
	}
	row := rules[i]
	for _, dep := range p.Deps {
		switch name, ours := within(dep); {
		case !ours && matchAny(slices.Concat(row.never, neverAnywhere), dep):
			complain(dep, "it is to stay without that")
		case ours && !matchAny(row.ours, name):
			complain(name, "not in its row of the rules")
		case ours && matchAny(testKit, name) && !matchAny(testKitUsers, p.name()):
			complain(name, "that is for tests and examples")
		}
	}
	for _, imported := range p.Imports {
		std := !strings.Contains(strings.Split(imported, "/")[0], ".")
		if _, ours := within(imported); row.direct != nil && !ours && !std && !matchAny(row.direct, imported) {
			complain(imported, "it takes only "+strings.Join(row.direct, " and "))
		}
	}
	return wrong
}

func TestImports(t *testing.T) {
	root, nested := modules(t)
	packages := list(t, root)
	require.NotEmpty(t, packages)
	for _, p := range packages {
		for _, w := range check(p) {
			t.Error(w)
		}
		for _, dep := range p.Deps {
			if name, ours := within(dep); ours && matchAny(nested, name) {
				t.Errorf("%s must not depend on %s: that is a nested module", p.name(), name)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		name    string
		imports []string
		want    string
	}{
		{"an API type is data", "membership/v1alpha1", []string{"embed", "k8s.io/apimachinery/pkg/runtime",
			"k8s.io/api/core/v1"}, ""},
		{"an API must not drag in a client", "work/v1alpha1", []string{"sigs.k8s.io/controller-runtime/pkg/scheme"},
			"pkg/scheme"},
		{"an API must not lean on another", "work/v1alpha1", []string{module + "/placement/v1alpha1"}, "placement/v1alpha1"},
		{"a policy is data", "placement/v1alpha1", []string{"k8s.io/apimachinery/pkg/util/validation/field"}, ""},
		{"a WorkSet is made of what a Work is made of", "placement/v1alpha1", []string{module + "/work/v1alpha1"}, ""},
		{"a policy does not know who reads it", "placement/v1alpha1", []string{module + "/scheduler"}, "scheduler"},
		{"definitions are files and their installer", "placement/crds",
			[]string{"embed", module + "/internal/crdinstall"}, ""},
		{"definitions are installed without the controllers", "placement/crds", []string{module + "/placement"}, "placement"},
		{"the sides of a join share words", "membership/hub",
			[]string{module + "/membership", module + "/internal/clock"}, ""},
		{"work stands without membership", "work/agent", []string{module + "/membership/v1alpha1"}, "membership/v1alpha1"},
		{"a leave waits for works", "work/leave", []string{module + "/membership"}, ""},
		{"who knows the works of a leave need not apply any", "work/leave", []string{module + "/work/apply"}, "work/apply"},
		{"a plugin is as pure as the scheduler", "scheduler/plugins/balance", []string{"k8s.io/client-go/tools/cache"},
			"client-go"},
		{"the scheduler reads policies", "scheduler", []string{module + "/placement/v1alpha1"}, ""},
		{"the scheduler knows no controller", "scheduler", []string{module + "/placement"}, "placement"},
		{"selectors mean the same wherever a WorkSet has them", "placement/internal/division",
			[]string{module + "/placement/internal/selector", module + "/scheduler/replicas"}, ""},
		{"placement speaks in types, not controllers", "placement", []string{module + "/work/apply"}, "work/apply"},
		{"an add-on is told of by types", "addon/v1alpha1", []string{module + "/membership/v1alpha1"}, "membership/v1alpha1"},
		{"the agents of add-ons get what members get", "addon/internal/registration",
			[]string{module + "/membership/registration/csr"}, ""},
		{"who issues to the agents of add-ons is no hub", "addon/internal/registration", []string{module + "/membership/hub"},
			"membership/hub"},
		{"an add-on may roll out as placements do", "addon", []string{module + "/placement/rollout"}, ""},
		{"a leave waits for add-ons", "addon/leave",
			[]string{module + "/membership", module + "/addon/internal/messages"}, ""},
		{"who waits for add-ons need not run any", "addon/leave", []string{module + "/addon"}, "addon"},
		{"products must not link control planes", "membership/agent", []string{module + "/mustertest/localplane"},
			"localplane"},
		{"products must not link the test kit", "work/apply", []string{module + "/mustertest"}, "mustertest"},
		{"an internal harness may use the test kit", "internal/testkit", []string{module + "/mustertest"}, ""},
		{"examples show it all on planes", "examples/minimal-hub", []string{module + "/mustertest/localplane"}, ""},
		{"Kubernetes itself is for nested modules", "mustertest/localplane", []string{"k8s.io/kubernetes/cmd/kubelet"},
			"kubelet"},
		{"the tour links nothing", "", []string{module + "/membership"}, "membership"},
		{"a new folder is thought about", "gadget", nil, "no rule"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := pkg{ImportPath: path.Join(module, tc.name), Imports: tc.imports, Deps: tc.imports}
			got := strings.Join(check(p), "\n")
			if tc.want == "" {
				require.Empty(t, got)
			} else {
				require.Contains(t, got, tc.want)
			}
		})
	}
}

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Imports    []string // its own
	Deps       []string // all that it links
}

// name is the package's path within the module, "." for the root.
func (p pkg) name() string {
	name, _ := within(p.ImportPath)
	return name
}

// within returns an import path's place in our module, if it is there.
func within(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func match(pattern, name string) bool {
	prefix, subtree := strings.CutSuffix(pattern, "...")
	if !subtree {
		ok, _ := path.Match(pattern, name)
		return ok
	}
	return strings.HasPrefix(name+"/", prefix)
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, name) })
}

// modules returns the module's folder and, as patterns, the modules nested in it. It looks at every
// folder on the way, by which `go test` knows that a cached result is out of date: it cannot see what
// `go list` reads.
func modules(t *testing.T) (root string, nested []string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Name() == "go.mod" && filepath.Dir(file) != root:
			dir, err := filepath.Rel(root, filepath.Dir(file))
			nested = append(nested, filepath.ToSlash(dir)+"/...")
			return err
		}
		return nil
	})
	require.NoError(t, err)
	return root, nested
}

func list(t *testing.T, dir string) (packages []pkg) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		require.NoError(t, dec.Decode(&p))
		packages = append(packages, p)
	}
	return packages
}
