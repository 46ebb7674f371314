package tenancy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/tenancy"
)

// TestClusterScope_Decide checks that cluster-scoped objects may be on every cluster without limits, whatever the state
// of the cluster, and that an empty namespace alone allows nothing.
func TestClusterScope_Decide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := tenancy.Cluster{
			Labels: labels.Set{"k": names.Draw(t, "label")}, Absent: rapid.Bool().Draw(t, "absent"),
			Binding: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "binding"),
		}
		rules := tenancy.ClusterScope()
		d := rules.Decide(cluster)
		if d.Access != tenancy.Allowed || d.Binding != "" || d.Set != "" || !d.Limits.AllowsKind("apps", "Deployment") ||
			d.Limits.ServiceAccount != nil {
			t.Fatalf("want Allowed without limits, got %+v", d)
		}
		if err := rules.MayPlace(cluster); err != nil || !rules.Bound() {
			t.Fatalf("want MayPlace without an error and Bound true, got %v, %t", err, rules.Bound())
		}
		empty := tenancy.NewRules("", drawSets(t), drawBindings(t))
		if d := empty.Decide(cluster); d.Access != tenancy.Unknown || empty.Bound() {
			t.Fatalf("the rules of the empty namespace: want Unknown, got %+v", d)
		}
	})
}

func TestClusterScope_MaySelect(t *testing.T) {
	for _, test := range []struct {
		reason string
		target tenancy.SelectableObject
		want   bool
	}{
		{"objects of a namespace", tenancy.SelectableObject{Kind: "Secret", Namespace: "shop"}, true},
		{"cluster-scoped objects", tenancy.SelectableObject{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, true},
		{"a namespace", tenancy.SelectableObject{Kind: "Namespace", Name: "shop"}, true},
		{"all namespaces, which include those of Kubernetes", tenancy.SelectableObject{Kind: "Namespace"}, false},
		{"a namespace of Kubernetes", tenancy.SelectableObject{Kind: "Namespace", Name: "kube-system"}, false},
		{"a namespace of muster", tenancy.SelectableObject{Kind: "Namespace", Name: "muster-registration"}, false},
		{"objects of Kubernetes", tenancy.SelectableObject{Kind: "Secret", Namespace: "kube-system", Name: "ca"}, false},
		{"credentials of members", tenancy.SelectableObject{Kind: "Secret", Namespace: "muster-connections"}, false},
		{"objects of muster", tenancy.SelectableObject{Group: "membership.muster.dev", Kind: "MemberCluster"}, false},
		{"Works", tenancy.SelectableObject{Group: "work.muster.dev", Kind: "Work", Namespace: "shop"}, false},
		{"a kind Namespace of another group", tenancy.SelectableObject{Group: "example.com", Kind: "Namespace"}, true},
	} {
		if got := tenancy.ClusterScope().MaySelect(test.target); got != test.want {
			t.Errorf("%s: unexpected result of MaySelect: %t", test.reason, got)
		}
	}
	if tenancy.NewRules("", nil, nil).MaySelect(tenancy.SelectableObject{Kind: "Secret", Namespace: "shop"}) {
		t.Error("the rules of the empty namespace allow a selection")
	}
}
