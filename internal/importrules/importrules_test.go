// Package importrules contains the rules for the dependencies of each package of muster, so that every package can be
// used alone: which packages of this module and of other modules it may depend on. It is a test and nothing else.
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

// rules are the rules for packages. The first rule whose pattern matches a package applies. In a pattern, "*" is one
// path element, and a final "/..." is any number of path elements, or none.
//
// A rule applies to all packages that a package links, including indirect dependencies. Tests may import any package.
var rules = []rule{
	{
		packages: "placement/v1alpha1", // A WorkSet has manifests and options of Works.
		ours:     []string{"work/v1alpha1"},
		direct:   []string{"k8s.io/api/...", "k8s.io/apimachinery/..."},
	},
	{
		packages: "addon/v1alpha1", // An Addon has the rollout of a WorkSet and the manifests of a Work.
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
		ours:     []string{"internal/crdinstall", "internal/precondition", "internal/ssa"},
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
		packages: "work/leave", // The gate of Works for the leave of a member.
		ours:     []string{"work/v1alpha1", "membership", "membership/v1alpha1", "internal/precondition"},
	},
	{
		packages: "work/unassigned", // It identifies the namespaces of members.
		ours: []string{"internal/readycondition", "internal/tracing", "work/v1alpha1", "membership",
			"membership/v1alpha1"},
	},
	{
		packages: "work/companion", // The agent of Works that runs with the agent of the membership.
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
		packages: "tenancy/memberpolicy", // It implements ObjectPolicy of work/agent without importing that package.
		ours:     []string{"*/v1alpha1", "internal/definition"},
	},
	{
		packages: "tenancy", // Placements use bindings, and sets contain MemberClusters.
		ours:     []string{"*/v1alpha1", "internal/..."},
	},
	{
		packages: "addon", // It issues credentials to the agents of add-ons.
		ours: []string{
			"addon/...", "membership", "membership/registration", "membership/registration/csr", "placement/rollout",
			"placement/bundle", "tenancy", "*/v1alpha1", "internal/...",
		},
	},
	{
		packages: "addon/internal/registration", // Agents of add-ons get certificates, like agents of members.
		ours: []string{"addon/...", "membership", "membership/registration", "membership/registration/csr",
			"placement/rollout", "*/v1alpha1", "internal/..."},
	},
	{
		packages: "addon/leave", // The gate of add-ons for the leave of a member.
		ours: []string{
			"addon/internal/messages", "*/v1alpha1", "membership", "internal/bounded", "internal/precondition",
		},
	},
	{
		packages: "addon/...",
		ours:     []string{"addon/...", "placement/rollout", "placement/bundle", "*/v1alpha1", "internal/..."},
	},
	{
		packages: "deploy", // The manifests of a member are those of all programs that run there.
		ours: []string{
			"membership/...", "internal/bounded", "internal/crdinstall", "internal/definition", "internal/memberleave",
			"internal/precondition", "internal/requeue", "internal/requiredkinds", "internal/ssa", "internal/storeversion",
			"internal/tracing",
		},
	},
	{
		packages: "assembly", // A complete hub and a complete agent consist of all packages.
		ours: []string{
			"addon/...", "membership/...", "placement/...", "scheduler/...", "tenancy/...", "work/...", "*/v1alpha1",
			"internal/...",
		},
	},
	{packages: "mustertest/fleet", ours: anything}, // A complete hub and complete agents.
	{packages: "mustertest/...", ours: []string{"mustertest/...", "*/v1alpha1", "internal/..."}},
	{packages: "examples/...", ours: anything},
	{
		packages: "internal/ssa", // Packages of membership and of work use it, which do not import each other.
		ours:     []string{"internal/precondition"},
	},
	{packages: "internal/...", ours: anything},
	{packages: ".", ours: none}, // doc.go contains documentation only.
}

// neverAnywhere are the heavy dependencies that only nested modules may have, so that users do not download them.
var neverAnywhere = []string{
	"github.com/fluxcd/pkg/...",
	"go.etcd.io/etcd/server/...",
	"k8s.io/kubernetes/...",
	"sigs.k8s.io/controller-tools/...",
	"sigs.k8s.io/kind/...",
	"sigs.k8s.io/kwok/...",
}

// testKit is for tests, examples and internal test harnesses. Production packages must not depend on these packages.
var (
	testKit      = []string{"mustertest/..."}
	testKitUsers = []string{"examples/...", "internal/...", "mustertest/..."}
)

type rule struct {
	packages string   // pattern of the packages to which the rule applies
	ours     []string // packages of this module that they may depend on
	direct   []string // if set, the only packages of other modules that they may import directly
	never    []string // packages of other modules that they must not depend on
}

var (
	none     = []string{}
	anything = []string{"..."}
)

// check returns an error message for each dependency that a package must not have.
func check(p pkg) []string {
	var violations []string
	forbid := func(dep, reason string) {
		violations = append(violations, fmt.Sprintf("%s must not depend on %s: %s", p.name(), dep, reason))
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return match(r.packages, p.name()) })
	if i < 0 {
		return []string{p.name() + " has no rule: add a row for the package"}
	}
	row := rules[i]
	for _, dep := range p.Deps {
		switch name, ours := within(dep); {
		case !ours && matchAny(slices.Concat(row.never, neverAnywhere), dep):
			forbid(dep, "the rules exclude this dependency")
		case ours && !matchAny(row.ours, name):
			forbid(name, "the dependency is not in the row of the package")
		case ours && matchAny(testKit, name) && !matchAny(testKitUsers, p.name()):
			forbid(name, "the dependency is for tests and examples")
		}
	}
	for _, imported := range p.Imports {
		std := !strings.Contains(strings.Split(imported, "/")[0], ".")
		if _, ours := within(imported); row.direct != nil && !ours && !std && !matchAny(row.direct, imported) {
			forbid(imported, "the package may import only "+strings.Join(row.direct, " and "))
		}
	}
	return violations
}

func TestImports_FollowRules(t *testing.T) {
	root, nested := modules(t)
	packages := list(t, root)
	require.NotEmpty(t, packages)
	for _, p := range packages {
		for _, violation := range check(p) {
			t.Error(violation)
		}
		for _, dep := range p.Deps {
			if name, ours := within(dep); ours && matchAny(nested, name) {
				t.Errorf("%s must not depend on %s: the dependency is a nested module", p.name(), name)
			}
		}
	}
}

func TestCheck_Rules(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		name    string
		imports []string
		want    string
	}{
		{"an API package imports packages of Kubernetes types", "membership/v1alpha1",
			[]string{"embed", "k8s.io/apimachinery/pkg/runtime",
				"k8s.io/api/core/v1"}, ""},
		{"an API package imports no client", "work/v1alpha1", []string{"sigs.k8s.io/controller-runtime/pkg/scheme"},
			"pkg/scheme"},
		{"an API package imports no other API package", "work/v1alpha1",
			[]string{module + "/placement/v1alpha1"}, "placement/v1alpha1"},
		{"the API of placement imports field validation", "placement/v1alpha1",
			[]string{"k8s.io/apimachinery/pkg/util/validation/field"}, ""},
		{"the API of placement imports the API of work", "placement/v1alpha1", []string{module + "/work/v1alpha1"}, ""},
		{"the API of placement does not import the scheduler", "placement/v1alpha1",
			[]string{module + "/scheduler"}, "scheduler"},
		{"a package of definitions imports the installer", "placement/crds",
			[]string{"embed", module + "/internal/crdinstall"}, ""},
		{"a package of definitions does not import controllers", "placement/crds",
			[]string{module + "/placement"}, "placement"},
		{"the hub imports package membership", "membership/hub",
			[]string{module + "/membership", module + "/internal/clock"}, ""},
		{"the agent of Works does not import the API of membership", "work/agent",
			[]string{module + "/membership/v1alpha1"}, "membership/v1alpha1"},
		{"the gate of Works imports package membership", "work/leave", []string{module + "/membership"}, ""},
		{"the gate of Works does not import the apply engine", "work/leave", []string{module + "/work/apply"}, "work/apply"},
		{"a plugin of the scheduler does not import client-go", "scheduler/plugins/balance",
			[]string{"k8s.io/client-go/tools/cache"},
			"client-go"},
		{"the scheduler imports the API of placement", "scheduler", []string{module + "/placement/v1alpha1"}, ""},
		{"the scheduler does not import controllers", "scheduler", []string{module + "/placement"}, "placement"},
		{"the division of replicas imports selectors and the scheduler", "placement/internal/division",
			[]string{module + "/placement/internal/selector", module + "/scheduler/replicas"}, ""},
		{"placement does not import the apply engine", "placement", []string{module + "/work/apply"}, "work/apply"},
		{"the API of addon does not import the API of membership", "addon/v1alpha1",
			[]string{module + "/membership/v1alpha1"}, "membership/v1alpha1"},
		{"the registration of add-ons imports certificate requests of members", "addon/internal/registration",
			[]string{module + "/membership/registration/csr"}, ""},
		{"the registration of add-ons does not import the hub", "addon/internal/registration",
			[]string{module + "/membership/hub"},
			"membership/hub"},
		{"addon imports the rollout of placement", "addon", []string{module + "/placement/rollout"}, ""},
		{"the gate of add-ons imports package membership and messages", "addon/leave",
			[]string{module + "/membership", module + "/addon/internal/messages"}, ""},
		{"the gate of add-ons does not import the controllers", "addon/leave", []string{module + "/addon"}, "addon"},
		{"the agent does not import control planes of tests", "membership/agent", []string{module + "/mustertest/localplane"},
			"localplane"},
		{"the apply engine does not import the test kit", "work/apply", []string{module + "/mustertest"}, "mustertest"},
		{"the core of server-side apply does not import the apply engine", "internal/ssa",
			[]string{module + "/work/apply"}, "work/apply"},
		{"an internal test harness imports the test kit", "internal/testkit", []string{module + "/mustertest"}, ""},
		{"an example imports control planes of tests", "examples/minimal-hub",
			[]string{module + "/mustertest/localplane"}, ""},
		{"no package imports k8s.io/kubernetes", "mustertest/localplane", []string{"k8s.io/kubernetes/cmd/kubelet"},
			"kubelet"},
		{"the root package imports no other package", "", []string{module + "/membership"}, "membership"},
		{"a package without a rule", "gadget", nil, "no rule"},
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

// pkg is the output of `go list -json` for a package.
type pkg struct {
	ImportPath string
	Imports    []string // direct imports
	Deps       []string // all linked packages
}

// name returns the path of the package in the module, "." for the root.
func (p pkg) name() string {
	name, _ := within(p.ImportPath)
	return name
}

// within returns the path of a package in this module, and whether the module contains the package.
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

// modules returns the folder of the module and, as patterns, the nested modules. It reads every folder of the module,
// so that `go test` detects that a cached result is out of date: `go test` does not observe the files that `go list`
// reads.
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
