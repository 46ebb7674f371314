package permissionmatrix

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is the API server of all tests.
var plane = localplane.Shared{Options: localplane.Options{Name: "permissions"}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// probes are the objects for which the test requests a decision of the authorizer, for every verb.
var probes = []probe{
	{"", "secrets", ""}, {"", "serviceaccounts", ""}, {"", "serviceaccounts/token", ""}, {"", "namespaces", ""}, {"",
		"nodes", ""},
	{"", "nodes/proxy", ""}, {"", "pods", ""}, {"", "pods/exec", ""}, {"", "configmaps", ""}, {"", "resourcequotas", ""},
	{"", "serviceaccounts/token", "muster-agent"}, {"", "serviceaccounts/token", "default"}, {"", "users", ""}, {"",
		"groups", ""},
	{"apps", "deployments", ""}, {"batch", "jobs", ""},
	{"certificates.k8s.io", "certificatesigningrequests", ""}, {"certificates.k8s.io",
		"certificatesigningrequests/approval", ""},
	{"certificates.k8s.io", "certificatesigningrequests/status", ""}, {"certificates.k8s.io", "signers", ""},
	{"certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client"},
	{"certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"},
	{"coordination.k8s.io", "leases", ""}, {"coordination.k8s.io", "leases", "heartbeat"}, {"coordination.k8s.io",
		"leases", "other"},
	{"rbac.authorization.k8s.io", "roles", ""}, {"rbac.authorization.k8s.io", "rolebindings", ""},
	{"rbac.authorization.k8s.io", "clusterroles", ""}, {"rbac.authorization.k8s.io", "clusterrolebindings", ""},
	{"rbac.authorization.k8s.io", "clusterroles", "cluster-admin"}, {"rbac.authorization.k8s.io", "clusterroles",
		"muster-agent"},
	{"apiextensions.k8s.io", "customresourcedefinitions", ""}, {"admissionregistration.k8s.io",
		"validatingadmissionpolicies", ""},
	{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", ""},
	{"membership.muster.dev", "memberclusters", ""}, {"membership.muster.dev", "memberclusters/status", ""},
	{"membership.muster.dev", "memberships", ""}, {"membership.muster.dev", "memberships/status", ""},
	{"membership.muster.dev", "joinrequests", ""}, {"membership.muster.dev", "joinrequests/status", ""},
	{"membership.muster.dev", "jointokens", ""},
	{"placement.muster.dev", "placements", ""}, {"placement.muster.dev", "placementdecisions", ""},
	{"placement.muster.dev", "placementevictions", ""}, {"placement.muster.dev", "worksets", ""},
	{"placement.muster.dev", "worksetrevisions", ""},
	{"work.muster.dev", "works", ""}, {"work.muster.dev", "works/status", ""}, {"work.muster.dev", "appliedworks", ""},
	{"addon.muster.dev", "addons", ""}, {"addon.muster.dev", "memberaddons", ""}, {"addon.muster.dev",
		"memberaddons/status", ""},
	{"addon.muster.dev", "addontemplates", ""}, {"addon.muster.dev", "addonconfigs", ""},
	{"tenancy.muster.dev", "clustersets", ""}, {"tenancy.muster.dev", "clustersetbindings", ""}, {"tenancy.muster.dev",
		"memberpolicies", ""}, {"tenancy.muster.dev", "selectiongrants", ""},
}

type probe struct{ group, resource, name string }

var verbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate",
	"impersonate", "approve", "sign",
}

// TestPlane_PermissionsAreThoseOfTheDocument grants all roles on a control plane. The API server must report exactly
// the permissions of the tables for each credential, in the cluster and in each namespace, and the decisions of its
// authorizer must agree with the tables.
func TestPlane_PermissionsAreThoseOfTheDocument(t *testing.T) {
	p := plane.ForTest(t)
	admin := mustertest.Client(t, p.Config(), mustertest.Scheme())
	for _, name := range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), namespace)))
	}
	all := chapters(t)
	for _, chapter := range all {
		for _, c := range chapter.credentials {
			for _, object := range c.objects {
				require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(),
					object.DeepCopyObject().(client.Object))), c.title)
			}
		}
	}
	decisions := 0
	for _, chapter := range all {
		for _, c := range chapter.credentials {
			grants, err := c.grants()
			require.NoError(t, err)
			t.Run(c.title, func(t *testing.T) {
				compareRules(t, p, c, grants)
				decisions += compareDecisions(t, p, c, grants, decisions)
			})
		}
	}
	t.Logf("the authorizer has made %d decisions", decisions)
	require.Greater(t, decisions, 5_000)
}

// compareRules compares the rules that the API server has found for a credential. Every user has the rules of the
// unknown user.
func compareRules(t *testing.T, plane *localplane.Plane, c *credential, grants map[string]grant) {
	t.Helper()
	as := clientFor(t, plane, c.user, c.groups)
	unknown := clientFor(t, plane, "unknown", c.groups)
	for _, namespace := range namespaces {
		want := grant{}
		maps.Copy(want, grants[clusterScope])
		maps.Copy(want, grants[namespace])
		var got grant
		mustertest.Eventually(t, timeout, "the API server has observed the bindings", func() error {
			got = rulesIn(t, as, namespace)
			for p := range rulesIn(t, unknown, namespace) {
				if !want[p] {
					delete(got, p)
				}
			}
			if diff := cmp.Diff(rowsOf(normalized(want)), rowsOf(got), cmp.AllowUnexported(row{})); diff != "" {
				return differenceError(diff)
			}
			return nil
		})
	}
}

func normalized(g grant) grant {
	out := grant{}
	maps.Copy(out, g)
	out.add(nil)
	return out
}

// rulesIn returns the permissions in a namespace, which include those in the cluster.
func rulesIn(t *testing.T, c *kubernetes.Clientset, namespace string) grant {
	t.Helper()
	review, err := c.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.False(t, review.Status.Incomplete, "an authorizer of the plane cannot list its rules")
	return grantOf(review.Status)
}

// compareDecisions requests decisions of the authorizer in the cluster, in the namespace of another member, and in each
// namespace of the grants. It requests decisions for all probes that must be allowed, and for one in eight of the
// others, because compareRules has compared all rules. With each credential the sample begins at another probe. It
// returns the number of decisions.
func compareDecisions(t *testing.T, plane *localplane.Plane, c *credential, grants map[string]grant, begin int) int {
	t.Helper()
	reviews := clientFor(t, plane, "", nil).AuthorizationV1().SubjectAccessReviews()
	type request struct {
		scope string
		permission
	}
	var requests []request
	index := begin
	scopes := append([]string{clusterScope, memberB}, slices.Collect(maps.Keys(grants))...)
	slices.Sort(scopes)
	for _, scope := range slices.Compact(scopes) {
		for _, p := range probes {
			for _, verb := range verbs {
				r := request{scope, permission{p.group, p.resource, p.name, verb}}
				index++
				if index%8 == 0 || grants[clusterScope].allows(r.permission) ||
					grants[scope].allows(r.permission) {
					requests = append(requests, r)
				}
			}
		}
	}
	pending := make(chan request)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for r := range pending {
				allowed, err := decision(t.Context(), reviews.Create, c, r.scope, r.permission)
				if err != nil {
					t.Errorf("request a decision for %v: %v", r, err)
					continue
				}
				if want := grants[clusterScope].allows(r.permission) || grants[r.scope].allows(r.permission); allowed != want {
					t.Errorf("%s: %s %q (name %q) of group %q in %q: allowed is %t, want %t", c.title, r.verb, r.resource, r.name,
						r.group, r.scope, allowed, want)
				}
			}
		})
	}
	for _, r := range requests {
		pending <- r
	}
	close(pending)
	group.Wait()
	return len(requests)
}

type reviewFunc func(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (
	*authorizationv1.SubjectAccessReview, error)

func decision(ctx context.Context, review reviewFunc, c *credential, scope string, p permission) (bool, error) {
	resource, subresource := cut(p.resource)
	result, err := review(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: c.user, Groups: c.groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: scope, Verb: p.verb, Group: p.group, Version: "*", Resource: resource, Subresource: subresource,
			Name: p.name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return result.Status.Allowed, nil
}

// clientFor returns a client of a user. The empty user is the administrator.
func clientFor(t *testing.T, plane *localplane.Plane, user string, groups []string) *kubernetes.Clientset {
	t.Helper()
	config := plane.Config()
	config.QPS, config.ContentType = -1, "application/vnd.kubernetes.protobuf"
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	if user == "" {
		config.Impersonate = rest.ImpersonationConfig{}
	}
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return c
}

// timeout bounds the time until the API server has observed a binding.
const timeout = time.Minute

type differenceError string

func (e differenceError) Error() string {
	return "the tables (-) differ from the API server (+):\n" + string(e)
}

// grantOf returns the permissions that an API server has reported.
func grantOf(status authorizationv1.SubjectRulesReviewStatus) grant {
	var rules []rbacv1.PolicyRule
	for _, r := range status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: r.Resources,
			ResourceNames: r.ResourceNames, Verbs: r.Verbs})
	}
	for _, r := range status.NonResourceRules {
		rules = append(rules, rbacv1.PolicyRule{NonResourceURLs: r.NonResourceURLs, Verbs: r.Verbs})
	}
	g := grant{}
	g.add(rules)
	return g
}

func cut(resource string) (base, subresource string) {
	base, subresource, _ = strings.Cut(resource, "/")
	return base, subresource
}
