package permissionmatrix

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// attack is a row of the chapter Attacks. Tests are by folder.
type attack struct {
	attacker, attempt, prevention string
	tests                         map[string][]string
}

const scenes = "internal/attack"

var attacks = []attack{
	{"stolen bootstrap credential", "read objects of the hub", "The Role of bootstrap credentials only creates and gets " +
		"JoinRequests.", map[string][]string{
		scenes:                              {"TestAttack_StolenToken_Reads"},
		"membership/registration/jointoken": {"TestBootstrapCredentialMayDoNothingElse"},
	}},
	{"stolen bootstrap credential", "flood of requests", "A ResourceQuota limits JoinRequests; `maxUses` and the " +
		"expiration of a JoinToken limit members.", map[string][]string{
		scenes:                              {"TestAttack_StolenToken_Flood"},
		"membership/hub":                    {"TestFloodIsBounded"},
		"membership/registration/jointoken": {"TestMaxUsesIsNeverExceeded"},
	}},
	{"stolen bootstrap credential", "name of another cluster", "A name belongs to the first cluster; a MemberCluster " +
		"that an administrator has accepted without a cluster ID waits for the administrator.", map[string][]string{
		scenes: {"TestAttack_StolenToken_NameSquatting"},
	}},
	{"stolen bootstrap credential", "guessed cluster ID", "A member belongs to its claim key; an administrator replaces " +
		"it.", map[string][]string{
		scenes:           {"TestAttack_StolenToken_GuessedClusterID"},
		"membership/hub": {"TestJoin_RequiresToken"},
	}},
	{"stolen bootstrap credential", "labels that steer workloads", "Labels by which ClusterSets select need " +
		"`spec.allowedLabels` of the JoinToken.", map[string][]string{
		scenes:           {"TestAttack_StolenToken_LabelSteering"},
		"membership/hub": {"TestProtectedLabels"},
	}},
	{"stolen agent credential", "another namespace, another member's Lease", "One RoleBinding in the member's namespace.",
		map[string][]string{
			scenes:                      {"TestAttack_Agent_OtherNamespaces"},
			"internal/permissionmatrix": {"TestPlane_PermissionsAreThoseOfTheDocument", "TestLimits"},
		}},
	{"stolen agent credential", "flood of Leases", "A ValidatingAdmissionPolicy.", map[string][]string{
		scenes:            {"TestAttack_Agent_LeaseFlood"},
		"membership/crds": {"TestConfinement_Leases"},
	}},
	{"stolen agent credential", "flood of objects", "The ClusterRole of agents creates no other objects; " +
		"`hub.Options.NamespaceQuota` limits what others create in the namespace.", map[string][]string{
		"internal/permissionmatrix": {"TestPlane_PermissionsAreThoseOfTheDocument"},
		"membership/hub":            {"TestNamespaceQuota"},
	}},
	{"stolen agent credential", "oversized status", "The definitions limit fields.", map[string][]string{
		scenes: {"TestAttack_Agent_OversizedStatus"},
	}},
	{"stolen agent credential", "renewal without the claim key", "Renewals are signed with the claim key.",
		map[string][]string{"membership/hub": {"TestMembersOfOneHub"}}},
	{"copy of an agent's Secrets", "renewal and join beside the agent", "Agents replace their claim keys. A request " +
		"without the current one is refused, and the condition `ClusterIDUnique` reports it with the reason " +
		"`ClaimKeyReused`.", map[string][]string{
		"membership/hub":          {"TestMembersOfOneHub"},
		"membership/lifecycle":    {"TestClaimKeys_FindsCopies", "TestClaimKeys_NoFalseReports"},
		"membership/registration": {"TestKeys", "TestKeys_OfAnotherRequest"},
	}},
	{"add-on's agent", "other add-ons, other members, more permissions", "One Role in the member's namespace; the hub " +
		"rejects rules that lead out of it.", map[string][]string{
		"addon/internal/registration": {"TestAgentsAreConfined", "TestValidateRules", "TestNoRuleGetsAround"},
	}},
	{"tenant", "objects of others and of the hub", "No role for tenants contains them.", map[string][]string{
		scenes: {"TestAttack_Tenant_Permissions"},
	}},
	{"tenant", "Secrets of other namespaces", "A WorkSet selects in its own namespace; a SelectionGrant of the " +
		"administrator allows more.", map[string][]string{
		scenes:                         {"TestAttack_Tenant_OtherNamespacesSecrets"},
		"placement/internal/selection": {"TestTenantsDoNotReadEachOthers"},
	}},
	{"tenant", "clusters of an unbound set", "`MayPlace`, and the verb `bind`.", map[string][]string{
		scenes:              {"TestAttack_Tenant_UnboundSets"},
		"tenancy/crds":      {"TestBind", "TestLabels"},
		"placement/workset": {"TestTenancy_ForgedDecision", "TestTenancy_RandomChanges"},
		"addon":             {"TestTenancy_Install"},
	}},
	{"tenant", "another executor, cluster-scoped RBAC objects in a Work", "The ClusterSetBinding names the account " +
		"of the member; RBAC on the member decides.", map[string][]string{
		scenes:              {"TestAttack_Tenant_Executor"},
		"placement/workset": {"TestTenancy_Executor", "TestTenancy_Kinds"},
		"work/agent":        {"TestExecutor"},
	}},
	{"hub", "objects that a member does not accept", "A MemberPolicy.", map[string][]string{
		"work/agent":       {"TestMemberPolicy"},
		"mustertest/fleet": {"TestMemberPolicy_ReportedAndScheduled"},
	}},
	{"credential of the hub", "tokens, Roles and namespaces of others", "ValidatingAdmissionPolicies confine hubs.",
		map[string][]string{"membership/crds": {"TestConfinement"}}},
	{"API server of a member", "endless, compressed and slow responses", "Limits of size and time.", map[string][]string{
		"membership/fleet": {"TestLimits_HostileMember"},
	}},
	{"older program", "downgrade of definitions", "The version in an annotation.", map[string][]string{
		"internal/crdinstall": {"TestInstall_NoDowngrade"},
	}},
}

const aboutAttacks = "What an attacker with one part tries, what prevents it, and the tests that try it. The tests " +
	"of `internal/attack` run a complete hub with the roles of `deploy/hub`."

// attackTable returns the chapter Attacks.
func attackTable() string {
	var text strings.Builder
	text.WriteString("\n| attacker | attempt | prevention | tests |\n|---|---|---|---|\n")
	for _, a := range attacks {
		var tests []string
		for folder, names := range a.tests {
			for _, name := range names {
				tests = append(tests, fmt.Sprintf("`%s.%s`", folder, name))
			}
		}
		slices.Sort(tests)
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", a.attacker, a.attempt, a.prevention, strings.Join(tests, ", "))
	}
	return text.String()
}

// TestAttacks checks that each test of the chapter Attacks exists, and that the chapter lists each test of the package.
func TestAttacks(t *testing.T) {
	defined := func(folder string) (names []string) {
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllSubmatch(content, -1) {
				names = append(names, string(match[1]))
			}
		}
		return names
	}
	listed := map[string]bool{}
	for _, a := range attacks {
		require.NotEmpty(t, a.tests, a.attempt)
		for folder, names := range a.tests {
			for _, name := range names {
				require.Contains(t, defined(folder), name, "%s: %s", a.attacker, a.attempt)
				listed[folder+"."+name] = true
			}
		}
	}
	for _, name := range defined(scenes) {
		if strings.HasPrefix(name, "TestAttack_") {
			require.True(t, listed[scenes+"."+name], "docs/security.md does not list %s", name)
		}
	}
}
