package crds_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "crds"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &plane)) }

func installed(t *testing.T) client.Client {
	t.Helper()
	return mustertest.Client(t, plane.ForTest(t).Config(),
		mustertest.Scheme(v1alpha1.AddToScheme, apiextensionsv1.AddToScheme), crds.Install)
}

func TestInstall_ServedImmediatelyAndIdempotent(t *testing.T) {
	c := installed(t)
	// The next request must not fail because of an unknown kind.
	require.NoError(t, c.List(t.Context(), &v1alpha1.MemberClusterList{}))
	require.NoError(t, c.List(t.Context(), &v1alpha1.JoinRequestList{}))

	var before, after apiextensionsv1.CustomResourceDefinitionList
	require.NoError(t, c.List(t.Context(), &before))
	require.Len(t, before.Items, 4)
	crdtest.InstallsNothing(t, c, crds.Install)
	require.NoError(t, c.List(t.Context(), &after))
	if diff := cmp.Diff(before.Items, after.Items); diff != "" {
		t.Errorf("a second Install changes the definitions (-before +after):\n%s", diff)
	}
}

func TestInstall_ContextDeadline(t *testing.T) {
	c := installed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	require.ErrorIs(t, crds.Install(ctx, c), context.DeadlineExceeded)
}

// TestValidation checks that the API server rejects each case, with a message that contains the valid values.
func TestValidation(t *testing.T) {
	c := installed(t)
	long := strings.Repeat("a", 64)
	cluster := func(change func(*v1alpha1.MemberCluster)) *v1alpha1.MemberCluster {
		object := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "valid"}}
		change(object)
		return object
	}
	token := func(change func(*v1alpha1.JoinToken)) *v1alpha1.JoinToken {
		object := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "valid"}}
		change(object)
		return object
	}
	request := func(change func(*v1alpha1.JoinRequest)) *v1alpha1.JoinRequest {
		object := &v1alpha1.JoinRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "valid"},
			Spec: v1alpha1.JoinRequestSpec{
				ClusterID: "id", Name: "east", ClaimKey: []byte{1}, Signature: []byte{1},
				Credential: v1alpha1.CredentialRequest{Type: v1alpha1.CredentialIdentity},
			}}
		change(object)
		return object
	}
	many := make([]v1alpha1.Taint, 63)
	for i := range many {
		many[i] = v1alpha1.Taint{Key: fmt.Sprintf("k%d", i), Effect: corev1.TaintEffectNoSchedule}
	}

	for _, test := range []struct {
		reason string
		object client.Object
		want   string
	}{
		{
			"a MemberCluster name that is too long for a label",
			cluster(func(o *v1alpha1.MemberCluster) { o.Name = long }),
			"metadata.name must be a DNS label of at most 63 characters",
		},
		{
			"a MemberCluster name with a dot",
			cluster(func(o *v1alpha1.MemberCluster) { o.Name = "a.b" }), "metadata.name must be a DNS label",
		},
		{
			"a heartbeat period of more than ten minutes",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.HeartbeatPeriodSeconds = 601
			}), "heartbeatPeriodSeconds must be from 1 to 600",
		},
		{
			"a negative heartbeat period",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.HeartbeatPeriodSeconds = -1
			}), "heartbeatPeriodSeconds must be from 1 to 600",
		},
		{
			"join mode Push without a kubeConfigSecretRef",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.JoinMode = v1alpha1.JoinPush
			}), "kubeConfigSecretRef is required when joinMode is Push or Install",
		},
		{
			"join mode Install without a kubeConfigSecretRef",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.JoinMode = v1alpha1.JoinInstall
			}), "kubeConfigSecretRef is required when joinMode is Push or Install",
		},
		{
			"a kubeConfigSecretRef without a name",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.KubeConfigSecretRef = &v1alpha1.KubeConfigSecretRef{}
			}), "spec.kubeConfigSecretRef.name",
		},
		{
			"a cluster ID with a space",
			cluster(func(o *v1alpha1.MemberCluster) { o.Spec.ClusterID = "a b" }), "clusterID must be letters, digits",
		},
		{
			"an unknown state",
			cluster(func(o *v1alpha1.MemberCluster) { o.Spec.State = "Gone" }), `supported values: "Join", "Leave"`,
		},
		{
			"a negative leave deadline",
			cluster(func(o *v1alpha1.MemberCluster) { o.Spec.Leave.DeadlineSeconds = -1 }), "spec.leave.deadlineSeconds",
		},
		{
			"a taint key that is not a qualified name",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.Taints = []v1alpha1.Taint{{Key: "two words", Effect: corev1.TaintEffectNoExecute}}
			}), "key must be a qualified name such as example.com/maintenance",
		},
		{
			"an unknown taint effect",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.Taints = []v1alpha1.Taint{{Key: "k", Effect: "NoWay"}}
			}), `"NoSchedule"`,
		},
		{
			"a duplicate taint",
			cluster(func(o *v1alpha1.MemberCluster) {
				taint := v1alpha1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}
				o.Spec.Taints = []v1alpha1.Taint{taint, taint}
			}), "Duplicate value",
		},
		{
			"63 taints",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.Taints = many
			}), "at most 62 taints: the hub needs room for its own",
		},
		{
			"the group of all users as the identity of a member",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.Identity = &rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}
			}), "identity.name must name one member's subject",
		},
		{
			"a ServiceAccount identity without a namespace",
			cluster(func(o *v1alpha1.MemberCluster) {
				o.Spec.Identity = &rbacv1.Subject{Kind: "ServiceAccount", Name: "agent"}
			}), "identity.namespace is required",
		},
		{
			"a claim that is not a fingerprint",
			cluster(func(o *v1alpha1.MemberCluster) { o.Spec.Claim = "mine" }), "spec.claim",
		},
		{
			"a credential TTL below the minimum of the API server",
			token(func(o *v1alpha1.JoinToken) { o.Spec.CredentialTTLSeconds = 599 }), "credentialTTLSeconds must be from 600",
		},
		{
			"a JoinToken without uses",
			token(func(o *v1alpha1.JoinToken) { o.Spec.MaxUses = ptr.To[int32](0) }), "maxUses must be from 1 to 10000",
		},
		{
			"a JoinToken name that is too long for the names of its objects",
			token(func(o *v1alpha1.JoinToken) {
				o.Name = strings.Repeat("a", 53)
			}), "metadata.name must be a DNS label of at most 52 characters",
		},
		{
			"an unknown type of JoinToken",
			token(func(o *v1alpha1.JoinToken) {
				o.Spec.Type = "Password"
			}), `supported values: "ServiceAccount", "BootstrapToken"`,
		},
		{
			"a bootstrap token whose name has no ID",
			token(func(o *v1alpha1.JoinToken) {
				o.Spec.Type = v1alpha1.JoinTokenBootstrapToken
			}), "must be named bootstrap-token-<id>",
		},
		{
			"a bootstrap token ID of seven characters",
			token(func(o *v1alpha1.JoinToken) {
				o.Name, o.Spec.Type = "bootstrap-token-abcdefg", v1alpha1.JoinTokenBootstrapToken
			}), "must be named bootstrap-token-<id>",
		},
		{
			"a JoinRequest with an invalid member name",
			request(func(o *v1alpha1.JoinRequest) { o.Spec.Name = "East" }), "name must be a DNS label",
		},
		{
			"an unknown type of credential",
			request(func(o *v1alpha1.JoinRequest) {
				o.Spec.Credential.Type = "Password"
			}), `supported values: "Certificate", "Token", "Identity"`,
		},
		{
			"a certificate request that is too large",
			request(func(o *v1alpha1.JoinRequest) {
				o.Spec.Credential.CertificateRequest = make([]byte, 16<<10)
			}), "certificateRequest",
		},
		{
			"a label value of 64 characters",
			request(func(o *v1alpha1.JoinRequest) {
				o.Spec.Labels = map[string]string{"a": long}
			}), "a label's key has at most 317 characters, and its value at most 63",
		},
		{
			"a label key of 318 characters",
			request(func(o *v1alpha1.JoinRequest) {
				o.Spec.Labels = map[string]string{strings.Repeat("a", 318): "a"}
			}), "a label's key has at most 317 characters",
		},
		{
			"many labels with values that are too long",
			request(func(o *v1alpha1.JoinRequest) {
				o.Spec.Labels = labels(64, strings.Repeat("a", 1000))
			}), "and its value at most 63",
		},
		{
			"a member UID of 65 characters",
			request(func(o *v1alpha1.JoinRequest) { o.Spec.MemberUID = types.UID(strings.Repeat("a", 65)) }), "spec.memberUID",
		},
		{
			"a JoinToken label with a value of 64 characters",
			token(func(o *v1alpha1.JoinToken) { o.Spec.Labels = map[string]string{"a": long} }), "and its value at most 63",
		},
		{
			"a JoinToken with an invalid cluster ID",
			token(func(o *v1alpha1.JoinToken) { o.Spec.ClusterID = "a b" }), "clusterID must be letters, digits",
		},
		{
			"a Membership with another name than self",
			&v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"},
				Spec: v1alpha1.MembershipSpec{MemberName: "east", State: v1alpha1.StateJoin, HeartbeatPeriodSeconds: 1}},
			"a Membership must be named self",
		},
	} {
		err := c.Create(t.Context(), test.object, client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want an Invalid error, got %v", test.reason, err)
		} else if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want an error that contains %q, got %v", test.reason, test.want, err)
		}
	}
	for _, object := range []client.Object{
		cluster(func(o *v1alpha1.MemberCluster) { o.Name = long[:63] }),
		cluster(func(o *v1alpha1.MemberCluster) { o.Spec.Taints = many[:62] }),
		cluster(func(o *v1alpha1.MemberCluster) {
			o.Spec.Identity = &rbacv1.Subject{Kind: "ServiceAccount", Name: "agent", Namespace: "fleet"}
		}),
		token(func(o *v1alpha1.JoinToken) { o.Spec.TTLSeconds = ptr.To[int64](-1) }),
		token(func(o *v1alpha1.JoinToken) {
			o.Name, o.Spec.Type = "bootstrap-token-abc123", v1alpha1.JoinTokenBootstrapToken
		}),
		token(func(o *v1alpha1.JoinToken) { o.Spec.ClusterID, o.Spec.Labels = "a:1", labels(64, long[:63]) }),
		request(func(o *v1alpha1.JoinRequest) {
			o.Spec.Labels, o.Spec.MemberUID = labels(64, long[:63]), types.UID(long)
		}),
		request(func(o *v1alpha1.JoinRequest) { o.Spec.Credential.PublicKey = []byte("/+//+//+//+//+//+//+//+//+//+//") }),
	} {
		require.NoError(t, c.Create(t.Context(), object, client.DryRunAll), "want a valid %T", object)
	}
}

// labels returns n labels with keys of the maximum length.
func labels(n int, value string) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("%s/%063d", strings.Repeat("a", 253), i)] = value
	}
	return out
}

func TestMemberCluster_Defaults(t *testing.T) {
	c := installed(t)
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}}
	require.NoError(t, c.Create(t.Context(), cluster, client.DryRunAll))
	want := v1alpha1.MemberClusterSpec{
		State: v1alpha1.StateJoin, HeartbeatPeriodSeconds: 60, JoinMode: v1alpha1.JoinPull,
		Leave: v1alpha1.LeavePolicy{Resources: v1alpha1.DeleteResources, DeadlineSeconds: 900},
	}
	if diff := cmp.Diff(want, cluster.Spec); diff != "" {
		t.Errorf("a MemberCluster without a spec (-want +got):\n%s", diff)
	}
}

func TestMemberCluster_ClusterIDIsImmutable(t *testing.T) {
	c := installed(t)
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "immutable"}}
	require.NoError(t, c.Create(t.Context(), cluster))
	t.Cleanup(func() { _ = c.Delete(context.Background(), cluster) })
	cluster.Spec.ClusterID = "one"
	require.NoError(t, c.Update(t.Context(), cluster), "an empty cluster ID can be set")
	for _, other := range []string{"two", ""} {
		cluster.Spec.ClusterID = other
		err := c.Update(t.Context(), cluster)
		require.True(t, apierrors.IsInvalid(err), "%q: %v", other, err)
		require.ErrorContains(t, err, "clusterID cannot change once it is set: delete this MemberCluster")
	}
}

func TestJoinToken_TypeIsImmutable(t *testing.T) {
	c := installed(t)
	token := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bootstrap-token-abc123"}}
	require.NoError(t, c.Create(t.Context(), token))
	t.Cleanup(func() { _ = c.Delete(context.Background(), token) })
	require.Equal(t, v1alpha1.JoinTokenServiceAccount, token.Spec.Type, "the default type")
	token.Spec.Type = v1alpha1.JoinTokenBootstrapToken
	err := c.Update(t.Context(), token)
	require.True(t, apierrors.IsInvalid(err), err)
	require.ErrorContains(t, err, "type cannot change: create another JoinToken")
}

// TestMemberCluster_Columns checks the columns of kubectl get, as the API server returns them.
func TestMemberCluster_Columns(t *testing.T) {
	c := installed(t)
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "columns"}}
	require.NoError(t, c.Create(t.Context(), cluster))
	t.Cleanup(func() { _ = c.Delete(context.Background(), cluster) })
	now := metav1.Now()
	cluster.Status.Phase = v1alpha1.PhaseJoined
	cluster.Status.Version.Kubernetes = "v1.36.3"
	cluster.Status.Properties = []v1alpha1.Property{
		{Name: "example.com/other", Value: "7"}, {Name: "membership.muster.dev/node-count", Value: "3"},
	}
	for kind, status := range map[string]metav1.ConditionStatus{"Accepted": "True", "Joined": "True",
		"Healthy": "Unknown"} {
		cluster.Status.Conditions = append(cluster.Status.Conditions,
			metav1.Condition{Type: kind, Status: status, Reason: "Because", LastTransitionTime: now})
	}
	require.NoError(t, c.Status().Update(t.Context(), cluster))

	_, got := crdtest.Columns(t, plane.ForTest(t).Config(), "/apis/membership.muster.dev/v1alpha1/memberclusters/columns")
	want := map[string]any{
		"Name": "columns", "Hub Accepted": "True", "Ready": nil, "Mode": "Pull", "Version": "v1.36.3", "Nodes": "3",
		"Phase": "Joined", "Joined": "True", "Healthy": "Unknown", "Last Seen": nil,
		"CPU": nil, "Memory": nil, "Orphans": nil, "Why": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestQuantitiesAreBounded checks that the API server rejects a quantity that takes very long to decode: members write
// quantities, and the hub reads them.
func TestQuantitiesAreBounded(t *testing.T) {
	c := installed(t)
	self := &v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: membership.MembershipName},
		Spec:       v1alpha1.MembershipSpec{MemberName: "east", State: v1alpha1.StateJoin, HeartbeatPeriodSeconds: 1},
	}
	require.NoError(t, c.Create(t.Context(), self))
	t.Cleanup(func() { _ = c.Delete(context.Background(), self) })
	for quantity, valid := range map[string]bool{
		"1e-2147483647": false, "1E2147483647": false, "1e+100": false, "1e1.5": false,
		"1e9": true, "12E-3": true, "1500m": true, "64Gi": true, "2E": true,
	} {
		for _, list := range []string{"capacity", "allocatable", "available"} {
			patch := fmt.Sprintf(`{"status":{"resources":{%q:{"cpu":%q}}}}`, list, quantity)
			written := &unstructured.Unstructured{}
			written.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Membership"))
			written.SetNamespace(self.Namespace)
			written.SetName(self.Name)
			err := c.Status().Patch(t.Context(), written, client.RawPatch(types.MergePatchType, []byte(patch)))
			if valid {
				require.NoError(t, err, patch)
			} else {
				require.True(t, apierrors.IsInvalid(err), "%s: %v", patch, err)
				require.ErrorContains(t, err, "status.resources."+list)
			}
		}
	}
}
