package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

const hostedAgent = `
manifests:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: agent, annotations: {addon.muster.dev/location: Hosting}}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: reader}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: hosting,
  annotations: {addon.muster.dev/location: "${WHERE}"}}, subjects: [{namespace: "${INSTALL_NAMESPACE}"}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: member,
  annotations: {addon.muster.dev/location: Member}}, subjects: [{namespace: "${INSTALL_NAMESPACE}"}]}
- {apiVersion: example.com/v1, kind: Issuer, metadata: {name: issuer,
  annotations: {addon.muster.dev/location: Hosting}}}
- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: issuers.example.com},
  spec: {group: example.com, scope: Cluster, names: {kind: Issuer, plural: issuers}}}
- {apiVersion: v1, kind: Pod, metadata: {name: bye, annotations: {addon.muster.dev/location: Hosting,
  addon.muster.dev/pre-delete: "true"}}}
- {apiVersion: v1, kind: Pod, metadata: {name: farewell, annotations: {addon.muster.dev/pre-delete: "true"}}}
manifestOptions:
- {select: {namespace: "${INSTALL_NAMESPACE}", name: agent}, mode: CreateOnly}
`

// abbreviated formats the objects for a cluster: <kind> <namespace>/<name>, hooks with a leading *, and the namespaces
// of option selectors with a ?.
func abbreviated(p template.Part) string {
	var all []string
	for _, o := range p.Objects {
		all = append(all, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	for _, o := range p.Hooks {
		all = append(all, "*"+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	for _, o := range p.Options {
		all = append(all, "?"+o.Select.Namespace)
	}
	return strings.Join(all, ", ")
}

func TestRender_Hosted(t *testing.T) {
	given := spec(t, hostedAgent)
	before := given.DeepCopy()
	in := input(t, `{variables: [{name: WHERE, value: Hosting}]}`)
	alone, err := template.Render(given, in)
	require.NoError(t, err)
	require.Equal(t, "Namespace /logging, ServiceAccount logging/agent, ServiceAccount logging/reader, "+
		"ClusterRoleBinding /hosting, ClusterRoleBinding /member, "+
		"Issuer /issuer, CustomResourceDefinition /issuers.example.com, *Pod logging/bye, *Pod logging/farewell, ?logging",
		abbreviated(alone.Part), "want all objects on the member")
	require.Empty(t, alone.Hosting)

	in.HostingNamespace = "logs-east"
	got, err := template.Render(given, in)
	require.NoError(t, err)
	require.Equal(t, "Namespace /logging, ServiceAccount logging/reader, ClusterRoleBinding /member, "+
		"CustomResourceDefinition /issuers.example.com, *Pod logging/farewell, ?logging", abbreviated(got.Part))
	require.Equal(t, "Namespace /logs-east, ServiceAccount logs-east/agent, ClusterRoleBinding /hosting, Issuer "+
		"/issuer, *Pod logs-east/bye, ?logs-east", abbreviated(got.Hosting),
		"want the scope of the definition in the template")
	for _, o := range append(got.Objects, got.Hosting.Objects...) {
		if o.GetKind() == "ClusterRoleBinding" {
			want := map[string]string{"member": "logging", "hosting": "logs-east"}[o.GetName()]
			require.Equal(t, []any{map[string]any{"namespace": want}}, o.Object["subjects"],
				"want the namespace of the add-on on that cluster")
		}
	}
	got.Hosting.Options[0].Mode = v1alpha1.LocationMember
	require.NotEqual(t, got.Hosting.Options[0].Mode, got.Options[0].Mode, "want separate options")
	require.Empty(t, cmp.Diff(before, given), "the template was changed")
}

func TestRender_HostedErrors(t *testing.T) {
	for _, tc := range []struct {
		reason, spec string
		want         error
		message      string
	}{
		{"an invalid location",
			`manifests: [{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {addon.muster.dev/location: ` +
				`hosting}}}]`, template.ErrAnnotation, "Secret a: manifests[0].metadata.annotations: invalid annotation: " +
				"addon.muster.dev/location must be Member or Hosting"},
		{"an unknown variable",
			`manifests: [{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {addon.muster.dev/location: ` +
				`"${WHERE}"}}}]`, template.ErrUnknown,
			`Secret a: manifests[0].metadata.annotations["addon.muster.dev/location"]: ${WHERE}: the variable does not exist`},
		{"metadata is not a map", `manifests: [{apiVersion: v1, kind: Secret, metadata: [a]}]`, template.ErrManifest, ""},
		{"an error of an option is returned once",
			`{manifests: [], manifestOptions: [{select: {name: "${D}"}}, {select: {name: "${E}"}}]}`, template.ErrUnknown,
			"manifestOptions[0].select.name: ${D}: the variable does not exist: no applicable AddonConfig sets " +
				"it\nmanifestOptions[1].select.name: ${E}: "},
	} {
		for _, hosting := range []string{"", "logs-east"} {
			in := input(t, "{}")
			in.HostingNamespace = hosting
			out, err := template.Render(spec(t, tc.spec), in)
			require.ErrorIs(t, err, tc.want, tc.reason)
			require.ErrorContains(t, err, tc.message, tc.reason)
			require.Empty(t, out)
		}
	}
}

// TestRender_HostedPartsAreComplete checks that each object is in one of the two parts, in the same order.
func TestRender_HostedPartsAreComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var texts []string
		for i := range rapid.IntRange(1, 6).Draw(t, "manifests") {
			location := rapid.SampledFrom([]string{"", "annotations: {addon.muster.dev/location: Hosting}",
				"annotations: {addon.muster.dev/location: Member}"}).Draw(t, "location")
			texts = append(texts, `{apiVersion: v1, kind: Secret, metadata: {name: a`+string(rune('0'+i))+`, `+location+`}}`)
		}
		in := input(t, "{}")
		all, err := template.Render(manifests(t, texts...), in)
		require.NoError(t, err)
		in.HostingNamespace = "logging" // as the install namespace, so that only the location differs
		parts, err := template.Render(manifests(t, texts...), in)
		require.NoError(t, err)
		member, hosting := parts.Objects[1:], parts.Hosting.Objects[1:]
		require.Len(t, append(member, hosting...), len(all.Objects)-1)
		for _, o := range all.Objects[1:] {
			from := &member
			if o.GetAnnotations()[v1alpha1.LocationAnnotation] == v1alpha1.LocationHosting {
				from = &hosting
			}
			require.Empty(t, cmp.Diff(o, (*from)[0]))
			*from = (*from)[1:]
		}
	})
}

func TestHostingNamespace(t *testing.T) {
	long := strings.Repeat("m", 63)
	for _, tc := range []struct{ reason, addon, member, want string }{
		{"the two names and a hash", "logs", "east", "logs-east-"},
		{"names that are too long are cut", strings.Repeat("a", 50), long, strings.Repeat("a", 46) + "-"},
		{"a name is not cut after a hyphen", strings.Repeat("a", 45), long, strings.Repeat("a", 45) + "-"},
	} {
		got := template.HostingNamespace(tc.addon, tc.member)
		require.Equal(t, tc.want, got[:len(got)-16], tc.reason)
		require.Empty(t, content.IsDNS1123Label(got), tc.reason)
	}
	require.NotEqual(t, template.HostingNamespace("a-b", "c"), template.HostingNamespace("a", "b-c"),
		"want different namespaces for different names")
	require.NotEqual(t, template.HostingNamespace("logs", long), template.HostingNamespace("logs", long[1:]+"n"),
		"want different namespaces for names that are cut")
	require.Equal(t, "logs-east-25d4bb5b47d302d7", template.HostingNamespace("logs", "east"),
		"want a namespace that does not change between releases")
}

func TestHostingNamespace_ValidAndUnique(t *testing.T) {
	label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		addon, member, otherAddon, other := label.Draw(t, "addon"), label.Draw(t, "member"), label.Draw(t, "other add-on"),
			label.Draw(t, "other member")
		got := template.HostingNamespace(addon, member)
		require.Empty(t, content.IsDNS1123Label(got))
		require.Equal(t, addon == otherAddon && member == other, got == template.HostingNamespace(otherAddon, other))
	})
}
