package permissionmatrix

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/security.md")

const document = root + "/docs/security.md"

const preface = `# Permissions

What every role and every credential of muster may do. [SECURITY.md](../SECURITY.md) has the threat model.

This page is generated from the roles that muster ships. To write it after a change, run
` + "`go test ./internal/permissionmatrix -update`" + `. A test grants the same roles on a control plane,
and asks its API server for the permissions of each credential in the cluster and in eight namespaces. The answers
must be these tables: what is not listed is denied, for every verb, every kind and every namespace. A kind of the form
` + "`pods/log`" + ` is a subresource. A name in parentheses restricts a row to objects with this name.
`

// TestDocument checks that docs/security.md contains the permissions of every role and credential.
func TestDocument(t *testing.T) {
	var text strings.Builder
	text.WriteString(preface)
	for _, chapter := range chapters(t) {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n", chapter.title, testkit.Paragraph(chapter.text))
		for _, c := range chapter.credentials {
			fmt.Fprintf(&text, "\n### %s\n", c.title)
			if c.text != "" {
				fmt.Fprintf(&text, "\n%s\n", testkit.Paragraph(c.text))
			}
			grants, err := c.grants()
			require.NoError(t, err)
			require.NotEmpty(t, grants, c.title)
			text.WriteString("\n| where | API group | kind | verbs |\n|---|---|---|---|\n")
			for _, scope := range slices.Sorted(maps.Keys(grants)) {
				for _, row := range rowsOf(grants[scope]) {
					fmt.Fprintf(&text, "| %s | %s | `%s`%s | %s |\n", place(scope), row.group, row.kind, row.name, row.verbs)
				}
			}
		}
	}
	fmt.Fprintf(&text, "\n## Attacks\n\n%s\n%s", testkit.Paragraph(aboutAttacks), attackTable())
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(text.String()), 0o600))
	}
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, text.String(), string(content), "run go test ./internal/permissionmatrix -update")
}

func place(scope string) string {
	switch scope {
	case clusterScope:
		return "cluster"
	case memberA:
		return "the member's namespace"
	case tenant:
		return "the user's namespace"
	default:
		return "`" + scope + "`"
	}
}

type row struct{ group, kind, name, verbs string }

// rowsOf returns the rows of a table, sorted.
func rowsOf(g grant) []row {
	verbs := map[row][]string{}
	for p := range g {
		r := row{group: p.group, kind: p.resource}
		if p.group == "" && strings.HasPrefix(p.resource, "/") {
			r.group = "(path)"
		}
		if p.name != "" {
			r.name = " (`" + p.name + "`)"
		}
		verbs[r] = append(verbs[r], p.verb)
	}
	rows := make([]row, 0, len(verbs))
	for r, list := range verbs {
		slices.Sort(list)
		r.verbs = strings.Join(list, ", ")
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
	return rows
}

// TestLimits checks rules that hold for every role and credential, independent of the tables.
func TestLimits(t *testing.T) {
	for _, chapter := range chapters(t) {
		for _, c := range chapter.credentials {
			grants, err := c.grants()
			require.NoError(t, err)
			for scope, g := range grants {
				for p := range g {
					if reason := forbidden(chapter.title, scope, p); reason != "" {
						t.Errorf("%s may %s %q (name %q) of group %q in %q: %s", c.title, p.verb, p.resource, p.name, p.group, scope,
							reason)
					}
				}
			}
		}
	}
}

// forbidden returns why no credential of a chapter may have a permission.
func forbidden(chapter, scope string, p permission) string {
	rbac := p.group == "rbac.authorization.k8s.io"
	switch {
	case strings.Contains(p.group+p.resource+p.verb, "*") && !strings.HasPrefix(p.resource, "/"):
		return "wildcards include kinds that do not exist yet"
	case p.verb == "impersonate" || p.verb == "escalate":
		return "the verb gives every permission"
	case p.verb == "deletecollection":
		return "no program deletes more than one object at once"
	case p.resource == "secrets" && p.group == "" && scope == clusterScope:
		return "Secrets are read in single namespaces only"
	case rbac && p.verb == "bind" && p.name == "":
		return "the verb without a name gives every permission"
	case p.resource == "nodes" && p.verb != "list" && p.verb != "get" && p.verb != "watch":
		return "no program changes nodes"
	case p.group == "tenancy.muster.dev" && p.resource == "memberpolicies" && p.verb != "list" && p.verb != "watch":
		return "MemberPolicies are written by the administrator of the member"
	case chapter == "Credentials of members" && scope == clusterScope:
		return "a member's credentials are confined to namespaces"
	case chapter == "Credentials of members" && scope != memberA && scope != "muster-registration":
		return "a member's credentials are confined to its namespace, and to join requests"
	case chapter == "Credentials of members" && (p.resource == "secrets" || rbac || strings.HasPrefix(p.resource,
		"serviceaccounts")):
		return "a member must not give itself permissions"
	default:
		return ""
	}
}
