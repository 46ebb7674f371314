package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	"github.com/muster-sdk/muster/tenancy/memberpolicy"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	"github.com/muster-sdk/muster/work/agent"
)

// administrator owns the MemberPolicies of a member.
type administrator struct {
	client.Client
	*fixture
}

func (f *fixture) administrator() administrator {
	scheme := runtime.NewScheme()
	require.NoError(f.T, tenancyv1alpha1.AddToScheme(scheme))
	c, err := client.New(plane.ForTest(f.T).Config(), client.Options{Scheme: scheme})
	require.NoError(f.T, err)
	return administrator{c, f}
}

// policy creates a MemberPolicy with rules for the hub of the test.
func (a administrator) policy(name, rules string) *tenancyv1alpha1.MemberPolicy {
	a.T.Helper()
	policy := &tenancyv1alpha1.MemberPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec = a.rules(rules)
	require.NoError(a.T, a.Create(context.Background(), policy))
	a.T.Cleanup(func() { require.NoError(a.T, client.IgnoreNotFound(a.Delete(context.Background(), policy))) })
	return policy
}

func (a administrator) rules(rules string) (spec tenancyv1alpha1.MemberPolicySpec) {
	a.T.Helper()
	require.NoError(a.T, yaml.UnmarshalStrict([]byte("rules: ["+strings.ReplaceAll(rules, "NS", a.name)+"]"), &spec))
	return spec
}

// TestMemberPolicy checks an agent with the documented permissions, and an administrator who limits the objects.
func TestMemberPolicy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin := f.administrator()
	require.NoError(t, tenancycrds.InstallOnMember(t.Context(), f.member))
	p, user := plane.ForTest(t), "agent-"+f.name
	grant(t, f.member, user, "", append(fileRules(t), rule("", "configmaps", allOf...), rule("", "secrets", allOf...)))
	grant(t, f.Client, user, f.options.Namespace, agent.HubRules())
	f.options.Hub, f.options.Member = p.User(user), p.User(user)
	watcher, err := memberpolicy.NewWatcher(memberpolicy.Options{Member: f.options.Member})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- watcher.Start(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	f.options.ObjectPolicy = watcher.ForHub(f.options.HubName)
	f.start()

	both := "{" + manifests(configMap("open", "{k: v1}"), secret("held")) + "}"
	work := f.work("shop", both)
	f.ready(work)
	blocked := f.read("Secret", "held")
	require.NotNil(t, blocked)

	// The administrator accepts ConfigMaps only. Existing objects stay, and accepted objects are still applied.
	policy := admin.policy(f.name, "{hubs: [NS], kinds: [{kind: ConfigMap}], namespaces: [NS]}")
	const rejected = "No rule of MemberPolicy NS accepts Secret in namespace NS from hub NS. The administrator of the " +
		"member can add one."
	rejects := "1/2 Applied=False/NotAccepted Available=False/NotApplied Progressing=False/AsDesired " +
		"Degraded=True/NotAccepted\n" +
		"Secret NS/held: " + rejected + "\nConfigMap NS/open: Applied=True/Applied Available=True/Ready\n" +
		"Secret NS/held: Applied=False/NotAccepted Available=False/NotApplied"
	f.awaitStatus(work, rejects)
	f.change(work, "{"+manifests(configMap("open", "{k: v2}"), secret("held"))+
		", manifestOptions: [{select: {kind: Secret}, feedback: [{name: k, jsonPath: .data.k}]}]}")
	f.awaitStatus(work, rejects)
	f.Eventually("ConfigMap open has k: v2", func() error { return equal("v2", f.data("open", "k")) })
	now := f.read("Secret", "held")
	require.NotNil(t, now, "a policy deletes nothing")
	require.Equal(t, blocked.GetResourceVersion(), now.GetResourceVersion())

	// The agent does not revert a user's edit of an object that is not accepted.
	f.patch(now, "data: {k: ZWRpdGVk}")
	f.change(work, "{"+manifests(configMap("open", "{k: v3}"), secret("held"))+"}")
	f.Eventually("ConfigMap open has k: v3", func() error { return equal("v3", f.data("open", "k")) })
	f.awaitStatus(work, rejects)
	edited, _, err := unstructured.NestedString(f.read("Secret", "held").Object, "data", "k")
	require.NoError(t, err)
	require.Equal(t, "ZWRpdGVk", edited)

	// While a manifest is not accepted, objects that the Work no longer contains are not deleted.
	f.change(work, "{"+manifests(configMap("other", "{k: v}"), secret("held"))+"}")
	f.Eventually("ConfigMap other has k: v", func() error { return equal("v", f.data("other", "k")) })
	f.awaitStatus(work, strings.ReplaceAll(rejects, "ConfigMap NS/open", "ConfigMap NS/other"))
	require.NotNil(t, f.read("ConfigMap", "open"))

	// Neither a hub nor its agent changes the policy.
	own := f.work("own", "{"+manifests(
		"{apiVersion: tenancy.muster.dev/v1alpha1, kind: MemberPolicy, metadata: {name: NS}, spec: {rules: []}}")+"}")
	f.awaitStatus(own, "0/1 Applied=False/NotAccepted Available=False/NotApplied Progressing=False/AsDesired "+
		"Degraded=True/NotAccepted\n"+
		"tenancy.muster.dev/MemberPolicy NS: A MemberPolicy belongs to the administrator of the member. "+
		"An agent never applies it for a hub.\n"+
		"tenancy.muster.dev/MemberPolicy NS: Applied=False/NotAccepted Available=False/NotApplied")
	scheme := admin.Scheme()
	agentClient, err := client.New(f.options.Member, client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, agentClient.List(t.Context(), &tenancyv1alpha1.MemberPolicyList{}))
	for verb, err := range map[string]error{
		"create": agentClient.Create(t.Context(), &tenancyv1alpha1.MemberPolicy{ObjectMeta: metav1.ObjectMeta{Name: "own"}}),
		"update": agentClient.Update(t.Context(), policy.DeepCopy()),
		"delete": agentClient.Delete(t.Context(), policy.DeepCopy()),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", verb, err)
	}

	// A rule for Secrets: the object is applied again, and objects that the Work no longer contains are deleted.
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
	policy.Spec = admin.rules("{kinds: [{kind: ConfigMap}, {kind: Secret}], namespaces: ['NS*']}")
	require.NoError(t, admin.Update(t.Context(), policy))
	f.ready(work)
	f.Eventually("ConfigMap open is deleted", func() error {
		if f.read("ConfigMap", "open") != nil {
			return fmt.Errorf("the ConfigMap that the Work does not contain still exists")
		}
		return nil
	})
	require.Equal(t, blocked.GetUID(), f.read("Secret", "held").GetUID())

	// A user of the hub deletes the Work while the member accepts none of its objects. The deletion is a request.
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
	policy.Spec = admin.rules("")
	require.NoError(t, admin.Update(t.Context(), policy))
	f.Eventually("no object is ready", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		return equal("0/2", work.Status.Ready)
	})
	f.delete(work)
	f.gone(work)
	require.Nil(t, f.read("Secret", "held"))
	f.delete(own)
	f.gone(own)
}
