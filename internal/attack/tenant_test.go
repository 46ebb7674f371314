package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func manifest(object runtime.Object) workv1alpha1.Manifest {
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Object: object}}
}

// tenancy is a namespace whose tenant may place on the clusters of one set, and a second namespace of another tenant.
type tenancy struct {
	*scene
	tenant    client.Client
	namespace string // of the attacker
	bank      string // of another tenant
	label     string
	set       *tenancyv1alpha1.ClusterSet
	binding   *tenancyv1alpha1.ClusterSetBinding
}

// newTenancy creates a namespace with the role edit for a tenant, and a binding that names the ServiceAccount of the
// tenant on members.
func newTenancy(t *testing.T) *tenancy {
	t.Helper()
	s := newScene(t, assembly.HubOptions{})
	x := &tenancy{scene: s, namespace: mustertest.Namespace(t, s.admin), bank: mustertest.Namespace(t, s.admin)}
	x.label = "attack.example.com/" + x.namespace
	x.set = &tenancyv1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
	x.set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{x.label: "yes"}}
	x.binding = &tenancyv1alpha1.ClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "use"}}
	x.binding.Spec.ClusterSetName = x.set.Name
	x.binding.Spec.ServiceAccount = &tenancyv1alpha1.ServiceAccount{Namespace: x.namespace, Name: "deployer"}
	s.createTemporary(x.set, x.binding)
	x.tenant = s.user("tenant-"+x.namespace, x.namespace, "edit", "muster-edit")
	return x
}

// in returns the metadata of an object in a namespace.
func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// grant adds a member to the ClusterSet of the tenant.
func (x *tenancy) grant(member string) {
	x.t.Helper()
	mustertest.Change(x.t, x.admin, x.member(member), func(m *v1alpha1.MemberCluster) {
		metav1.SetMetaDataLabel(&m.ObjectMeta, x.label, "yes")
	})
}

// runAgent lets a member join, whose agent is cluster-admin of the cluster of members, and returns the configuration of
// this cluster. The agent runs until the end of the test.
func (x *tenancy) runAgent(name string) *rest.Config {
	x.t.Helper()
	config := memberPlane.ForTest(x.t).Config()
	stop := x.hub.Join(name, config, assembly.AgentOptions{Membership: agent.Options{
		Store: &testkit.MemoryStore{}, ClusterID: name,
	}})
	x.t.Cleanup(func() {
		stop()
		x.remove(name)
	})
	return config
}

// asTenant creates an object with the tenant's role. The API server may observe its binding later.
func (x *tenancy) asTenant(object client.Object) {
	x.t.Helper()
	x.eventually("the tenant creates "+object.GetName(), func() error {
		return client.IgnoreAlreadyExists(x.tenant.Create(x.t.Context(), object))
	})
	x.t.Cleanup(func() { _ = x.admin.Delete(context.Background(), object) })
}

// place creates a Placement of the tenant that names members.
func (x *tenancy) place(name string, members ...string) *placementv1alpha1.Placement {
	x.t.Helper()
	p := &placementv1alpha1.Placement{ObjectMeta: in(x.namespace, name)}
	p.Spec.Policy.Type, p.Spec.Policy.ClusterNames = placementv1alpha1.PickFixed, members
	x.asTenant(p)
	return p
}

// waitForDecision waits until a Placement is decided and has selected exactly these clusters.
func (x *tenancy) waitForDecision(p *placementv1alpha1.Placement, want ...string) {
	x.t.Helper()
	x.eventually(fmt.Sprintf("Placement %s has selected %v", p.Name, want), func() error {
		var list placementv1alpha1.PlacementDecisionList
		if err := x.admin.List(x.t.Context(), &list, client.InNamespace(p.Namespace),
			client.MatchingLabels{placementv1alpha1.PlacementLabel: p.Name}); err != nil {
			return err
		}
		var got []string
		for _, slice := range list.Items {
			for _, d := range slice.Decisions {
				got = append(got, d.ClusterName)
			}
		}
		if err := x.admin.Get(x.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.DecidedGeneration != p.Generation || fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the Placement has selected %v: %+v", got, p.Status.Conditions)
		}
		return nil
	})
}

// waitForDegraded waits until a WorkSet of the tenant is Degraded for a reason, and returns the message.
func (x *tenancy) waitForDegraded(name, reason string) (message string) {
	x.t.Helper()
	x.eventually("WorkSet "+name+" is Degraded: "+reason, func() error {
		set := &placementv1alpha1.WorkSet{}
		if err := x.admin.Get(x.t.Context(), client.ObjectKey{Namespace: x.namespace, Name: name}, set); err != nil {
			return err
		}
		c := meta.FindStatusCondition(set.Status.Conditions, placementv1alpha1.ConditionDegraded)
		if c == nil || c.Reason != reason {
			return fmt.Errorf("the conditions are %+v", set.Status.Conditions)
		}
		message = c.Message
		return nil
	})
	return message
}

// works returns the Works of a WorkSet of the tenant.
func (x *tenancy) works(set string) []workv1alpha1.Work {
	x.t.Helper()
	var list workv1alpha1.WorkList
	require.NoError(x.t, x.admin.List(x.t.Context(), &list, client.MatchingLabels{
		placementv1alpha1.WorkSetNamespaceLabel: x.namespace, placementv1alpha1.WorkSetLabel: set}))
	return list.Items
}

// TestAttack_Tenant_Permissions checks that the roles of a tenant contain nothing by which a tenant reaches another
// namespace, other members, or the objects of the hub's administrator.
func TestAttack_Tenant_Permissions(t *testing.T) {
	x := newTenancy(t)
	_, member := x.joinMember("tenant-permissions")
	x.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placementv1alpha1.ClusterScopeNamespace}})
	vault := &corev1.Secret{ObjectMeta: in(x.bank, "vault"), StringData: map[string]string{"pin": "4711"}}
	theirs := work(member.Status.Namespace, "theirs")
	x.createTemporary(vault, theirs)
	x.place("own", member.Name)
	var placement placementv1alpha1.PlacementSpec
	placement.Policy.Type = placementv1alpha1.PickAll
	sets := placementv1alpha1.WorkSetSpec{Placements: []placementv1alpha1.PlacementReference{{Name: "x"}},
		Manifests: theirs.Spec.Manifests}
	eviction := placementv1alpha1.PlacementEvictionSpec{ClusterPlacement: "every-cluster", Cluster: member.Name}
	x.requireForbidden(x.tenant, map[string]attempt{
		"read a Secret of another tenant":    reading(vault),
		"list the Secrets of all":            listing(&corev1.SecretList{}, ""),
		"list the credentials of members":    listing(&corev1.SecretList{}, membership.ConnectionNamespace),
		"list the credentials of JoinTokens": listing(&corev1.SecretList{}, membership.RegistrationNamespace),
		"list the Secrets of a member":       listing(&corev1.SecretList{}, member.Status.Namespace),
		"list the Works of a member":         listing(&workv1alpha1.WorkList{}, member.Status.Namespace),
		"change a Work":                      changing(theirs, func(w *workv1alpha1.Work) { w.Spec = work("x", "x").Spec }),
		"create a Work":                      creation(work(member.Status.Namespace, "x")),
		"create a Work in its own namespace": creation(work(x.namespace, "x")),
		"write a decision": creation(&placementv1alpha1.PlacementDecision{ObjectMeta: in(x.namespace, "x"),
			Decisions: []placementv1alpha1.ClusterDecision{{ClusterName: member.Name}}}),
		"create a Placement of another tenant": creation(&placementv1alpha1.Placement{ObjectMeta: in(x.bank, "x"),
			Spec: placement}),
		"create a WorkSet of another tenant": creation(&placementv1alpha1.WorkSet{ObjectMeta: in(x.bank, "x"), Spec: sets}),
		"create a ClusterPlacement": creation(&placementv1alpha1.ClusterPlacement{ObjectMeta: in("", "x"),
			Spec: placement}),
		"create a ClusterWorkSet": creation(&placementv1alpha1.ClusterWorkSet{ObjectMeta: in("", "x"), Spec: sets}),
		"evict a ClusterPlacement": creation(&placementv1alpha1.PlacementEviction{
			ObjectMeta: in(placementv1alpha1.ClusterScopeNamespace, "x"), Spec: eviction}),
		"create a ClusterSet": creation(&tenancyv1alpha1.ClusterSet{ObjectMeta: in("", "x"), Spec: x.set.Spec}),
		"change its ClusterSet": changing(x.set, func(s *tenancyv1alpha1.ClusterSet) {
			s.Spec.Selector = &metav1.LabelSelector{}
		}),
		"bind its namespace": creation(&tenancyv1alpha1.ClusterSetBinding{ObjectMeta: in(x.namespace, "x"),
			Spec: tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: tenancyv1alpha1.GlobalClusterSet}}),
		"lift the limits of its binding": changing(x.binding, func(b *tenancyv1alpha1.ClusterSetBinding) {
			b.Spec.ServiceAccount = nil
		}),
		"grant a selection": creation(&tenancyv1alpha1.SelectionGrant{ObjectMeta: in("", "x"),
			Spec: tenancyv1alpha1.SelectionGrantSpec{Namespaces: []string{"*"},
				Objects: []tenancyv1alpha1.SelectableObjects{{Kind: "Secret", Namespace: x.bank}}}}),
		"create an Addon":      creation(&addonv1alpha1.Addon{ObjectMeta: in("", "x")}),
		"create a MemberAddon": creation(&addonv1alpha1.MemberAddon{ObjectMeta: in(member.Status.Namespace, "x")}),
		"label a member": changing(member, func(m *v1alpha1.MemberCluster) {
			m.Labels = map[string]string{x.label: "yes"}
		}),
		"create a JoinToken":    creation(&v1alpha1.JoinToken{ObjectMeta: in(membership.RegistrationNamespace, "x")}),
		"request to join":       creation(x.newRequester(x.hub.Bootstrap(), "x", "id-x").request),
		"list the JoinRequests": listing(&v1alpha1.JoinRequestList{}, membership.RegistrationNamespace),
	})
}

// TestAttack_Tenant_UnboundSets checks that a tenant places only on the clusters of its binding, and that the
// permission to create bindings is not sufficient for another set.
func TestAttack_Tenant_UnboundSets(t *testing.T) {
	x := newTenancy(t)
	x.runAgent("unbound-mine")
	x.runAgent("unbound-theirs")
	x.grant("unbound-mine")
	x.waitForDecision(x.place("both", "unbound-mine", "unbound-theirs"), "unbound-mine")
	all := &placementv1alpha1.Placement{ObjectMeta: in(x.namespace, "all")}
	all.Spec.Policy.Type = placementv1alpha1.PickAll
	x.asTenant(all)
	x.waitForDecision(all, "unbound-mine")

	// The tenant may create bindings, and has the verb bind on another set.
	writer := &rbacv1.ClusterRole{ObjectMeta: in("", "binder-"+x.namespace), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"tenancy.muster.dev"}, Resources: []string{"clustersetbindings"},
			Verbs: []string{"create", "patch", "update", "get"}},
		{APIGroups: []string{"tenancy.muster.dev"}, Resources: []string{"clustersets"}, ResourceNames: []string{"other"},
			Verbs: []string{"bind"}},
	}}
	x.createTemporary(writer)
	tenant := x.user("binder-"+x.namespace, x.namespace, writer.Name)
	own := &tenancyv1alpha1.ClusterSetBinding{ObjectMeta: in(x.namespace, "own"),
		Spec: tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: tenancyv1alpha1.GlobalClusterSet}}
	x.eventually("the policy names the missing permission", func() error {
		err := tenant.Create(t.Context(), own.DeepCopy())
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("the binding is created: %w", err)
		}
		if !strings.Contains(err.Error(), "bind") || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return err
		}
		return nil
	})
	require.NoError(t, x.admin.Get(t.Context(), client.ObjectKeyFromObject(x.binding), x.binding))
	x.requireForbidden(tenant, map[string]attempt{
		"bind the set global": creation(own),
		"remove the limit of the ServiceAccount": changing(x.binding, func(b *tenancyv1alpha1.ClusterSetBinding) {
			b.Spec.ServiceAccount = nil
		}),
		"name another ServiceAccount": changing(x.binding, func(b *tenancyv1alpha1.ClusterSetBinding) {
			b.Spec.ServiceAccount.Namespace = "kube-system"
		}),
	})
	x.waitForDecision(all, "unbound-mine")
}

// TestAttack_Tenant_OtherNamespacesSecrets checks that a WorkSet copies no object of another namespace to a cluster of
// the tenant, although the hub may read all Secrets.
func TestAttack_Tenant_OtherNamespacesSecrets(t *testing.T) {
	x := newTenancy(t)
	x.runAgent("secrets-mine")
	x.grant("secrets-mine")
	x.createTemporary(
		&corev1.Secret{ObjectMeta: in(x.bank, "vault"), StringData: map[string]string{"pin": "4711"}},
		&corev1.Secret{ObjectMeta: in(x.namespace, "own"), StringData: map[string]string{"pin": "1"}})
	x.waitForDecision(x.place("mine", "secrets-mine"), "secrets-mine")
	distribute := func(name string, resources ...placementv1alpha1.ResourceSelector) {
		x.asTenant(&placementv1alpha1.WorkSet{ObjectMeta: in(x.namespace, name), Spec: placementv1alpha1.WorkSetSpec{
			Placements: []placementv1alpha1.PlacementReference{{Name: "mine"}}, Resources: resources}})
	}
	distribute("own", placementv1alpha1.ResourceSelector{Kind: "Secret", Name: "own"})
	x.eventually("the tenant distributes its own Secret", func() error {
		if found := x.works("own"); len(found) != 1 {
			return fmt.Errorf("there are %d Works", len(found))
		}
		return nil
	})
	for name, selector := range map[string]placementv1alpha1.ResourceSelector{
		"by-name":    {Kind: "Secret", Namespace: x.bank, Name: "vault"},
		"all":        {Kind: "Secret", Namespace: x.bank},
		"namespace":  {Kind: "Namespace", Name: x.bank},
		"namespaces": {Kind: "Namespace"},
		"members":    {Group: "membership.muster.dev", Kind: "MemberCluster"},
		"roles":      {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	} {
		distribute(name, selector)
		x.waitForDegraded(name, placementv1alpha1.ReasonSelectionFailed)
		require.Empty(t, x.works(name), name)
	}
}

// TestAttack_Tenant_Executor checks, with an agent that is cluster-admin of its member, that a tenant has the
// permissions of the ServiceAccount of its binding there and no others: not those of another ServiceAccount, and none
// for cluster-scoped RBAC objects.
func TestAttack_Tenant_Executor(t *testing.T) {
	x := newTenancy(t)
	name := "executor-" + x.namespace
	member := mustertest.Client(t, x.runAgent(name), scheme)
	x.grant(name)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: in("", x.namespace)},
		&corev1.ServiceAccount{ObjectMeta: in(x.namespace, "deployer")},
		&corev1.ServiceAccount{ObjectMeta: in("default", "root")},
		&rbacv1.RoleBinding{ObjectMeta: in(x.namespace, "deployer"),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: x.namespace, Name: "deployer"}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "root-"+x.namespace),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "root"}}},
	} {
		require.NoError(t, client.IgnoreAlreadyExists(member.Create(t.Context(), object)))
		t.Cleanup(func() { _ = member.Delete(context.Background(), object) })
	}
	x.waitForDecision(x.place("mine", name), name)
	distribute := func(set string, executor *workv1alpha1.Executor, objects ...runtime.Object) {
		w := &placementv1alpha1.WorkSet{ObjectMeta: in(x.namespace, set)}
		w.Spec.Placements = []placementv1alpha1.PlacementReference{{Name: "mine"}}
		w.Spec.Work.Executor = executor
		for _, object := range objects {
			w.Spec.Manifests = append(w.Spec.Manifests, manifest(object))
		}
		x.asTenant(w)
	}
	configMap := func(namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: in(namespace, name)}
	}
	root := func(kind string, object runtime.Object) runtime.Object {
		object.GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		return object
	}
	escalation := &rbacv1.ClusterRoleBinding{ObjectMeta: in("", "escalation-"+x.namespace),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: x.namespace, Name: "deployer"}}}
	role := &rbacv1.ClusterRole{ObjectMeta: in("", "escalation-"+x.namespace), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}

	distribute("good", nil, configMap(x.namespace, "good"))
	x.eventually("the tenant's own object is on the member", func() error {
		return member.Get(t.Context(), client.ObjectKey{Namespace: x.namespace, Name: "good"}, &corev1.ConfigMap{})
	})

	distribute("other", &workv1alpha1.Executor{Namespace: "default", Name: "root"}, configMap("default", "other"))
	message := x.waitForDegraded("other", placementv1alpha1.ReasonNotAllowed)
	require.Contains(t, message, "spec.work.executor")
	require.Empty(t, x.works("other"))

	distribute("escalates", nil, root("ClusterRoleBinding", escalation), root("ClusterRole", role),
		configMap("default", "elsewhere"))
	x.eventually("the member forbids each object", func() error {
		found := x.works("escalates")
		if len(found) != 1 {
			return fmt.Errorf("there are %d Works", len(found))
		}
		require.Equal(t, "deployer", found[0].Spec.Executor.Name)
		var messages []string
		for _, manifest := range found[0].Status.Manifests {
			for _, c := range manifest.Conditions {
				messages = append(messages, c.Message)
			}
		}
		message := strings.Join(messages, "; ")
		for _, part := range []string{"clusterrolebindings", "clusterroles", `namespace "default"`} {
			if !strings.Contains(message, part) {
				return fmt.Errorf("the messages of its objects are %q", message)
			}
		}
		require.Contains(t, message, `User "system:serviceaccount:`+x.namespace+`:deployer" cannot`)
		return nil
	})
	for _, object := range []client.Object{escalation, role, configMap("default", "elsewhere"),
		configMap("default", "other")} {
		err := member.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		require.True(t, apierrors.IsNotFound(err), "%T: %v", object, err)
	}
}
